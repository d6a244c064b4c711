#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "dns/types.h"
#include "shm/store.h"

/// RRsets that many names of a zone have alike: the name server sets of a registry's delegations.
/// Each set stands once, in pages that belong to the zone; records refer to it (kSharedBit in
/// zone/trie/zone_layout.h).
///
/// There are no reference counts, and no page moves: a page is a block larger than a chunk, which
/// the compactor leaves alone. All pages are released with the zone's data. So an unused set stays
/// until the zone is rebuilt, and sets from updates stand in their own records. At worst a zone
/// keeps the pages with which it was built.
namespace pando::zone {

/// The type whose sets are shared.
inline constexpr dns::RRType kSharedType = dns::RRType::kNS;
/// Bytes that sharing must save before the first page is taken.
inline constexpr std::uint64_t kWorthSharing = 256 * 1024;
/// Larger than a chunk, so that a page has its chunks to itself and is never moved.
inline constexpr std::size_t kSharedPageBytes = 2 * shm::kChunkBytes;

class SharedSets {
 public:
  /// `worth`: see kWorthSharing.
  explicit SharedSets(shm::Transaction& transaction, std::uint64_t worth = kWorthSharing);
  /// Sets another `worth`, before the first set.
  void share_from(std::uint64_t worth) noexcept { worth_ = worth; }

  /// Counts one more name with a set of these packed octets. Returns the reference under which the
  /// set is shared, or 0. 0 means: the set is too rare, too short or too long, or there is no room
  /// for a page.
  Result<std::uint32_t> place(ByteView packed);
  /// The pages, for ZoneEntry::shared; 0 = none.
  [[nodiscard]] std::uint32_t pages() const noexcept { return pages_; }

 private:
  struct Seen {
    std::uint64_t hash = 0;  // 0 = empty place
    std::uint32_t ref = 0;
    std::uint32_t names = 0;
  };

  Seen& find(std::uint64_t hash);
  void grow();
  Result<std::uint32_t> append(ByteView packed);

  shm::Transaction& transaction_;
  std::uint64_t worth_;
  std::uint64_t saved_ = 0;  // bytes that sharing would have saved so far
  std::vector<Seen> table_;  // open addressing, a power of two
  std::size_t used_ = 0;
  std::uint32_t pages_ = 0;  // the newest page
  std::uint8_t* next_ = nullptr;
  std::size_t room_ = 0;
};

/// Releases the zone's pages from the version. kCorrupt.
Status release_shared(shm::Transaction& transaction, std::uint32_t pages);

}  // namespace pando::zone
