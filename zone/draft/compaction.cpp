#include "zone/draft/compaction.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "zone/draft/draft.h"
#include "zone/history/zone_snapshot.h"
#include "zone/record/record_codec.h"
#include "zone/trie/stored_settings.h"
#include "zone/trie/trie_edit.h"
#include "zone/trie/zone_layout.h"

namespace pando::zone {

namespace {

constexpr unsigned kMaxDepth = kMaxKeySymbols + 1;  // branch offsets grow: deeper means damage
/// Bytes that one step may copy at low space, because replaced blocks are freed only when the step
/// is published.
constexpr std::uint64_t kLowSpaceStepBytes = shm::kChunkBytes / 2;

/// Leaves of tries between two checks of the step's time.
constexpr unsigned kLeavesPerCheck = 32;

/// The remainder of one step's bounds.
struct Budget {
  std::size_t names;
  std::uint64_t octets;  // bound of the transaction's allocated bytes
  const std::function<bool()>& is_over;
  unsigned leaves = 0;  // since the last check of the time

  [[nodiscard]] bool is_used_up(const shm::Transaction& transaction) {
    if (names == 0 || transaction.allocated_bytes() >= octets) return true;
    if (++leaves < kLeavesPerCheck) return false;
    leaves = 0;
    return is_over && is_over();
  }
};

/// Walks one trie from a key on and gives each leaf to `move(ref) -> Result<new ref>`. Rewrites
/// branches in victim chunks and those with moved children. Stops when `budget` is used up.
template <class Move>
class TrieMover {
 public:
  TrieMover(shm::Transaction& transaction, LeafKind kind, Budget& budget, Move& move)
      : transaction_(transaction), kind_(kind), budget_(budget), move_(move) {}

  /// `from`: leaves below this key are skipped (and the key itself, unless `inclusive`).
  Result<std::uint32_t> run(std::uint32_t root, const TrieKey* from, bool inclusive) {
    inclusive_ = inclusive;
    if (root == 0) return root;
    from_ = from;
    if (from != nullptr) {
      Trie(transaction_.window(), root, kind_).match(*from, found_);
      if (found_.damaged) return fail(Errc::kCorrupt, "zone trie is damaged");
    }
    return visit(root, from != nullptr, 0);
  }
  [[nodiscard]] bool stopped() const { return stopped_; }

 private:
  Result<std::uint32_t> visit(std::uint32_t ref, bool bounded, unsigned depth) {
    if (depth > kMaxDepth) return fail(Errc::kCorrupt, "zone trie is damaged");
    const Trie trie(transaction_.window(), ref, kind_);
    LeafBlock leaf;
    const Branch* branch = trie.branch_at(ref, leaf);
    if (branch == nullptr && !leaf) return fail(Errc::kCorrupt, "zone trie is damaged");
    // Below the point where the bound leaves the trie, a subtree is wholly before or after the
    // bound.
    if (bounded && (leaf || (!found_.exact && branch->offset() > found_.common))) {
      const int order = TrieKey(trie.labels_of(found_.nearest)).compare(*from_);
      if (order < 0 || (order == 0 && !inclusive_)) return ref;
      bounded = false;
    }
    if (leaf) return visit_leaf(ref);
    return visit_branch(ref, branch, bounded, depth);
  }

  Result<std::uint32_t> visit_leaf(std::uint32_t ref) {
    if (budget_.is_used_up(transaction_)) {
      stopped_ = true;
      return ref;
    }
    --budget_.names;
    return move_(ref);
  }

  Result<std::uint32_t> visit_branch(std::uint32_t ref, const Branch* branch, bool bounded,
                                     unsigned depth) {
    unsigned index = 0;
    bool first_is_bounded = false;
    if (bounded) {
      const unsigned symbol = (*from_)[branch->offset()];
      index = branch->index_of(symbol);
      first_is_bounded = branch->has(symbol);
    }
    if (transaction_.in_victim(shm::Ref<>{ref})) {
      auto moved = make_branch_fresh(transaction_, ref);
      if (!moved) return moved;
      ref = *moved;
    }
    const unsigned count = branch->count();
    for (; index < count && !stopped_; ++index) {
      const auto* here = transaction_.window().at(shm::Ref<Branch>{ref});
      const std::uint32_t child = here->children()[index];
      auto moved = visit(child, std::exchange(first_is_bounded, false), depth + 1);
      if (!moved) return moved;
      if (*moved == child) continue;
      auto fresh = make_branch_fresh(transaction_, ref);
      if (!fresh) return fresh;
      ref = *fresh;
      transaction_.writable(shm::Ref<Branch>{ref})->children()[index] = *moved;
    }
    return ref;
  }

  shm::Transaction& transaction_;
  LeafKind kind_;
  Budget& budget_;
  Move& move_;
  const TrieKey* from_ = nullptr;
  bool inclusive_ = false;
  bool stopped_ = false;
  TrieMatch found_;
};

/// Moves one zone's entry and data.
class ZoneMover {
 public:
  ZoneMover(shm::Transaction& transaction, Budget& budget, CompactCursor& cursor,
            const LeaveAlone& leave_alone)
      : transaction_(transaction), budget_(budget), cursor_(cursor), leave_alone_(leave_alone) {}

  Result<std::uint32_t> operator()(std::uint32_t ref) {
    const auto* old = transaction_.window().at(shm::Ref<ZoneEntry>{ref});
    if (old == nullptr || transaction_.window().room_after(old) < old->octets())
      return fail(Errc::kCorrupt, "zone entry is damaged");
    const dns::Name apex(dns::NameView(reinterpret_cast<const std::uint8_t*>(old + 1),
                                       old->name_octets + std::size_t{1}));
    if (!(cursor_.phase != 0 && apex == cursor_.zone)) {  // this zone has not begun
      cursor_.zone = apex;
      cursor_.name = apex;
      cursor_.phase = kNames;
      cursor_.part = 0;
    }
    if (leave_alone_ && leave_alone_(apex)) {
      cursor_.phase = kDone;
      return ref;
    }
    ZoneEntry entry = *old;
    if (auto moved = move_parts(entry); !moved) return pass(moved);
    return replace(ref, *old, entry);
  }

  static constexpr std::uint8_t kNames = 1;
  static constexpr std::uint8_t kNsec3 = 2;
  static constexpr std::uint8_t kHistory = 3;
  static constexpr std::uint8_t kDone = 4;

 private:
  /// Moves the zone's own data, then the archived data of its snapshots.
  Status move_parts(ZoneEntry& entry) {
    if (cursor_.part == 0)
      if (auto moved = move_data(entry); !moved || cursor_.phase != kDone) return moved;
    if (entry.snapshots == 0) {  // the snapshots may have gone since the last step
      cursor_.phase = kDone;
      return {};
    }
    if (cursor_.part == 0) begin_part();
    std::vector<ZoneSnapshot> snapshots = read_snapshots(transaction_.window(), entry.snapshots);
    bool changed = transaction_.in_victim(shm::Ref<>{entry.snapshots});
    auto moved = move_archives(snapshots, changed);
    if (!moved || !changed) return moved;
    auto list = write_snapshots(transaction_, snapshots);
    if (!list) return pass(list);
    release_snapshot_list(transaction_, entry.snapshots);
    entry.snapshots = *list;
    return {};
  }

  /// Snapshots with the same data are adjacent in the list.
  Status move_archives(std::vector<ZoneSnapshot>& snapshots, bool& changed) {
    std::uint32_t part = 0;
    std::uint32_t before = 0;
    for (ZoneSnapshot& one : snapshots) {
      if (one.archive == 0 || one.archive == std::exchange(before, one.archive)) continue;
      if (++part < cursor_.part) continue;
      auto moved = move_archive(one.archive);
      if (!moved) return pass(moved);
      if (*moved != before) {
        changed = true;
        for (ZoneSnapshot& other : snapshots)
          if (other.archive == before) other.archive = *moved;
        before = *moved;
      }
      if (cursor_.phase != kDone) return {};
      begin_part();
    }
    cursor_.phase = kDone;
    return {};
  }

  Result<std::uint32_t> move_archive(std::uint32_t ref) {
    const auto* old = transaction_.window().at(shm::Ref<ZoneEntry>{ref});
    if (old == nullptr || transaction_.window().room_after(old) < old->octets())
      return fail(Errc::kCorrupt, "snapshot is damaged");
    ZoneEntry entry = *old;
    if (auto moved = move_data(entry); !moved) return pass(moved);
    return replace(ref, *old, entry);
  }

  void begin_part() {
    ++cursor_.part;
    cursor_.phase = kNames;
    cursor_.name = cursor_.zone;
  }

  /// Writes the block with another entry, unless the block can stay as it is.
  Result<std::uint32_t> replace(std::uint32_t ref, const ZoneEntry& old, const ZoneEntry& entry) {
    if (std::memcmp(&entry, &old, sizeof entry) == 0 && !transaction_.in_victim(shm::Ref<>{ref}))
      return ref;
    auto copy = transaction_.allocate(old.octets());
    if (!copy) return pass(copy);
    auto* block = transaction_.writable(copy->as<ZoneEntry>());
    std::memcpy(block, &old, old.octets());
    *block = entry;
    transaction_.release(shm::Ref<>{ref}, old.octets());
    return copy->units;
  }

  Status move_data(ZoneEntry& entry) {
    if (cursor_.phase == kNames) {
      if (entry.apex != 0 && cursor_.name == cursor_.zone) {
        auto apex = relocate_record(transaction_, entry.apex);
        if (!apex) return pass(apex);
        entry.apex = *apex;
      }
      if (auto moved = move_trie(entry.names); !moved || cursor_.phase == kNames) return moved;
    }
    if (cursor_.phase == kNsec3)
      if (auto moved = move_trie(entry.nsec3); !moved || cursor_.phase == kNsec3) return moved;
    if (cursor_.phase == kHistory) return move_trie(entry.history);
    return {};
  }

  /// Moves one trie's records. At the end of the trie the next phase begins.
  Status move_trie(std::uint32_t& root) {
    const auto move = [&](std::uint32_t ref) -> Result<std::uint32_t> {
      const RecordView record = record_view(transaction_.window(), ref, base());
      if (!record) return fail(Errc::kCorrupt, "name record is damaged");
      auto name = dns::Name::join(record.relative_owner(), base());
      if (!name) return pass(name);
      cursor_.name = *name;
      return relocate_record(transaction_, ref);
    };
    TrieMover<decltype(move)> mover(transaction_, LeafKind::kRecord, budget_, move);
    const TrieKey from(relative_labels(cursor_.name, base()));
    const bool from_start = cursor_.name == base();
    auto moved = mover.run(root, from_start ? nullptr : &from, false);
    if (!moved) return pass(moved);
    root = *moved;
    if (mover.stopped()) return {};
    ++cursor_.phase;
    cursor_.name = base();
    return {};
  }

  /// The suffix of the cursor's name. A changeset's key is no name of the zone, and might not fit
  /// after a long apex.
  [[nodiscard]] const dns::Name& base() const {
    static const dns::Name kRoot;
    return cursor_.phase == kHistory ? kRoot : cursor_.zone;
  }

  shm::Transaction& transaction_;
  Budget& budget_;
  CompactCursor& cursor_;
  const LeaveAlone& leave_alone_;
};

/// Moves settings after the cursor's, until the budget is used up or all are done.
Status move_settings(shm::Transaction& transaction, std::uint32_t& root, CompactCursor& cursor,
                     Budget& budget) {
  if (cursor.settings_done) return {};
  const auto move = [&](std::uint32_t ref) -> Result<std::uint32_t> {
    const SettingsEntry* entry = settings_entry(transaction.window(), ref);
    if (entry == nullptr) return fail(Errc::kCorrupt, "settings of zones are damaged");
    cursor.settings = settings_tag(*entry);
    return relocate_settings(transaction, ref);
  };
  TrieMover<decltype(move)> mover(transaction, LeafKind::kRecord, budget, move);
  const SettingsKey key(cursor.settings);
  const TrieKey from(key.labels());
  auto moved = mover.run(root, cursor.settings == 0 ? nullptr : &from, false);
  if (!moved) return pass(moved);
  root = *moved;
  cursor.settings_done = !mover.stopped();
  return {};
}

/// Moves the blocks that hang on the root. When all can stay, the function writes nothing, and no
/// version is needed. Lists of discarded data stay: they are released before the walk, or soon
/// after.
Status compact_fixed_blocks(DraftCore& core) {
  const auto* old = core.data().window().at(core.root().as<RootData>());
  if (old == nullptr) return fail(Errc::kCorrupt, "root of the store is damaged");
  RootData data = *old;
  auto server = move_bytes(core.data(), data.server_settings, data.server_settings_bytes);
  if (!server) return pass(server);
  data.server_settings = *server;
  if (std::memcmp(&data, old, sizeof data) == 0 && !core.data().in_victim(core.root())) return {};
  auto root = core.writable_root();
  if (!root) return pass(root);
  **root = data;
  return {};
}

/// Moves zones after the cursor's, and the rest of the cursor's zone. True at the end.
Result<bool> move_zones(DraftCore& core, std::uint32_t before, CompactCursor& cursor,
                        Budget& budget, const LeaveAlone& leave_alone) {
  ZoneMover zone_mover(core.data(), budget, cursor, leave_alone);
  const bool in_zone = cursor.phase != 0 && cursor.phase != ZoneMover::kDone;
  const TrieKey from(cursor.zone.view().bytes().first(cursor.zone.size() - 1));
  bool zone_unfinished = false;
  auto move = [&](std::uint32_t ref) -> Result<std::uint32_t> {
    if (zone_unfinished) return ref;
    auto moved = zone_mover(ref);
    zone_unfinished = moved && cursor.phase != ZoneMover::kDone;
    if (zone_unfinished) budget.names = 0;
    return moved;
  };
  TrieMover<decltype(move)> mover(core.data(), LeafKind::kZone, budget, move);
  auto zones = mover.run(before, cursor.phase == 0 ? nullptr : &from, in_zone);
  if (!zones) return pass(zones);
  if (*zones != before) {
    auto root = core.writable_root();
    if (!root) return pass(root);
    (*root)->zones = *zones;
  }
  return !mover.stopped() && !zone_unfinished;
}

}  // namespace

Result<bool> compact(Draft& draft, CompactCursor& cursor, std::size_t names,
                     const LeaveAlone& leave_alone, const std::function<bool()>& is_over) {
  DraftCore& core = draft.core();
  if (!core.root()) return true;
  shm::Transaction& transaction = core.data();
  transaction.use_reserve(shm::Reserve::kAllButLast);
  if (auto fixed = compact_fixed_blocks(core); !fixed) return pass(fixed);
  // a zone and a name: the least that makes progress
  const std::uint64_t octets = transaction.low_space() ? kLowSpaceStepBytes : kMaxCompacted;
  Budget budget{std::max<std::size_t>(names, 2), transaction.allocated_bytes() + octets, is_over};
  RootData data = *transaction.window().at(core.root().as<RootData>());
  const std::uint32_t settings = data.settings;
  if (auto moved = move_settings(transaction, data.settings, cursor, budget); !moved)
    return pass(moved);
  if (data.settings != settings) {
    auto root = core.writable_root();
    if (!root) return pass(root);
    (*root)->settings = data.settings;
  }
  if (!cursor.settings_done) return false;
  auto at_end = move_zones(core, data.zones, cursor, budget, leave_alone);
  if (at_end && *at_end) cursor = {};
  return at_end;
}

}  // namespace pando::zone
