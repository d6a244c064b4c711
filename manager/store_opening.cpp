#include "manager/store_opening.h"

#include "base/crash_point.h"
#include "ipc/log.h"
#include "manager/journal_payload.h"

namespace pando::manager {

Result<OpenedStore> open_store(const shm::StoreOptions& options) {
  auto live = shm::Store::attach(options);
  if (live) return OpenedStore{std::move(*live), false};
  const Errc why = live.error().code;
  if (why != Errc::kNotFound && why != Errc::kLayout && why != Errc::kCorrupt) return pass(live);
  if (why != Errc::kNotFound)
    log::warning("store_replaced", "path", options.path, "reason", live.error().text);
  auto made = shm::Store::create(options);
  if (!made) return pass(made);
  return OpenedStore{std::move(*made), true};
}

namespace {

/// True when the record changed something (and its version is published).
Result<bool> replay_record(shm::Store& store, const JournalRecord& record, const NoteSink& note) {
  const shm::VersionInfo base = store.current();
  shm::Transaction transaction = store.begin();
  transaction.use_reserve();
  zone::Draft draft(transaction, base.root, base.number + 1);
  const zone::ZoneView zone = draft.snapshot().zone_at(record.zone);
  if (!zone || !zone.loaded() || !(zone.serial() == record.from)) {
    note({false,
          fmt::format("journal record {} of {} ({} to {}) does not fit and was skipped",
                      record.position, to_text(record.zone), record.from.value, record.to.value)});
    return false;
  }
  auto changes = served_changes(record);
  if (!changes) return pass(changes);
  // It was within the limits when it was accepted, and they may have changed since.
  auto applied = draft.apply(*changes, {0, 0, 0});
  if (!applied) return pass(applied);
  crash_point("replay-staged");
  auto version = store.publish(std::move(transaction), draft.root(), record.position);
  if (!version) return pass(version);
  crash_point("replay-published");
  return true;
}

}  // namespace

Status replay_journal(shm::Store& store, Journal& journal, Files& files, const NoteSink& note) {
  std::uint64_t replayed = 0;
  std::uint64_t failed_at = 0;
  auto walked = for_each_record(
      files, journal.files(), store.current().journal_position,
      [&](JournalRecord&& record) -> Status {
        // The others only say how zone and file compare; an edit may do no more either.
        const bool edits = record.kind == RecordKind::kEdit && !(record.from == record.to);
        if (record.kind != RecordKind::kDelta && !edits) return {};
        auto done = replay_record(store, record, note);
        if (!done) {
          failed_at = record.position;
          return pass(done);
        }
        replayed += *done ? 1 : 0;
        return {};
      },
      note);
  // What cannot be applied was never acknowledged: it must not come back behind later updates.
  if (failed_at != 0) {
    note({true, fmt::format("journal records from {} on could not be applied: {}", failed_at,
                            walked.error().text)});
    journal.abandon(failed_at);
    return {};
  }
  if (replayed > 0) log::info("journal_replayed", "records", replayed);
  return walked;
}

}  // namespace pando::manager
