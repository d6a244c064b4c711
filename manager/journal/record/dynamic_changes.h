#pragma once

#include <cstdint>
#include <optional>

#include "manager/journal/record/record_changes.h"

namespace pando::manager {

/// The dynamic changes of a zone since its merge base: the records that updates added, removed, or
/// gave another TTL. The file and the served zone change independently; an entry is a record that
/// differs between the two. So
///
///    served zone = file, changed by the dynamic changes
///
/// holds at all times, and an edited file can be merged without loss. Made by folding a zone's
/// journal records in order; docs/formats/journal.md has the rules.
class DynamicChanges {
 public:
  /// From the file to the served zone; never without a difference.
  using Entries = RecordChanges;

  /// Beyond either limit the dynamic changes become unknown, since they must fit in memory and in
  /// one journal record.
  struct Limits {
    std::size_t records = 1'000'000;
    std::size_t bytes = std::size_t{256} << 20;  ///< owners and RDATA
    static constexpr Limits none() noexcept { return {SIZE_MAX, SIZE_MAX}; }
  };
  DynamicChanges() = default;
  explicit DynamicChanges(const Limits& limits) : limits_(limits) {}

  /// An update: the served zone moved, the file did not.
  void updated(const RecordChanges& live);
  /// An edited file was merged: `live` is the change of the served zone, `held` the file's change
  /// that the served zone did not follow.
  void edited(const RecordChanges& live, const RecordChanges& held);
  /// The file and the served zone are the same now.
  void reset();
  /// Marks the dynamic changes as unknown.
  void lose();
  /// Takes over entries from a journal snapshot or a restart.
  void assign(Entries entries);

  [[nodiscard]] const Entries& entries() const noexcept { return entries_; }
  [[nodiscard]] bool empty() const noexcept { return entries_.empty() && known_; }
  [[nodiscard]] bool known() const noexcept { return known_; }

 private:
  void put(const RecordKey& key, const RecordChange& entry);
  void check_limits();

  Limits limits_;
  Entries entries_;
  std::size_t bytes_ = 0;
  bool known_ = true;
};

}  // namespace pando::manager
