#include "zone/audit/audit.h"

#include <algorithm>
#include <functional>
#include <unordered_map>

#include "dns/rdata/rdata.h"
#include "dns/text.h"
#include "shm/store.h"
#include "zone/audit/block_tally.h"
#include "zone/history/history.h"
#include "zone/history/zone_snapshot.h"
#include "zone/read/store_view_inl.h"
#include "zone/record/record_codec.h"
#include "zone/record/shared_sets.h"
#include "zone/trie/stored_settings.h"
#include "zone/trie/trie.h"
#include "zone/trie/zone_layout.h"

namespace pando::zone {

namespace {

/// The state of a walk over the store: the counts so far, and the present place.
class Auditor {
 public:
  Auditor(shm::Window window, shm::Ref<> root, AuditProgress progress = {})
      : window_(window),
        root_ref_(root),
        root_(window.at(root.as<RootData>())),
        tally_(window, std::move(progress)) {}

  void walk_all();
  void walk_zone_at(dns::NameView apex);
  Audit take() {
    audit_.usage = tally_.usage();
    audit_.chunks = tally_.chunks();
    return std::move(audit_);
  }

 private:
  using OnLeaf = std::function<void(std::uint32_t ref)>;
  struct Step {
    std::uint32_t ref;
    unsigned next_child = 0;
  };

  bool count(std::uint32_t ref, std::size_t octets, UsageField kind);
  void fault(std::string_view what);
  void fault_at(ByteView labels, std::string_view what);

  void walk_trie(std::uint32_t root, LeafKind kind, UsageField counted_as, const OnLeaf& on_leaf);
  bool enter(std::vector<Step>& path, std::uint32_t ref, UsageField counted_as);
  void check_key(const std::vector<Step>& path, ByteView labels, TrieKey& before, bool& first);

  void walk_settings();
  void walk_settings_entry(std::uint32_t ref);
  void check_settings_zones();
  void walk_discarded();
  void walk_discarded_block(std::uint32_t ref, std::vector<std::uint32_t>& stack);
  void walk_zone(std::uint32_t ref);
  void walk_pages(std::uint32_t page, UsageField kind);
  void walk_snapshots(const ZoneEntry& entry);
  void walk_archive(std::uint32_t ref);
  void check_snapshot(const ZoneView& zone, const ZoneSnapshot& version);
  void note_snapshots(const ZoneView& zone, const std::vector<ZoneSnapshot>& snapshots);
  void walk_history(const ZoneEntry& entry);
  void check_counts(const ZoneEntry& entry);
  void check_bytes(const ZoneEntry& entry, std::uint64_t found);
  void check_history(const ZoneView& zone, const ZoneEntry& entry);
  void walk_record(std::uint32_t ref);
  void count_record(std::uint32_t ref, UsageField owner, UsageField headers, UsageField rdata,
                    UsageField signatures);
  void check_record(const RecordView& record);
  void check_rrset(const RecordView& record, const RRsetView& rrset);

  shm::Window window_;
  shm::Ref<> root_ref_;
  const RootData* root_;
  BlockTally tally_;
  Audit audit_;
  dns::Name apex_;  // of the zone that is being walked
  std::uint64_t names_ = 0, records_ = 0;
  std::map<std::uint32_t, std::uint64_t> archives_;  // bytes of archived data by reference
  // by tag: zones found less zones counted
  std::unordered_map<std::uint64_t, std::int64_t> settings_zones_;
};

void Auditor::fault(std::string_view what) {
  audit_.add_fault(apex_.size() <= 1 ? std::string(what)
                                     : fmt::format("{}: {}", dns::to_text(apex_), what));
}

void Auditor::fault_at(ByteView labels, std::string_view what) {
  std::string name;
  dns::append_labels_text(name, labels);
  fault(fmt::format("{}: {}", name.empty() ? "@" : name, what));
}

bool Auditor::count(std::uint32_t ref, std::size_t octets, UsageField kind) {
  if (tally_.count(ref, octets, kind)) return true;
  fault(fmt::format("a reference leads to {}, where no block of {} bytes is", ref, octets));
  return false;
}

/// Puts a branch on the path; false when `ref` is a leaf or damaged.
bool Auditor::enter(std::vector<Step>& path, std::uint32_t ref, UsageField counted_as) {
  LeafBlock leaf;
  const Trie trie(window_, ref, LeafKind::kRecord);
  const Branch* branch = trie.branch_at(ref, leaf);
  if (branch == nullptr) {
    if (!leaf) fault(fmt::format("a trie leads to {}, where nothing can be read", ref));
    return static_cast<bool>(leaf);
  }
  if (!count(ref, Branch::octets(branch->count()), counted_as)) return false;
  if (branch->count() < 2) fault("a branch has less than two children");
  const auto* above = path.empty() ? nullptr : window_.at(shm::Ref<Branch>{path.back().ref});
  if (above != nullptr && above->offset() >= branch->offset()) {
    fault("a trie's offsets do not grow");
    return false;
  }
  path.push_back({ref});
  return false;
}

/// Depth first, so leaves come in the order of their names.
void Auditor::walk_trie(std::uint32_t root, LeafKind kind, UsageField counted_as,
                        const OnLeaf& on_leaf) {
  if (root == 0) return;
  std::vector<Step> path;
  TrieKey before;
  bool first = true;
  const auto visit = [&](std::uint32_t ref) {
    const Trie trie(window_, ref, kind);
    LeafBlock leaf;
    trie.branch_at(ref, leaf);
    check_key(path, trie.labels_of(leaf), before, first);
    on_leaf(ref);
  };
  if (enter(path, root, counted_as)) visit(root);
  while (!path.empty() && tally_.has_room()) {
    const Branch& branch = *window_.at(shm::Ref<Branch>{path.back().ref});
    if (path.back().next_child == branch.count()) {
      path.pop_back();
      continue;
    }
    const std::uint32_t child = branch.children()[path.back().next_child++];
    if (enter(path, child, counted_as)) visit(child);
  }
}

/// Checks that a leaf's key has the symbols that lead to the leaf, and sorts after the previous
/// leaf.
void Auditor::check_key(const std::vector<Step>& path, ByteView labels, TrieKey& before,
                        bool& first) {
  if (labels.data() == nullptr) return fault("a leaf's name cannot be read");
  const TrieKey key(labels);
  for (const Step& step : path) {
    const Branch& branch = *window_.at(shm::Ref<Branch>{step.ref});
    const unsigned symbol = key[branch.offset()];
    if (!branch.has(symbol) || branch.index_of(symbol) + 1 != step.next_child)
      return fault_at(labels, "stands in the wrong place of its trie");
  }
  if (!first && before.compare(key) >= 0) fault_at(labels, "is not behind the name before it");
  before = key;
  first = false;
}

void Auditor::walk_all() {
  if (root_ == nullptr) {
    if (root_ref_.units != 0) fault("the root cannot be read");
    return;
  }
  count(root_ref_.units, sizeof(RootData), &Usage::settings);
  walk_settings();
  walk_discarded();
  walk_trie(root_->zones, LeafKind::kZone, &Usage::trie,
            [this](std::uint32_t ref) { walk_zone(ref); });
  apex_ = dns::Name();
  check_settings_zones();
  if (audit_.zones != root_->zone_count)
    fault(fmt::format("{} zones found, {} counted", audit_.zones, root_->zone_count));
  if (archives_.size() != root_->archives)
    fault(fmt::format("archived data of {} zones found, {} counted", archives_.size(),
                      root_->archives));
}

void Auditor::walk_zone_at(dns::NameView apex) {
  const ByteView labels = apex.bytes().first(apex.size() - 1);
  const Trie zones(window_, root_ == nullptr ? 0 : root_->zones, LeafKind::kZone);
  const LeafBlock leaf = zones.find(TrieKey(labels), labels);
  if (!leaf) return fault(fmt::format("no zone {}", dns::to_text(apex)));
  walk_zone(leaf.ref.units);
}

void Auditor::walk_settings() {
  if (root_->server_settings != 0)
    count(root_->server_settings, root_->server_settings_bytes, &Usage::settings);
  walk_trie(root_->settings, LeafKind::kRecord, &Usage::settings,
            [this](std::uint32_t ref) { walk_settings_entry(ref); });
}

void Auditor::walk_settings_entry(std::uint32_t ref) {
  const SettingsEntry* entry = settings_entry(window_, ref);
  if (entry == nullptr || !count(ref, sizeof *entry, &Usage::settings) ||
      !count(entry->block, entry->octets, &Usage::settings))
    return fault("settings of zones cannot be read");
  const std::uint64_t tag = settings_tag(*entry);
  const auto* octets =
      reinterpret_cast<const std::uint8_t*>(window_.at(shm::Ref<>{entry->block}, entry->octets));
  if (tag_of({octets, entry->octets}) != tag) fault("settings of zones do not have their tag");
  settings_zones_[tag] -= entry->zones;
}

/// Each zone was added to the count of its settings, from which the stored count was taken away.
void Auditor::check_settings_zones() {
  const auto wrong = std::count_if(settings_zones_.begin(), settings_zones_.end(),
                                   [](const auto& one) { return one.second != 0; });
  if (wrong > 0) fault(fmt::format("{} sets of settings have another number of zones", wrong));
}

void Auditor::walk_discarded() {
  std::vector<std::uint32_t> stack;
  for (std::uint32_t ref = root_->discarded; ref != 0;) {
    const auto* list = window_.at(shm::Ref<DiscardedStack>{ref});
    if (list == nullptr || !count(ref, DiscardedStack::octets(list->count), &Usage::discarded))
      return fault("the list of replaced zones cannot be read");
    stack.insert(stack.end(), list->refs(), list->refs() + list->count);
    ref = list->older;
  }
  while (!stack.empty() && tally_.has_room()) {
    const std::uint32_t ref = stack.back();
    stack.pop_back();
    walk_discarded_block(ref, stack);
  }
}

void Auditor::walk_discarded_block(std::uint32_t ref, std::vector<std::uint32_t>& stack) {
  LeafBlock leaf;
  const Trie trie(window_, ref, LeafKind::kRecord);
  const Branch* branch = trie.branch_at(ref, leaf);
  constexpr UsageField kind = &Usage::discarded;
  if (branch == nullptr) return count_record(ref, kind, kind, kind, kind);
  if (count(ref, Branch::octets(branch->count()), kind))
    stack.insert(stack.end(), branch->children(), branch->children() + branch->count());
}

void Auditor::walk_zone(std::uint32_t ref) {
  const auto* entry = window_.at(shm::Ref<ZoneEntry>{ref});
  if (entry == nullptr || !count(ref, entry->octets(), &Usage::entries))
    return fault("an entry of the table of zones cannot be read");
  const auto* name = reinterpret_cast<const std::uint8_t*>(entry + 1);
  apex_ = dns::Name();
  if (auto apex = dns::Name::from_wire({name, entry->name_octets + std::size_t{1}}); apex)
    apex_ = *apex;
  else
    fault("an entry of the table of zones has no name");
  ++audit_.zones;
  ++settings_zones_[entry->settings_hash];
  names_ = records_ = 0;
  const std::uint64_t before = tally_.bytes();
  if (entry->apex != 0) walk_record(entry->apex);
  for (const std::uint32_t trie : {entry->names, entry->nsec3})
    walk_trie(trie, LeafKind::kRecord, &Usage::trie,
              [this](std::uint32_t leaf) { walk_record(leaf); });
  walk_pages(entry->shared, &Usage::shared);
  check_bytes(*entry, tally_.bytes() - before);
  check_counts(*entry);
  walk_history(*entry);
  audit_.names += names_;
  audit_.records += records_;
  walk_snapshots(*entry);
}

void Auditor::walk_pages(std::uint32_t page, UsageField kind) {
  while (page != 0 && count(page, kSharedPageBytes, kind))
    page = window_.at(shm::Ref<SharedPage>{page})->older;
}

/// Archived data are not compared: a copy for snapshots has no shared pages, but the same count.
void Auditor::check_bytes(const ZoneEntry& entry, std::uint64_t found) {
  const std::uint64_t counted = std::uint64_t{entry.data_units} * shm::kUnit;
  if (found != counted) fault(fmt::format("{} bytes of data found, {} counted", found, counted));
}

void Auditor::check_counts(const ZoneEntry& entry) {
  if (names_ != entry.name_count)
    fault(fmt::format("{} names found, {} counted", names_, entry.name_count));
  if (records_ != entry.record_count)
    fault(fmt::format("{} records found, {} counted", records_, entry.record_count));
  if ((entry.flags & ZoneEntry::kLoaded) == 0) return;
  const RRsetView soa = record_view(window_, entry.apex, apex_).find(dns::RRType::kSOA);
  const ByteView rdata = soa ? soa.first_rdata() : ByteView();
  if (rdata.size() < 20) return fault("has no SOA record");
  if (load_be32(rdata.data() + rdata.size() - 20) != entry.serial)
    fault("its serial is not that of its SOA record");
}

void Auditor::walk_history(const ZoneEntry& entry) {
  constexpr UsageField kind = &Usage::history;
  walk_trie(entry.history, LeafKind::kRecord, kind,
            [&](std::uint32_t ref) { count_record(ref, kind, kind, kind, kind); });
  if (entry.history != 0) check_history(StoreView(window_, root_ref_, 0).zone_at(apex_), entry);
}

/// Walks the list of snapshots, and the archived data, once each.
void Auditor::walk_snapshots(const ZoneEntry& entry) {
  if (entry.snapshots == 0) return;
  const std::vector<ZoneSnapshot> snapshots = read_snapshots(window_, entry.snapshots);
  if (snapshots.empty() ||
      !count(entry.snapshots, SnapshotList::octets(snapshots.size()), &Usage::snapshots))
    return fault("its list of snapshots cannot be read");
  const ZoneView zone = StoreView(window_, root_ref_, 0).zone_at(apex_);
  std::uint32_t before = 0;
  for (const ZoneSnapshot& one : snapshots) {
    if (one.archive != 0 && one.archive != before) walk_archive(one.archive);
    before = one.archive;
    check_snapshot(zone, one);
  }
  note_snapshots(zone, snapshots);
}

void Auditor::walk_archive(std::uint32_t ref) {
  const auto* entry = window_.at(shm::Ref<ZoneEntry>{ref});
  if (entry == nullptr || window_.room_after(entry) < entry->octets() ||
      !count(ref, entry->octets(), &Usage::snapshots))
    return fault("archived data cannot be read");
  names_ = records_ = 0;
  constexpr UsageField kind = &Usage::snapshots;
  const std::uint64_t before = tally_.usage().snapshots;
  const auto on_leaf = [this](std::uint32_t leaf) {
    count_record(leaf, kind, kind, kind, kind);
    if (const RecordView record = record_view(window_, leaf, apex_)) check_record(record);
  };
  on_leaf(entry->apex);
  for (const std::uint32_t trie : {entry->names, entry->nsec3})
    walk_trie(trie, LeafKind::kRecord, kind, on_leaf);
  walk_pages(entry->shared, kind);
  archives_[ref] = tally_.usage().snapshots - before;
  check_counts(*entry);
  walk_trie(entry->history, LeafKind::kRecord, kind,
            [&](std::uint32_t leaf) { count_record(leaf, kind, kind, kind, kind); });
}

void Auditor::check_snapshot(const ZoneView& zone, const ZoneSnapshot& version) {
  if (!version.held()) return;
  const ZoneView data = data_of(zone, version);
  const bool there =
      data && (data.serial() == version.serial || HistoryReader::from(data, version.serial));
  if (!there) fault(fmt::format("nothing leads to its snapshot '{}'", version.label));
}

void Auditor::note_snapshots(const ZoneView& zone, const std::vector<ZoneSnapshot>& snapshots) {
  const std::string apex = dns::to_text(apex_);
  for (std::size_t i = 0; i < snapshots.size(); ++i) {
    const ZoneView data = data_of(zone, snapshots[i]);
    std::uint64_t octets = 0;
    if (data) {
      const bool last =
          i + 1 == snapshots.size() || snapshots[i + 1].archive != snapshots[i].archive;
      octets =
          history_bytes(data, snapshots[i].serial, last ? data.serial() : snapshots[i + 1].serial);
      if (last && snapshots[i].archive != 0) octets += archives_[snapshots[i].archive];
    }
    audit_.snapshots.push_back({apex, snapshots[i].label, octets});
  }
}

void Auditor::check_history(const ZoneView& zone, const ZoneEntry& entry) {
  auto reader = zone ? HistoryReader::from(zone, dns::Serial{entry.history_first}) : std::nullopt;
  if (!reader) return fault("its history does not reach from its first serial to the present one");
  const std::uint32_t promised = reader->records();
  std::uint32_t found = 0;
  while (reader->next() != nullptr) ++found;
  if (reader->damaged() || found != promised)
    fault(fmt::format("its history has {} records that can be read, of {}", found, promised));
}

void Auditor::count_record(std::uint32_t ref, UsageField owner, UsageField headers,
                           UsageField rdata, UsageField signatures) {
  RecordParts parts;
  if (!take_apart(window_, ref, parts))
    return fault(fmt::format("the record at {} cannot be read", ref));
  if (!count(ref, parts.octets, owner)) return;
  for (const auto& [block, octets] : parts.external)
    if (!count(block, octets, owner)) return;
  // The record counted as one kind until here; now each part goes to its own kind.
  std::uint64_t external = 0;
  for (const auto& block : parts.external) external += block.second;
  tally_.move(parts.headers, owner, headers);
  tally_.move(parts.signatures, owner, signatures);
  tally_.move(parts.octets + external - parts.owner - parts.headers - parts.signatures, owner,
              rdata);
}

void Auditor::walk_record(std::uint32_t ref) {
  count_record(ref, &Usage::owners, &Usage::headers, &Usage::rdata, &Usage::signatures);
  const RecordView record = record_view(window_, ref, apex_);
  if (record) check_record(record);
}

void Auditor::check_record(const RecordView& record) {
  ++names_;
  unsigned before = 0;
  std::size_t sets = 0;
  record.for_each_rrset([&](const RRsetView& rrset) {
    const auto type = static_cast<unsigned>(rrset.type());
    if (sets++ > 0 && type <= before)
      fault_at(record.relative_owner(), "its RRsets are not in order");
    before = type;
    check_rrset(record, rrset);
  });
  if (sets != record.rrset_count()) fault_at(record.relative_owner(), "an RRset cannot be read");
}

void Auditor::check_rrset(const RecordView& record, const RRsetView& rrset) {
  const auto wrong = [&](std::string_view what) {
    fault_at(record.relative_owner(), fmt::format("{} {}", dns::to_text(rrset.type()), what));
  };
  std::uint64_t found = 0;
  Bytes before;
  rrset.for_each_rdata([&](ByteView rdata) {
    if (!dns::check_stored_rdata(rrset.type(), rdata)) wrong("has RDATA that is malformed");
    if (found++ > 0 && dns::compare_rdata_canonical(rrset.type(), before, rdata) >= 0)
      wrong("has RDATA that is not in order");
    before.assign(rdata.begin(), rdata.end());
  });
  std::uint64_t signatures = 0;
  rrset.for_each_signature([&](ByteView) { ++signatures; });
  if (found != rrset.count() || signatures != rrset.signature_count())
    wrong(fmt::format("has {} of {} records", found + signatures,
                      rrset.count() + rrset.signature_count()));
  records_ += found + signatures;
}

}  // namespace

std::uint64_t Usage::total() const noexcept {
  return trie + entries + owners + headers + rdata + signatures + shared + history + snapshots +
         settings + discarded + padding;
}

std::map<std::string, std::uint64_t> Usage::by_name() const {
  return {{"trie", trie},
          {"zone entries", entries},
          {"owners", owners},
          {"headers", headers},
          {"rdata", rdata},
          {"signatures", signatures},
          {"shared sets", shared},
          {"history", history},
          {"snapshots", snapshots},
          {"settings", settings},
          {"replaced zones", discarded},
          {"padding", padding}};
}

void Audit::add_fault(std::string text) {
  if (fault_count++ < kFaultsKept) faults.push_back(std::move(text));
}

Audit audit(shm::Window window, shm::Ref<> root, AuditProgress progress) {
  Auditor auditor(window, root, std::move(progress));
  auditor.walk_all();
  return auditor.take();
}

Audit audit_zone(shm::Window window, shm::Ref<> root, dns::NameView apex) {
  Auditor auditor(window, root);
  auditor.walk_zone_at(apex);
  return auditor.take();
}

void compare_chunks(Audit& audit, const std::vector<std::uint32_t>& counted) {
  const std::size_t chunks = std::max(audit.chunks.size(), counted.size());
  for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
    const std::uint32_t found = chunk < audit.chunks.size() ? audit.chunks[chunk] : 0;
    const std::uint32_t known = chunk < counted.size() ? counted[chunk] : 0;
    if (found != known)
      audit.add_fault(
          fmt::format("chunk {}: blocks of {} bytes found, {} counted", chunk, found, known));
  }
}

}  // namespace pando::zone
