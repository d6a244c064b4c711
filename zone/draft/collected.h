#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "dns/types.h"
#include "zone/trie/key.h"

/// Storage of a ZoneBuilder for records that cannot be built immediately.
namespace pando::zone {

[[nodiscard]] inline bool same_octets(ByteView a, ByteView b) noexcept {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}

/// One collected record: | u16 type | u32 ttl | u16 length | rdata |.
class CollectedRecord {
 public:
  static constexpr std::size_t kHeaderOctets = 8;

  explicit CollectedRecord(const std::uint8_t* at) noexcept : at_(at) {}
  [[nodiscard]] dns::RRType type() const { return static_cast<dns::RRType>(load_be16(at_)); }
  [[nodiscard]] dns::Ttl ttl() const { return {load_be32(at_ + 2)}; }
  [[nodiscard]] ByteView rdata() const { return {at_ + kHeaderOctets, load_be16(at_ + 6)}; }
  [[nodiscard]] ByteView octets() const { return {at_, kHeaderOctets + load_be16(at_ + 6)}; }

 private:
  const std::uint8_t* at_;
};

/// Appends a record; RDATA has at most 65,535 octets.
void append_record(Bytes& out, dns::RRType type, dns::Ttl ttl, ByteView rdata);

/// Bytes that never move, found by a number of 32 bits.
class ByteArena {
 public:
  /// The number of `octets` fresh bytes (at most kBlockBytes); kFull above 16 GiB.
  Result<std::uint32_t> take(std::size_t octets);
  /// A number above all numbers so far, and at most the next one.
  [[nodiscard]] std::uint64_t next() const noexcept {
    return blocks_.empty() ? 0 : (blocks_.size() - 1) * kUnitsPerBlock + used_;
  }
  /// Approximate memory of the arena in bytes.
  [[nodiscard]] std::uint64_t octets() const noexcept { return next() * kUnit; }
  [[nodiscard]] std::uint8_t* at(std::uint32_t number) const noexcept {
    return blocks_[number / kUnitsPerBlock].get() + number % kUnitsPerBlock * kUnit;
  }

 private:
  static constexpr std::size_t kUnit = 4;
  static constexpr std::size_t kBlockBytes = std::size_t{1} << 20;
  static constexpr std::size_t kFirstBlockBytes = std::size_t{8} << 10;  // enough for small zones
  static constexpr std::size_t kUnitsPerBlock = kBlockBytes / kUnit;
  static constexpr std::size_t kMaxBlocks = (std::uint64_t{1} << 32) / kUnitsPerBlock;
  std::vector<std::unique_ptr<std::uint8_t[]>> blocks_;
  std::size_t used_ = 0;  // units of the last block
  std::size_t room_ = 0;  // units left in it
};

/// Records that came out of order, until the whole zone is known. Each costs 16 bytes beside its
/// owner and RDATA, in blocks that are never copied to grow.
class LateRecords {
 public:
  /// One record's place in the order.
  struct Entry {
    std::uint64_t key_start;  // first eight symbols, for a comparison without a cache miss
    // arena number of: | u16 key length | u8 label octets | key … | labels … |
    std::uint32_t owner;
    std::uint32_t record;  // arena number of the record, which grows with arrival
  };
  /// The records of one name, in the order in which they came.
  struct Group {
    ByteView key;
    ByteView labels;
    std::span<const Entry> entries;
  };

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  /// Approximate memory of the records in bytes.
  [[nodiscard]] std::uint64_t octets() const noexcept {
    return arena_.octets() + size_ * sizeof(Entry);
  }
  /// Whether the last name has exactly these octets.
  [[nodiscard]] bool ends_with(ByteView labels) const noexcept;
  /// Adds a record of another name; `key` is the key of `labels`. kFull.
  Status add(ByteView labels, const TrieKey& key, ByteView record);
  /// Adds one more record of the last name. kFull.
  Status add_to_last(ByteView record);
  /// Marks the present end: came_before_mark() is true for the records so far.
  void mark() noexcept { mark_ = arena_.next(); }
  [[nodiscard]] bool came_before_mark(const Entry& entry) const noexcept {
    return entry.record < mark_;
  }
  /// Removes and returns the entries from the `first`-th record on; their bytes stay.
  std::vector<Entry> take_from(std::size_t first);

  /// Puts all records in canonical order; no record may be added afterwards. kExists: the work was
  /// cancelled.
  Status sort();
  /// The next name in canonical order, once.
  std::optional<Group> next();
  /// Starts again from the first name.
  void rewind() noexcept { next_ = 0; }
  [[nodiscard]] ByteView labels(const Entry& entry) const noexcept;
  [[nodiscard]] CollectedRecord record(const Entry& entry) const noexcept {
    return CollectedRecord(arena_.at(entry.record));
  }

 private:
  static constexpr std::size_t kFirstEntries = 256;  // enough for small zones
  static constexpr std::size_t kEntriesPerBlock = std::size_t{1} << 16;

  [[nodiscard]] ByteView key_of(const Entry& entry) const noexcept;
  [[nodiscard]] int compare_names(const Entry& a, const Entry& b) const noexcept;
  void push(const Entry& entry);
  [[nodiscard]] const Entry& entry_at(std::size_t index) const noexcept;

  ByteArena arena_;
  std::vector<Entry> first_;
  std::vector<std::unique_ptr<Entry[]>> blocks_;
  std::size_t size_ = 0;
  Entry last_{};
  bool has_last_ = false;
  std::uint64_t mark_ = 0;
  std::vector<Entry> sorted_;
  std::size_t next_ = 0;
};

}  // namespace pando::zone
