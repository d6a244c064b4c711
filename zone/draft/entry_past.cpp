#include "zone/draft/entry_past.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "zone/history/history.h"
#include "zone/record/record_codec.h"
#include "zone/record/shared_sets.h"
#include "zone/trie/trie_edit.h"
#include "zone/trie/zone_layout.h"

namespace pando::zone {

namespace {

using State = ZoneSnapshot::State;

/// Bounds the cost of one step: each drop takes a few microseconds.
constexpr std::size_t kDropsPerStep = 1024;

bool needs_history(const ZoneSnapshot& version) noexcept { return version.on_history(); }

/// Whether some snapshot in the list needs the data at `archive`.
bool is_needed(const std::vector<ZoneSnapshot>& snapshots, std::uint32_t archive) noexcept {
  return std::any_of(snapshots.begin(), snapshots.end(),
                     [&](const ZoneSnapshot& one) { return one.held() && one.archive == archive; });
}

/// Copies a record with sets of its own, because the zone's shared sets may be released.
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

Status EntryPast::append(const Applied& applied, const DataLimits& limits) {
  auto root = core_.writable_root();
  if (!root) return pass(root);
  shm::Transaction& transaction = core_.data();
  HistoryEditor history(transaction, entry_, **root);
  const auto held = snapshots();
  const bool needed = std::any_of(held.begin(), held.end(), needs_history);
  const std::uint64_t octets = HistoryEditor::bytes_of(applied.effective);
  const bool fits = applied.to.ahead_of(applied.from) && transaction.can_afford(octets) &&
                    octets < limits.largest_changeset(needed) && !history.has(applied.from);
  if (!fits) {
    // At low space archive_copy() did not make the copy that would have kept the snapshots either.
    const State why = transaction.low_space() ? State::kStoreFull : State::kHistoryEnded;
    auto lost = lose_snapshots([&](ZoneSnapshot& one) {
      if (one.archive == 0) one.state = why;
      return !one.held();
    });
    return lost ? drop_history() : lost;
  }
  const std::uint64_t before = entry_.history_bytes;
  if (auto done = history.append(applied.effective, applied.from, applied.to); !done) return done;
  const std::uint64_t newest = entry_.history_bytes - before;
  // When all histories together are too large, the growing zone pays, and keeps its newest
  // changeset.
  const std::uint64_t total = (*root)->history_bytes;
  const std::uint64_t excess = total > limits.history_total ? total - limits.history_total : 0;
  const std::uint64_t allowed = newest + (before > excess ? before - excess : 0);
  return trim(std::min(limits.history, allowed), limits.history_with_snapshots());
}

Status EntryPast::trim(std::uint64_t allowed, std::uint64_t room) {
  auto root = core_.writable_root();
  if (!root) return pass(root);
  HistoryEditor history(core_.data(), entry_, **root);
  std::vector<ZoneSnapshot> versions = snapshots();
  std::uint32_t losses = 0;
  for (auto oldest = versions.begin();; ++oldest, ++losses) {
    oldest = std::find_if(oldest, versions.end(), needs_history);
    if (oldest == versions.end()) break;
    if (auto done = history.trim(allowed, kDropsPerStep, oldest->serial); !done) return done;
    if (entry_.history_bytes <= room || entry_.history_first != oldest->serial.value) break;
    oldest->state = State::kTooLarge;
  }
  if (std::none_of(versions.begin(), versions.end(), needs_history))
    if (auto done = history.trim(allowed, kDropsPerStep); !done) return done;
  if (losses == 0) return {};
  (*root)->snapshot_losses += losses;
  return put_snapshots(versions);
}

Status EntryPast::drop_history() {
  if (entry_.history == 0) return {};
  auto root = core_.writable_root();
  if (!root) return pass(root);
  (*root)->history_bytes -= std::min((*root)->history_bytes, entry_.history_bytes);
  const std::uint32_t dropped = std::exchange(entry_.history, 0);
  entry_.history_first = 0;
  entry_.history_bytes = 0;
  return core_.discard_blocks({dropped});
}

std::vector<ZoneSnapshot> EntryPast::snapshots() const {
  return read_snapshots(core_.data().window(), entry_.snapshots);
}

Status EntryPast::put_snapshots(const std::vector<ZoneSnapshot>& snapshots) {
  auto ref = write_snapshots(core_.data(), snapshots);
  if (!ref) return pass(ref);
  release_snapshot_list(core_.data(), entry_.snapshots);
  entry_.snapshots = *ref;
  return {};
}

Status EntryPast::lose_snapshots(const std::function<bool(ZoneSnapshot&)>& lose) {
  if (entry_.snapshots == 0) return {};
  std::vector<ZoneSnapshot> versions = snapshots();
  std::vector<std::uint32_t> freed;
  std::uint32_t losses = 0;
  for (ZoneSnapshot& one : versions) {
    if (!one.held() || !lose(one)) continue;
    ++losses;
    if (one.archive != 0) freed.push_back(std::exchange(one.archive, 0));
  }
  if (losses == 0) return {};
  auto root = core_.writable_root();
  if (!root) return pass(root);
  (*root)->snapshot_losses += losses;
  std::sort(freed.begin(), freed.end());
  freed.erase(std::unique(freed.begin(), freed.end()), freed.end());
  for (const std::uint32_t archive : freed)
    if (!is_needed(versions, archive))
      if (auto discarded = discard_archive(archive); !discarded) return discarded;
  return put_snapshots(versions);
}

Status EntryPast::remove_snapshot(std::string_view label) {
  std::vector<ZoneSnapshot> versions = snapshots();
  const ZoneSnapshot* found = find_snapshot(versions, label);
  const std::uint32_t archive = found->archive;
  versions.erase(versions.begin() + (found - versions.data()));
  if (archive != 0 && !is_needed(versions, archive))
    if (auto discarded = discard_archive(archive); !discarded) return discarded;
  return put_snapshots(versions);
}

/// Snapshots with the same archived data are adjacent in the list.
Status EntryPast::remove_all_snapshots() {
  std::vector<std::uint32_t> archives;
  for (const ZoneSnapshot& one : snapshots())
    if (one.archive != 0 && (archives.empty() || archives.back() != one.archive))
      archives.push_back(one.archive);
  for (const std::uint32_t archive : archives)
    if (auto discarded = discard_archive(archive); !discarded) return discarded;
  return put_snapshots({});
}

Status EntryPast::archive_data() {
  if (!is_needed(snapshots(), 0)) return {};
  if (!core_.data().can_afford(0))
    return lose_snapshots([](ZoneSnapshot& one) {
      if (one.archive == 0) one.state = State::kStoreFull;
      return !one.held();
    });
  if (auto trimmed = trim(0, UINT64_MAX); !trimmed) return trimmed;
  if (auto put = put_archive(entry_); !put) return put;
  entry_.apex = entry_.names = entry_.nsec3 = entry_.shared = 0;
  return {};
}

Status EntryPast::archive_copy(const Applied& applied, const DataLimits& limits) {
  shm::Transaction& transaction = core_.data();
  if (!is_needed(snapshots(), 0) || transaction.low_space() ||
      HistoryEditor::bytes_of(applied.effective) < limits.largest_changeset(true))
    return {};
  if (auto trimmed = trim(0, UINT64_MAX); !trimmed) return trimmed;
  ZoneEntry data = *core_.entry_at(apex_);
  auto record = copy_record(transaction, apex_, data.apex);
  if (!record) return pass(record);
  data.apex = *record;
  for (std::uint32_t* trie : {&data.names, &data.nsec3}) {
    auto copy = copy_trie(transaction, apex_, *trie);
    if (!copy) return pass(copy);
    *trie = *copy;
  }
  data.shared = 0;
  return put_archive(data);
}

/// Writes an entry for archived data and makes the snapshots that need the zone's history refer to
/// it. The history goes with the data.
Status EntryPast::put_archive(ZoneEntry data) {
  const ZoneEntry* old = core_.entry_at(apex_);
  if (old == nullptr) return fail(Errc::kNotFound, "{}: no such zone", dns::to_text(apex_));
  auto ref = core_.data().allocate(data.octets());
  if (!ref) return pass(ref);
  data.history = entry_.history;
  data.history_first = entry_.history_first;
  data.history_records = entry_.history_records;
  data.history_bytes = entry_.history_bytes;
  data.snapshots = 0;
  data.settings_hash = 0;
  data.side_index = 0;
  auto* block = core_.data().writable(ref->as<ZoneEntry>());
  *block = data;
  std::memcpy(block + 1, old + 1, data.octets() - sizeof(ZoneEntry));
  auto root = core_.writable_root();
  if (!root) return pass(root);
  ++(*root)->archives;
  (*root)->history_bytes -= std::min((*root)->history_bytes, entry_.history_bytes);
  entry_.history = entry_.history_first = 0;
  entry_.history_bytes = 0;
  std::vector<ZoneSnapshot> versions = snapshots();
  for (ZoneSnapshot& one : versions)
    if (one.on_history()) one.archive = ref->units;
  return put_snapshots(versions);
}

/// Archived data have the same parts as a zone.
Status EntryPast::discard_archive(std::uint32_t ref) {
  shm::Transaction& transaction = core_.data();
  const auto* block = transaction.window().at(shm::Ref<ZoneEntry>{ref});
  if (block == nullptr) return fail(Errc::kCorrupt, "snapshot is damaged");
  if (auto released = release_shared(transaction, block->shared); !released) return released;
  std::vector<std::uint32_t> refs;
  for (const std::uint32_t part : {block->apex, block->names, block->nsec3, block->history})
    if (part != 0) refs.push_back(part);
  transaction.release(shm::Ref<>{ref}, block->octets());
  if (auto discarded = core_.discard_blocks(refs); !discarded) return discarded;
  auto root = core_.writable_root();
  if (!root) return pass(root);
  (*root)->archives -= std::min<std::uint64_t>((*root)->archives, 1);
  return {};
}

}  // namespace pando::zone
