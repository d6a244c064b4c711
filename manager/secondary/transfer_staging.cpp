#include "manager/secondary/transfer_staging.h"

#include "manager/journal/journal_format.h"

namespace pando::manager {

namespace {

/// Largest payload of a journal record, less names and serials.
constexpr std::size_t kMostJournalled = kMaxRecordBody - 1024;

/// Nearly a chunk, in bytes: a full store may still have a small block left.
constexpr std::size_t kLargeBlock = 60'000;

}  // namespace

Status stage_changesets(Stage& stage, const std::vector<zone::Changeset>& changesets,
                        const zone::DataLimits& limits, const Committer* journal) {
  std::size_t removed = 0;
  std::size_t added = 0;
  for (const zone::Changeset& changes : changesets) {
    removed += changes.removed.size();
    added += changes.added.size();
  }
  stage.use_reserve_for(removed, added);
  for (const zone::Changeset& changes : changesets) {
    const zone::ZoneView zone = stage.draft.view().zone_at(changes.zone);
    if (!zone || !zone.loaded()) return fail(Errc::kNotFound, "zone is gone");
    auto applied = stage.draft.apply(changes, limits);
    if (!applied) return pass(applied);
    // A mismatch means that our zone differs from the primary's version.
    if (applied->missing_removals > 0)
      return fail(Errc::kInvalid, "{} records to remove are not there", applied->missing_removals);
    if (applied->redundant_additions > 0)
      return fail(Errc::kInvalid, "{} records to add are there already",
                  applied->redundant_additions);
    if (journal == nullptr) continue;
    journal->journal_changeset(stage, *applied, RecordKind::kTransfer);
    // Checked here, because the journal's own error would look like a full disk.
    if (const std::size_t bytes = stage.journal.back().payload.size(); bytes > kMostJournalled)
      return fail(Errc::kInvalid, "a changeset of {} bytes, too many for the journal", bytes);
  }
  return {};
}

bool is_unfit(const Error& error, shm::Transaction& transaction) {
  if (error.code == Errc::kFull) return transaction.allocate(kLargeBlock).has_value();
  return error.code != Errc::kIo;
}

}  // namespace pando::manager
