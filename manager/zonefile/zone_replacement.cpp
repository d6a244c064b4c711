#include "manager/zonefile/zone_replacement.h"

#include <utility>

namespace pando::manager {

ZoneReplacement::ZoneReplacement(std::shared_ptr<ZoneFileCheck> file, bool journal_pending)
    : file_(std::move(file)), journal_pending_(journal_pending) {
  if (!file_->plan) return;
  compared_ = file_->plan->compared;
  base_file_ = file_->plan->base_file;
}

ZoneChange ZoneReplacement::change(const std::shared_ptr<ZoneReplacement>& replacement) {
  ZoneFileCheck& file = *replacement->file_;
  WholeZone data{file.zone->built, std::move(*file.transaction), file.zone->source};
  if (file.job.file_optional) data.primary_serial = file.zone->primary_serial;
  data.notes = [replacement](std::vector<JournalEntry>& journal, const zone::ZoneView& after) {
    replacement->add_journal_records(journal, after);
  };
  // The journal has failed before, so the records are written when it can be written again.
  if (replacement->journal_pending_) data.pending = std::move(file.zone->journal);
  ZoneChange change;
  change.zone = file.job.apex;
  change.source = ChangeSource::kFile;
  change.is_whole = true;
  change.content = std::move(data);
  change.check = [replacement](const zone::StoreView& now) {
    return replacement->check(now.zone_at(replacement->file_->job.apex));
  };
  return change;
}

bool ZoneReplacement::has_changed(const zone::ZoneView& zone) const {
  const bool is_copy = file_->job.file_optional;
  if (is_copy && zone && !is_secondary(zone)) return true;
  const bool is_loaded = zone && zone.loaded();
  if (is_loaded != compared_.has_value()) return true;
  return is_loaded && (!(zone.serial() == *compared_) || !same_source(zone.source(), base_file_));
}

Status ZoneReplacement::check(const zone::ZoneView& before) {
  has_changed_ = has_changed(before);
  if (has_changed_) return fail(Errc::kExists, "zone moved");
  return {};
}

void ZoneReplacement::add_journal_records(std::vector<JournalEntry>& journal,
                                          const zone::ZoneView& after) {
  const dns::Name& apex = file_->job.apex;
  if (!journal_pending_)
    for (JournalEntry& entry : file_->zone->journal) journal.push_back(std::move(entry));
  if (!compared_) return;
  // With equal serials, a replay could not tell the new zone from the old one. A purge keeps
  // the old records and images of the zone from being continued.
  const bool same_serial = after.serial() == *compared_;
  if (same_serial) journal.push_back(purged_entry(apex, after.serial()));
  if (!file_->in_journal && !same_serial) return;
  journal.push_back(base_entry(after));
  journal.push_back(source_entry(apex, after.serial(), file_->zone->source));
}

ZoneReplacement::Next ZoneReplacement::after(const Status& committed) const noexcept {
  if (committed) return Next::kServe;
  if (has_changed_) return Next::kCheckAgain;
  const bool has_records = !compared_ && !file_->zone->journal.empty();
  return has_records && !journal_pending_ ? Next::kPutWithoutJournal : Next::kFail;
}

}  // namespace pando::manager
