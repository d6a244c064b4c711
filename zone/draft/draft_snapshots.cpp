#include "zone/draft/draft.h"
#include "zone/draft/entry_past.h"
#include "zone/history/zone_snapshot.h"
#include "zone/trie/zone_layout.h"

// A draft's edits of the zones' snapshots.

namespace pando::zone {

Status Draft::take_snapshot(dns::NameView apex, std::string_view label, std::uint64_t taken,
                            const DataLimits& limits) {
  if (auto fine = check_label(label); !fine) return fine;
  const ZoneView zone = view().zone_at(apex);
  if (!zone || !zone.loaded())
    return fail(Errc::kNotFound, "{}: no such zone, or not loaded", dns::to_text(apex));
  std::vector<ZoneSnapshot> snapshots = snapshots_of(zone);
  if (const ZoneSnapshot* same = find_snapshot(snapshots, label)) {
    if (same->held())
      return fail(Errc::kExists, "{} has a snapshot '{}' already", dns::to_text(apex), label);
    snapshots.erase(snapshots.begin() + (same - snapshots.data()));
  }
  if (snapshots.size() >= kMaxSnapshots)
    return fail(Errc::kFull, "{} has {} snapshots, which is the most: delete one",
                dns::to_text(apex), snapshots.size());
  if (limits.snapshots == 0) return fail(Errc::kFull, "limits.snapshots is 0");
  if (!core_.data().can_afford(0)) return fail(Errc::kFull, "low space in the store");
  snapshots.push_back({std::string(label), zone.serial(), taken, zone.record_count(),
                       ZoneSnapshot::State::kHeld, 0});
  ZoneEntry entry = *core_.entry_at(apex);
  if (auto put = EntryPast(core_, apex, entry).put_snapshots(snapshots); !put) return put;
  return core_.put_entry(entry, apex);
}

Status Draft::put_snapshot(dns::NameView apex, const ZoneSnapshot& version) {
  if (auto fine = check_label(version.label); !fine) return fine;
  const ZoneView zone = view().zone_at(apex);
  if (!zone || (version.held() && !zone.loaded()))
    return fail(Errc::kNotFound, "{}: no such zone, or not loaded", dns::to_text(apex));
  std::vector<ZoneSnapshot> snapshots = snapshots_of(zone);
  if (find_snapshot(snapshots, version.label) != nullptr)
    return fail(Errc::kExists, "{} has a snapshot '{}' already", dns::to_text(apex), version.label);
  if (snapshots.size() >= kMaxSnapshots)
    return fail(Errc::kFull, "{} has {} snapshots, which is the most", dns::to_text(apex),
                snapshots.size());
  snapshots.push_back(version);
  snapshots.back().archive = 0;
  ZoneEntry entry = *core_.entry_at(apex);
  if (auto put = EntryPast(core_, apex, entry).put_snapshots(snapshots); !put) return put;
  return core_.put_entry(entry, apex);
}

Status Draft::drop_snapshot(dns::NameView apex, std::string_view label, const DataLimits& limits) {
  if (find_snapshot(snapshots_of(view().zone_at(apex)), label) == nullptr)
    return fail(Errc::kNotFound, "{} has no snapshot '{}'", dns::to_text(apex), label);
  ZoneEntry entry = *core_.entry_at(apex);
  EntryPast past(core_, apex, entry);
  if (auto removed = past.remove_snapshot(label); !removed) return removed;
  if (auto trimmed = past.trim(limits.history, UINT64_MAX); !trimmed) return trimmed;
  return core_.put_entry(entry, apex);
}

Status Draft::drop_snapshots(dns::NameView apex) {
  auto entry = core_.entry_of(apex);
  if (!entry) return pass(entry);
  if (entry->snapshots == 0) return {};
  if (auto removed = EntryPast(core_, apex, *entry).remove_all_snapshots(); !removed)
    return removed;
  return core_.put_entry(*entry, apex);
}

}  // namespace pando::zone
