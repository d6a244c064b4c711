#include "manager/checkpoint/journal_beginning.h"

#include "ipc/log.h"
#include "manager/commit/next_version.h"
#include "manager/journal/record/journal_payload.h"

namespace pando::manager {

namespace {

bool has_files(const Journal& journal) {
  const JournalFiles files = journal.files();
  return !files.segments.empty() || !files.snapshot.empty() || files.health.lost().from != 0;
}

std::vector<JournalEntry> notes_of(const zone::StoreView& version) {
  DynamicChanges not_known;
  not_known.lose();
  std::vector<JournalEntry> notes;
  version.for_each_zone([&](const zone::ZoneView& zone) {
    if (!zone.loaded() || is_secondary(zone) || !may_have_updates(zone)) return;
    notes.push_back(
        dynamic_changes_entry(dns::Name(zone.apex()), zone.serial(), zone.serial(), not_known));
  });
  return notes;
}

}  // namespace

Status begin_journal(shm::Store& store, Journal& journal) {
  const shm::VersionInfo now = store.current();
  if (now.journal_position == 0 || has_files(journal)) return {};
  const auto notes = notes_of(zone::StoreView(store.window(), now.root, now.number));
  if (auto begun = journal.begin_with(now.journal_position, notes); !begun) return begun;
  log::info("journal_begins", "position", now.journal_position, "zones_without_updates_known",
            notes.size());
  if (notes.empty()) return {};
  return recover_position(store, journal.last_position());
}

}  // namespace pando::manager
