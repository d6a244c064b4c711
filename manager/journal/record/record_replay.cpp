#include "manager/journal/record/record_replay.h"

#include "manager/journal/record/journal_payload.h"

namespace pando::manager {

ReplayStep RecordReplay::step(const JournalRecord& record,
                              const ReplayedZone& zone) const noexcept {
  if (record.kind == RecordKind::kGone) return leaving();
  // The zone is loaded from its file and the journal, which has this record.
  if (data_ == Data::kImage && !zone.serial) return ReplayStep::kNothing;
  switch (record.kind) {
    case RecordKind::kBase:
    case RecordKind::kDynamicChanges:
      return comparison(record, zone);
    case RecordKind::kSource:
      return file_name(record, zone);
    case RecordKind::kChangeset:
    case RecordKind::kFileEdit:
    case RecordKind::kTransfer:
      return changeset(record, zone);
    case RecordKind::kSigned:
      return is_whole_signing(record) && data_ != Data::kFile ? comparison(record, zone)
                                                              : changeset(record, zone);
    case RecordKind::kPrimary:
    case RecordKind::kGone:
      break;
  }
  return ReplayStep::kNothing;
}

std::optional<ReplayStep> RecordReplay::unfitting(const ReplayedZone& zone) const noexcept {
  if (data_ != Data::kImage) return std::nullopt;
  return zone.may_lack ? ReplayStep::kSkip : ReplayStep::kReload;
}

/// A zone of an image may be in the configuration again. A file is read only if it is.
ReplayStep RecordReplay::leaving() const noexcept {
  if (data_ == Data::kFile) return ReplayStep::kNothing;
  return data_ == Data::kImage ? ReplayStep::kForget : ReplayStep::kRemove;
}

/// For a record that compares the zone at serial `to` with its file, and thereby says all of it.
ReplayStep RecordReplay::comparison(const JournalRecord& record,
                                    const ReplayedZone& zone) const noexcept {
  const bool is_same = zone.serial == record.to;
  switch (data_) {
    case Data::kLiveStore:
      return is_same || !zone.serial ? ReplayStep::kNothing : ReplayStep::kNeverTookPlace;
    case Data::kImage:
      return is_same && !zone.lacks ? ReplayStep::kConfirm : ReplayStep::kReload;
    case Data::kFile:
      break;
  }
  return ReplayStep::kNothing;
}

ReplayStep RecordReplay::file_name(const JournalRecord& record,
                                   const ReplayedZone& zone) const noexcept {
  if (data_ == Data::kFile) return ReplayStep::kNothing;
  if (zone.serial == record.to) return ReplayStep::kNameFile;
  // An image with all earlier records of the zone would be at the serial of this one.
  const bool may_differ = data_ == Data::kLiveStore || zone.may_lack;
  return may_differ ? ReplayStep::kNothing : ReplayStep::kReload;
}

ReplayStep RecordReplay::changeset(const JournalRecord& record,
                                   const ReplayedZone& zone) const noexcept {
  const bool changes = changes_zone(record);
  if (data_ != Data::kImage && !changes) return ReplayStep::kNothing;
  // A zone that was sent whole may be another one with the same serial.
  if (!changes && record.kind == RecordKind::kTransfer) return ReplayStep::kReload;
  if (zone.serial == record.from) return changes ? ReplayStep::kApply : ReplayStep::kNothing;
  if (data_ == Data::kImage && !zone.may_lack) return ReplayStep::kReload;
  const bool leads_on =
      changes && zone.may_lack && zone.serial && record.to.ahead_of(*zone.serial);
  return leads_on ? ReplayStep::kApplyBehindGap : ReplayStep::kSkip;
}

bool is_put_behind(const JournalRecord& gone, const JournalRecord& record) noexcept {
  return is_purge(gone) && record.kind == RecordKind::kBase && record.zone == gone.zone &&
         record.group_first == gone.group_first && record.position == gone.position + 1;
}

}  // namespace pando::manager
