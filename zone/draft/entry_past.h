#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/result.h"
#include "zone/draft/applied.h"
#include "zone/draft/data_limits.h"
#include "zone/draft/draft_core.h"
#include "zone/history/zone_snapshot.h"

namespace pando::zone {

/// The older versions that a zone's entry refers to: its change history (zone/history/history.h),
/// its snapshots (zone/history/zone_snapshot.h) and their archived data. Changes a caller's copy of
/// the entry, which the caller puts into the table afterwards. Errors are kFull and kCorrupt.
class EntryPast {
 public:
  /// `core`, `apex` and `entry` must outlive the object.
  EntryPast(DraftCore& core, dns::NameView apex, ZoneEntry& entry) noexcept
      : core_(core), apex_(apex), entry_(entry) {}

  /// Appends the change to the zone's history, or ends the history where appending is impossible.
  Status append(const Applied& applied, const DataLimits& limits);
  /// Drops changesets until `allowed` bytes are left, but none that a snapshot needs. Beyond `room`
  /// bytes the oldest snapshots are lost.
  Status trim(std::uint64_t allowed, std::uint64_t room);
  Status drop_history();

  [[nodiscard]] std::vector<ZoneSnapshot> snapshots() const;
  Status put_snapshots(const std::vector<ZoneSnapshot>& snapshots);
  /// Visits the held snapshots. `lose` sets the state of a snapshot that is to be lost, and returns
  /// true for it; its archived data are discarded.
  Status lose_snapshots(const std::function<bool(ZoneSnapshot&)>& lose);
  /// Removes a snapshot, which must exist, and the archived data that it alone needs.
  Status remove_snapshot(std::string_view label);
  Status remove_all_snapshots();

  /// Called before other data replace the zone's. If snapshots need the old data, the entry
  /// afterwards has no data that the replacement could release.
  Status archive_data();
  /// Called before a changeset too large for the history is applied: snapshots get a copy of the
  /// zone as it is in the table. The copy costs about as much as the changeset. Its room is needed
  /// now, whatever chunks will be free soon, so no copy is made at low space.
  Status archive_copy(const Applied& applied, const DataLimits& limits);

 private:
  Status put_archive(ZoneEntry data);
  Status discard_archive(std::uint32_t ref);

  DraftCore& core_;
  dns::NameView apex_;
  ZoneEntry& entry_;
};

}  // namespace pando::zone
