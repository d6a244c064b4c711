#include "zone/draft/shorten_histories.h"

#include <vector>

#include "zone/draft/draft.h"
#include "zone/draft/entry_past.h"
#include "zone/trie/zone_layout.h"

namespace pando::zone {

namespace {

Status shorten(DraftCore& core, dns::NameView apex, bool low_space) {
  ZoneEntry entry = *core.entry_at(apex);
  EntryPast past(core, apex, entry);
  // A snapshot of the present version needs no changeset yet.
  auto lost = past.lose_snapshots([&](ZoneSnapshot& one) {
    if (low_space && (one.archive != 0 || one.serial.value != entry.serial))
      one.state = ZoneSnapshot::State::kStoreFull;
    return !one.held();
  });
  if (!lost) return lost;
  if (auto done = past.trim(entry.history_bytes / 2, UINT64_MAX); !done) return done;
  return core.put_entry(entry, apex);
}

}  // namespace

Result<bool> shorten_histories(Draft& draft, dns::Name& cursor, std::size_t zones) {
  DraftCore& core = draft.core();
  const bool low_space = core.data().low_space_without_pins();
  ZoneWalk walk(draft.view());
  if (!(cursor == dns::Name())) walk.seek_after(cursor);
  std::vector<dns::Name> chosen;
  bool at_end = false;
  for (std::size_t seen = 0; seen < zones && !at_end; ++seen) {
    const ZoneView zone = walk.next();
    at_end = !zone;
    if (at_end) break;
    cursor = dns::Name(zone.apex());
    if (zone.history_bytes() > 0 || (low_space && zone.has_snapshots())) chosen.push_back(cursor);
  }
  core.data().use_reserve();
  for (const dns::Name& apex : chosen)
    if (auto done = shorten(core, apex, low_space); !done) return pass(done);
  if (at_end) cursor = dns::Name();
  return at_end;
}

}  // namespace pando::zone
