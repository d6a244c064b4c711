#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "dns/name.h"
#include "zone/read/store_view.h"
#include "zone/trie/key.h"
#include "zone/trie/trie.h"

namespace pando::zone {

/// Descends for several names at once (Trie::run_all()), since a descent alone waits for memory at
/// each block of its way. The keys remember their descents, which a lookup with the key uses. The
/// result is the same without it.
class ReadAhead {
 public:
  static constexpr std::size_t kNames = 16;

  /// Forgets all names.
  void clear() noexcept { count_ = 0; }
  /// Adds a name, at most kNames of them. The name must stay in place as long as its key is used.
  /// `dnssec_ok`: whether an answer shows proofs.
  void add(const dns::Name& name, bool dnssec_ok) noexcept;
  [[nodiscard]] std::size_t count() const noexcept { return count_; }
  /// Descends for all names; the version must be pinned.
  void run(const StoreView& store) noexcept;
  /// Key of name `i`, until clear(). After run() it is for zone(i), in the same version.
  [[nodiscard]] const NameKey& key(std::size_t i) const noexcept { return *keys_[i]; }
  /// Result of find_zone() for name `i`, after run().
  [[nodiscard]] const ZoneView& zone(std::size_t i) const noexcept { return zones_[i]; }
  /// After run(): result of the lookup of name `i` in zone(i), wanted as wanted_in() says.
  /// An empty one without a loaded zone.
  [[nodiscard]] const Match& match(std::size_t i) const noexcept { return matches_[i]; }

 private:
  void find_zones(const StoreView& store) noexcept;

  std::array<std::optional<NameKey>, kNames> keys_;
  std::array<TrieDescent, kNames> descents_;
  std::array<ZoneView, kNames> zones_;
  std::array<Match, kNames> matches_;
  std::array<bool, kNames> dnssec_ok_{};
  std::size_t count_ = 0;
};

}  // namespace pando::zone
