#pragma once

#include <cstdint>
#include <optional>

#include "manager/commit/next_version.h"
#include "manager/journal/record/record_replay.h"
#include "shm/store.h"
#include "zone/draft/draft.h"

namespace pando::manager {

/// Applies records of the journal to a store that takes no updates yet: a live store that lacks the
/// last group, or one that was made from an image or a dump. RecordReplay has the rules. This is
/// the one place where a replay changes zones by changesets, and publishes.
class StoreReplay {
 public:
  /// Only the histories' part of `limits` needs to be set: records were within the limits when they
  /// were accepted, and the limits may have changed since.
  StoreReplay(shm::Store& store, RecordReplay::Data data, const zone::DataLimits& limits)
      : store_(store), rules_(data), limits_(limits) {}

  /// The next version; the first call after publish() begins it.
  [[nodiscard]] zone::Draft& draft();
  [[nodiscard]] zone::ZoneView zone(dns::NameView apex) {
    return draft().view().zone_at(apex);
  }
  /// Does to the record's zone what the record says, and returns that.
  Result<ReplayStep> take(const JournalRecord& record, bool may_lack = false, bool lacks = false);
  /// Applies a changeset that has no record.
  Status change(const zone::Changeset& changes);
  /// Publishes the next version, which may be unchanged: it has the records up to `position`.
  Status publish(std::uint64_t position);
  /// Drops the next version.
  void drop() noexcept { next_.reset(); }

 private:
  Result<ReplayStep> apply(const JournalRecord& record, ReplayStep step, const ReplayedZone& zone);
  Status follow_primary(const JournalRecord& record);
  Status name_file(const JournalRecord& record);
  Status forget(const zone::ZoneView& zone, const dns::Name& name);

  shm::Store& store_;
  RecordReplay rules_;
  zone::DataLimits limits_;
  std::optional<NextVersion> next_;
};

}  // namespace pando::manager
