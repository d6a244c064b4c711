#pragma once

#include <cstdint>
#include <optional>

#include "manager/journal/record_changes.h"

namespace pando::manager {

/// Where a zone as it is served differs from its file as it was last merged: the records that
/// updates added, removed, or gave another TTL. Two layers move, the file and the served zone; an
/// entry is a record that is not the same in both. So
///
///   served zone = file, changed by the overlay
///
/// holds at all times, and a file edited since can be merged without anything being lost.
/// Made by folding a zone's journal records in order; docs/journal-format.md has the rules.
class DynamicChanges {
 public:
  /// TTLs in the file and in the served zone, nullopt = not there. Never equal.
  struct Entry {
    std::optional<dns::Ttl> file;
    std::optional<dns::Ttl> live;
    bool operator==(const Entry&) const = default;
  };
  using Entries = std::map<RecordKey, Entry, RecordKeyLess>;

  /// Beyond either the overlay is given up: it must fit in memory and in one journal record.
  struct Limits {
    std::size_t records = 1'000'000;
    std::size_t bytes = std::size_t{256} << 20;  ///< owners and RDATA
    static constexpr Limits none() noexcept { return {SIZE_MAX, SIZE_MAX}; }
  };
  DynamicChanges() = default;
  explicit DynamicChanges(const Limits& limits) : limits_(limits) {}

  /// An update: the served zone moved, the file did not.
  void updated(const Steps& live);
  /// An edited file was merged: `live` is what changed in the served zone, `held` how the file
  /// changed where the served zone did not go along.
  void edited(const Steps& live, const Steps& held);
  /// The file and the served zone are the same now.
  void settle();
  /// It is not known any more what came by update.
  void lose();
  /// Takes over what a snapshot or a restart noted.
  void assign(Entries entries);

  [[nodiscard]] const Entries& entries() const noexcept { return entries_; }
  [[nodiscard]] bool empty() const noexcept { return entries_.empty() && known_; }
  [[nodiscard]] bool known() const noexcept { return known_; }

 private:
  void put(const RecordKey& key, const Entry& entry);
  void check_limits();

  Limits limits_;
  Entries entries_;
  std::size_t bytes_ = 0;
  bool known_ = true;
};

}  // namespace pando::manager
