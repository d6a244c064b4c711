#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "shm/store.h"
#include "zone/read/store_view.h"

namespace pando::zone {

/// The root of a version under construction with the tables that hang on it: the zones' entries and
/// the list of discarded blocks. A Draft's edits and the upkeep of a store work on it; no other
/// code does.
class DraftCore {
 public:
  /// Blocks of zones' data go to `data`, the path to a zone (its entry, the trie of zones, the
  /// root) to `table`. They are the same transaction, except in a DetachedDraft.
  DraftCore(shm::Transaction& data, shm::Transaction& table, shm::Ref<> root,
            std::uint64_t version) noexcept
      : data_(data), table_(table), root_(root), version_(version) {}

  [[nodiscard]] shm::Transaction& data() noexcept { return data_; }
  [[nodiscard]] shm::Transaction& table() noexcept { return table_; }
  [[nodiscard]] shm::Ref<> root() const noexcept { return root_; }
  [[nodiscard]] StoreView view() const noexcept {
    return StoreView(table_.window(), root_, version_);
  }
  /// The root block for writing. The first call copies the published block. kFull, kCorrupt.
  Result<RootData*> writable_root();

  /// The entry as the draft shows it; null without such a zone.
  [[nodiscard]] const ZoneEntry* entry_at(dns::NameView apex) const noexcept;
  /// A copy of the entry. kNotFound without such a zone.
  [[nodiscard]] Result<ZoneEntry> entry_of(dns::NameView apex) const;
  /// `spelling`: the name to be stored from now on, by default as before.
  Status put_entry(const ZoneEntry& entry, dns::NameView apex, const dns::Name* spelling = nullptr);
  /// Removes the zone's entry, which must exist, from the table.
  Status remove_entry(dns::NameView apex);

  /// Appends blocks (roots of tries, records) to the discarded ones: see dismantle_discarded().
  Status discard_blocks(const std::vector<std::uint32_t>& refs);

  /// The time of changes from now on, in seconds since 1970; 0, the default = unknown.
  void set_time(std::uint64_t seconds) noexcept { time_ = static_cast<std::uint32_t>(seconds); }
  /// The data of the entry are of this version, and of its time.
  void mark_changed(ZoneEntry& entry) const noexcept;

 private:
  shm::Transaction& data_;
  shm::Transaction& table_;
  shm::Ref<> root_;
  std::uint64_t version_;
  std::uint32_t time_ = 0;
};

}  // namespace pando::zone
