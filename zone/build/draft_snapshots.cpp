#include <algorithm>
#include <cstring>

#include "zone/build/draft.h"
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

/// Whether some snapshot in the list needs the data at `aside`.
bool is_needed(const std::vector<ZoneSnapshot>& saved, std::uint32_t aside) noexcept {
  return std::any_of(saved.begin(), saved.end(),
                     [&](const ZoneSnapshot& one) { return one.held() && one.aside == aside; });
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

Status Draft::save_version(dns::NameView apex, std::string_view label, std::uint64_t taken,
                           const DataLimits& limits) {
  if (auto fine = check_label(label); !fine) return fine;
  const ZoneView zone = snapshot().zone_at(apex);
  if (!zone || !zone.loaded())
    return fail(Errc::kNotFound, "{}: no such zone, or not loaded", dns::to_text(apex));
  std::vector<ZoneSnapshot> saved = saved_versions(zone);
  if (const ZoneSnapshot* same = find_saved(saved, label)) {
    if (same->held())
      return fail(Errc::kExists, "{} has a snapshot '{}' already", dns::to_text(apex), label);
    saved.erase(saved.begin() + (same - saved.data()));
  }
  if (saved.size() >= kMaxSavedVersions)
    return fail(Errc::kFull, "{} has {} snapshots, which is the most: delete one",
                dns::to_text(apex), saved.size());
  if (limits.saved == 0) return fail(Errc::kFull, "limits.snapshots is 0");
  if (!transaction_.can_afford(0)) return fail(Errc::kFull, "the store is nearly full");
  saved.push_back({std::string(label), zone.serial(), taken, zone.record_count(), State::kHeld, 0});
  ZoneEntry entry = *entry_at(apex);
  if (auto put = put_saved(entry, saved); !put) return put;
  return put_entry(entry, apex);
}

Status Draft::put_saved_version(dns::NameView apex, const ZoneSnapshot& version) {
  if (auto fine = check_label(version.label); !fine) return fine;
  const ZoneView zone = snapshot().zone_at(apex);
  if (!zone || (version.held() && !zone.loaded()))
    return fail(Errc::kNotFound, "{}: no such zone, or not loaded", dns::to_text(apex));
  std::vector<ZoneSnapshot> saved = saved_versions(zone);
  if (find_saved(saved, version.label) != nullptr)
    return fail(Errc::kExists, "{} has a snapshot '{}' already", dns::to_text(apex), version.label);
  if (saved.size() >= kMaxSavedVersions)
    return fail(Errc::kFull, "{} has {} snapshots, which is the most", dns::to_text(apex),
                saved.size());
  saved.push_back(version);
  saved.back().aside = 0;
  ZoneEntry entry = *entry_at(apex);
  if (auto put = put_saved(entry, saved); !put) return put;
  return put_entry(entry, apex);
}

Status Draft::forget_version(dns::NameView apex, std::string_view label, const DataLimits& limits) {
  const ZoneView zone = snapshot().zone_at(apex);
  std::vector<ZoneSnapshot> saved = saved_versions(zone);
  const ZoneSnapshot* found = find_saved(saved, label);
  if (found == nullptr)
    return fail(Errc::kNotFound, "{} has no snapshot '{}'", dns::to_text(apex), label);
  const std::uint32_t aside = found->aside;
  saved.erase(saved.begin() + (found - saved.data()));
  ZoneEntry entry = *entry_at(apex);
  if (aside != 0 && !is_needed(saved, aside))
    if (auto retired = retire_aside(aside); !retired) return retired;
  if (auto put = put_saved(entry, saved); !put) return put;
  if (auto trimmed = trim_history(entry, limits.history, UINT64_MAX); !trimmed) return trimmed;
  return put_entry(entry, apex);
}

Status Draft::forget_versions(dns::NameView apex) {
  const ZoneEntry* old = entry_at(apex);
  if (old == nullptr) return fail(Errc::kNotFound, "{}: no such zone", dns::to_text(apex));
  if (old->saved == 0) return {};
  ZoneEntry entry = *old;
  if (auto released = release_saved(entry); !released) return released;
  return put_entry(entry, apex);
}

Status Draft::put_saved(ZoneEntry& entry, const std::vector<ZoneSnapshot>& saved) {
  auto ref = write_saved(transaction_, saved);
  if (!ref) return pass(ref);
  release_saved_list(transaction_, entry.saved);
  entry.saved = *ref;
  return {};
}

/// Visits the held snapshots. `lose` sets the state of a snapshot that is to be lost; its retired
/// data are released.
Status Draft::lose_saved(ZoneEntry& entry, const std::function<bool(ZoneSnapshot&)>& lose) {
  if (entry.saved == 0) return {};
  std::vector<ZoneSnapshot> saved = read_saved(transaction_.window(), entry.saved);
  std::vector<std::uint32_t> freed;
  std::uint32_t losses = 0;
  for (ZoneSnapshot& one : saved) {
    if (!one.held() || !lose(one)) continue;
    ++losses;
    if (one.aside != 0) freed.push_back(std::exchange(one.aside, 0));
  }
  if (losses == 0) return {};
  auto root = writable_root();
  if (!root) return pass(root);
  (*root)->saved_losses += losses;
  std::sort(freed.begin(), freed.end());
  freed.erase(std::unique(freed.begin(), freed.end()), freed.end());
  for (const std::uint32_t aside : freed)
    if (!is_needed(saved, aside))
      if (auto retired = retire_aside(aside); !retired) return retired;
  return put_saved(entry, saved);
}

/// Writes an entry for retired data and makes the snapshots that need the zone's history refer to
/// it. The history goes with the data.
Status Draft::put_aside(ZoneEntry& entry, dns::NameView apex, ZoneEntry data) {
  const ZoneEntry* old = entry_at(apex);
  if (old == nullptr) return fail(Errc::kNotFound, "{}: no such zone", dns::to_text(apex));
  auto ref = transaction_.allocate(data.octets());
  if (!ref) return pass(ref);
  data.history = entry.history;
  data.history_first = entry.history_first;
  data.history_records = entry.history_records;
  data.history_bytes = entry.history_bytes;
  data.saved = 0;
  data.settings_hash = 0;
  data.side_index = 0;
  auto* block = transaction_.writable(ref->as<ZoneEntry>());
  *block = data;
  std::memcpy(block + 1, old + 1, data.octets() - sizeof(ZoneEntry));
  auto root = writable_root();
  if (!root) return pass(root);
  ++(*root)->zones_aside;
  (*root)->history_bytes -= std::min((*root)->history_bytes, entry.history_bytes);
  entry.history = entry.history_first = 0;
  entry.history_bytes = 0;
  std::vector<ZoneSnapshot> saved = read_saved(transaction_.window(), entry.saved);
  for (ZoneSnapshot& one : saved)
    if (one.on_history()) one.aside = ref->units;
  return put_saved(entry, saved);
}

/// Called before other data replace the zone's. If snapshots need the old data, the entry
/// afterwards has no data that the replacement could release.
Status Draft::set_aside(ZoneEntry& entry, dns::NameView apex) {
  if (!is_needed(read_saved(transaction_.window(), entry.saved), 0)) return {};
  if (!transaction_.can_afford(0))
    return lose_saved(entry, [](ZoneSnapshot& one) {
      if (one.aside == 0) one.state = State::kStoreFull;
      return !one.held();
    });
  if (auto trimmed = trim_history(entry, 0, UINT64_MAX); !trimmed) return trimmed;
  if (auto put = put_aside(entry, apex, entry); !put) return put;
  entry.apex = entry.names = entry.nsec3 = entry.shared = 0;
  return {};
}

/// Called before a changeset too large for the history is applied: snapshots get a copy of the
/// zone. The copy costs about as much as the changeset. Its room is needed now, whatever chunks
/// will be free soon, so no copy is made at low space.
Status Draft::copy_aside(ZoneEntry& entry, const Applied& applied, const DataLimits& limits) {
  if (!is_needed(read_saved(transaction_.window(), entry.saved), 0) || transaction_.low_space() ||
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
  return put_aside(entry, apex, data);
}

/// Retired data have the same parts as a zone.
Status Draft::retire_aside(std::uint32_t ref) {
  const auto* block = transaction_.window().at(shm::Ref<ZoneEntry>{ref});
  if (block == nullptr) return fail(Errc::kCorrupt, "saved version is damaged");
  if (auto released = release_shared(transaction_, block->shared); !released) return released;
  std::vector<std::uint32_t> refs;
  for (const std::uint32_t part : {block->apex, block->names, block->nsec3, block->history})
    if (part != 0) refs.push_back(part);
  transaction_.release(shm::Ref<>{ref}, block->octets());
  if (auto retired = retire_blocks(refs); !retired) return retired;
  auto root = writable_root();
  if (!root) return pass(root);
  (*root)->zones_aside -= std::min<std::uint64_t>((*root)->zones_aside, 1);
  return {};
}

Status Draft::release_saved(ZoneEntry& entry) {
  std::vector<std::uint32_t> asides;
  for (const ZoneSnapshot& one : read_saved(transaction_.window(), entry.saved))
    if (one.aside != 0 && (asides.empty() || asides.back() != one.aside))
      asides.push_back(one.aside);
  for (const std::uint32_t aside : asides)
    if (auto retired = retire_aside(aside); !retired) return retired;
  return put_saved(entry, {});
}

}  // namespace pando::zone
