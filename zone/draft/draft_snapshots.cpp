#include <algorithm>
#include <cstring>

#include "zone/draft/draft.h"
#include "zone/history/history.h"
#include "zone/history/zone_snapshot.h"
#include "zone/record/record_codec.h"
#include "zone/record/shared_sets.h"
#include "zone/trie/trie_edit.h"
#include "zone/trie/zone_layout.h"

// A draft's operations on the zones' snapshots.

namespace pando::zone {

namespace {

using State = ZoneSnapshot::State;

/// Whether some snapshot in the list needs the data at `archive`.
bool is_needed(const std::vector<ZoneSnapshot>& snapshots, std::uint32_t archive) noexcept {
  return std::any_of(snapshots.begin(), snapshots.end(),
                     [&](const ZoneSnapshot& one) { return one.held() && one.archive == archive; });
}

/// Copies a record with its own sets, not those that the zone's names share.
Result<std::uint32_t> copy_record(shm::Transaction& transaction, dns::NameView apex,
                                  std::uint32_t ref) {
  const RecordView record = record_view(transaction.window(), ref, apex);
  if (!record) return fail(Errc::kCorrupt, "name record is damaged");
  NameDraft name = decode_record(record);
  for (RRsetDraft& rrset : name.rrsets) rrset.shared = 0;
  return write_record(transaction, apex, name);
}

Result<std::uint32_t> copy_trie(shm::Transaction& transaction, dns::NameView apex,
                                std::uint32_t root) {
  if (root == 0) return root;
  TrieBuilder copy(transaction);
  TrieWalk walk(Trie(transaction.window(), root, LeafKind::kRecord));
  while (const LeafBlock leaf = walk.next()) {
    auto record = copy_record(transaction, apex, leaf.ref.units);
    if (!record) return record;
    const TrieKey key(record_view(transaction.window(), leaf.ref.units, apex).relative_owner());
    if (auto added = copy.add(*record, {key.data(), key.length()}); !added) return pass(added);
  }
  return copy.finish();
}

}  // namespace

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
  if (!transaction_.can_afford(0)) return fail(Errc::kFull, "low space in the store");
  snapshots.push_back(
      {std::string(label), zone.serial(), taken, zone.record_count(), State::kHeld, 0});
  ZoneEntry entry = *entry_at(apex);
  if (auto put = put_snapshots(entry, snapshots); !put) return put;
  return put_entry(entry, apex);
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
  ZoneEntry entry = *entry_at(apex);
  if (auto put = put_snapshots(entry, snapshots); !put) return put;
  return put_entry(entry, apex);
}

Status Draft::drop_snapshot(dns::NameView apex, std::string_view label, const DataLimits& limits) {
  const ZoneView zone = view().zone_at(apex);
  std::vector<ZoneSnapshot> snapshots = snapshots_of(zone);
  const ZoneSnapshot* found = find_snapshot(snapshots, label);
  if (found == nullptr)
    return fail(Errc::kNotFound, "{} has no snapshot '{}'", dns::to_text(apex), label);
  const std::uint32_t archive = found->archive;
  snapshots.erase(snapshots.begin() + (found - snapshots.data()));
  ZoneEntry entry = *entry_at(apex);
  if (archive != 0 && !is_needed(snapshots, archive))
    if (auto discarded = discard_archive(archive); !discarded) return discarded;
  if (auto put = put_snapshots(entry, snapshots); !put) return put;
  if (auto trimmed = trim_history(entry, limits.history, UINT64_MAX); !trimmed) return trimmed;
  return put_entry(entry, apex);
}

Status Draft::drop_snapshots(dns::NameView apex) {
  const ZoneEntry* old = entry_at(apex);
  if (old == nullptr) return fail(Errc::kNotFound, "{}: no such zone", dns::to_text(apex));
  if (old->snapshots == 0) return {};
  ZoneEntry entry = *old;
  if (auto released = release_snapshots(entry); !released) return released;
  return put_entry(entry, apex);
}

Status Draft::put_snapshots(ZoneEntry& entry, const std::vector<ZoneSnapshot>& snapshots) {
  auto ref = write_snapshots(transaction_, snapshots);
  if (!ref) return pass(ref);
  release_snapshot_list(transaction_, entry.snapshots);
  entry.snapshots = *ref;
  return {};
}

/// Visits the held snapshots. `lose` sets the state of a snapshot that is to be lost; its archived
/// data are discarded.
Status Draft::lose_snapshots(ZoneEntry& entry, const std::function<bool(ZoneSnapshot&)>& lose) {
  if (entry.snapshots == 0) return {};
  std::vector<ZoneSnapshot> snapshots = read_snapshots(transaction_.window(), entry.snapshots);
  std::vector<std::uint32_t> freed;
  std::uint32_t losses = 0;
  for (ZoneSnapshot& one : snapshots) {
    if (!one.held() || !lose(one)) continue;
    ++losses;
    if (one.archive != 0) freed.push_back(std::exchange(one.archive, 0));
  }
  if (losses == 0) return {};
  auto root = writable_root();
  if (!root) return pass(root);
  (*root)->snapshot_losses += losses;
  std::sort(freed.begin(), freed.end());
  freed.erase(std::unique(freed.begin(), freed.end()), freed.end());
  for (const std::uint32_t archive : freed)
    if (!is_needed(snapshots, archive))
      if (auto discarded = discard_archive(archive); !discarded) return discarded;
  return put_snapshots(entry, snapshots);
}

/// Writes an entry for archived data and makes the snapshots that need the zone's history refer to
/// it. The history goes with the data.
Status Draft::put_archive(ZoneEntry& entry, dns::NameView apex, ZoneEntry data) {
  const ZoneEntry* old = entry_at(apex);
  if (old == nullptr) return fail(Errc::kNotFound, "{}: no such zone", dns::to_text(apex));
  auto ref = transaction_.allocate(data.octets());
  if (!ref) return pass(ref);
  data.history = entry.history;
  data.history_first = entry.history_first;
  data.history_records = entry.history_records;
  data.history_bytes = entry.history_bytes;
  data.snapshots = 0;
  data.settings_hash = 0;
  data.side_index = 0;
  auto* block = transaction_.writable(ref->as<ZoneEntry>());
  *block = data;
  std::memcpy(block + 1, old + 1, data.octets() - sizeof(ZoneEntry));
  auto root = writable_root();
  if (!root) return pass(root);
  ++(*root)->archives;
  (*root)->history_bytes -= std::min((*root)->history_bytes, entry.history_bytes);
  entry.history = entry.history_first = 0;
  entry.history_bytes = 0;
  std::vector<ZoneSnapshot> snapshots = read_snapshots(transaction_.window(), entry.snapshots);
  for (ZoneSnapshot& one : snapshots)
    if (one.on_history()) one.archive = ref->units;
  return put_snapshots(entry, snapshots);
}

/// Called before other data replace the zone's. If snapshots need the old data, the entry
/// afterwards has no data that the replacement could release.
Status Draft::archive_data(ZoneEntry& entry, dns::NameView apex) {
  if (!is_needed(read_snapshots(transaction_.window(), entry.snapshots), 0)) return {};
  if (!transaction_.can_afford(0))
    return lose_snapshots(entry, [](ZoneSnapshot& one) {
      if (one.archive == 0) one.state = State::kStoreFull;
      return !one.held();
    });
  if (auto trimmed = trim_history(entry, 0, UINT64_MAX); !trimmed) return trimmed;
  if (auto put = put_archive(entry, apex, entry); !put) return put;
  entry.apex = entry.names = entry.nsec3 = entry.shared = 0;
  return {};
}

/// Called before a changeset too large for the history is applied: snapshots get a copy of the
/// zone. The copy costs about as much as the changeset. Its room is needed now, whatever chunks
/// will be free soon, so no copy is made at low space.
Status Draft::archive_copy(ZoneEntry& entry, const Applied& applied, const DataLimits& limits) {
  if (!is_needed(read_snapshots(transaction_.window(), entry.snapshots), 0) ||
      transaction_.low_space() ||
      HistoryEditor::bytes_of(applied.effective) < limits.largest_changeset(true))
    return {};
  const dns::Name& apex = applied.effective.zone;
  if (auto trimmed = trim_history(entry, 0, UINT64_MAX); !trimmed) return trimmed;
  ZoneEntry data = *entry_at(apex);
  auto record = copy_record(transaction_, apex, data.apex);
  if (!record) return pass(record);
  data.apex = *record;
  for (std::uint32_t* trie : {&data.names, &data.nsec3}) {
    auto copy = copy_trie(transaction_, apex, *trie);
    if (!copy) return pass(copy);
    *trie = *copy;
  }
  data.shared = 0;
  return put_archive(entry, apex, data);
}

/// Archived data have the same parts as a zone.
Status Draft::discard_archive(std::uint32_t ref) {
  const auto* block = transaction_.window().at(shm::Ref<ZoneEntry>{ref});
  if (block == nullptr) return fail(Errc::kCorrupt, "snapshot is damaged");
  if (auto released = release_shared(transaction_, block->shared); !released) return released;
  std::vector<std::uint32_t> refs;
  for (const std::uint32_t part : {block->apex, block->names, block->nsec3, block->history})
    if (part != 0) refs.push_back(part);
  transaction_.release(shm::Ref<>{ref}, block->octets());
  if (auto discarded = discard_blocks(refs); !discarded) return discarded;
  auto root = writable_root();
  if (!root) return pass(root);
  (*root)->archives -= std::min<std::uint64_t>((*root)->archives, 1);
  return {};
}

Status Draft::release_snapshots(ZoneEntry& entry) {
  std::vector<std::uint32_t> archives;
  for (const ZoneSnapshot& one : read_snapshots(transaction_.window(), entry.snapshots))
    if (one.archive != 0 && (archives.empty() || archives.back() != one.archive))
      archives.push_back(one.archive);
  for (const std::uint32_t archive : archives)
    if (auto discarded = discard_archive(archive); !discarded) return discarded;
  return put_snapshots(entry, {});
}

}  // namespace pando::zone
