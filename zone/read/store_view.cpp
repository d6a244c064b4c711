#include "zone/read/store_view.h"

#include <algorithm>
#include <utility>

#include "zone/read/record_scan.h"
#include "zone/trie/stored_settings.h"
#include "zone/trie/trie.h"

namespace pando::zone {

namespace {

void delete_walk(TrieWalk* walk) { delete walk; }

}  // namespace

OwnerName RRsetView::owner() const noexcept {
  const std::size_t octets = dns::wire_name_length({apex_, dns::kMaxNameOctets});
  return {{block_ + sizeof(RecordHeader), block_[1]}, {apex_, octets}};
}

bool RRsetView::has_name_at_or_below(dns::NameView name) const noexcept {
  if (data_ == nullptr) return false;
  const OwnerName end = owner();
  const std::size_t shared = end.labels.size() + end.apex.size();
  // A name in relative form must end with these labels; the comparison mostly fails.
  const ByteView deeper = name.bytes().first(name.size() > shared ? name.size() - shared : 0);
  const auto may_be = [&](ByteView stored) {
    return stored.size() >= deeper.size() &&
           std::equal(deeper.begin(), deeper.end(), stored.end() - std::ptrdiff_t(deeper.size()),
                      [](auto a, auto b) { return dns::kFoldCase[a] == dns::kFoldCase[b]; });
  };
  bool found = false;
  for_each_stored([&](ByteView stored) {
    NameRoom room;
    if (is_relative(stored)) stored = may_be(stored) ? whole_name(stored, end, room) : ByteView();
    found = dns::is_wire_name(stored) &&
            dns::NameView(stored.data(), stored.size()).is_at_or_below(name);
    return !found;
  });
  return found;
}

bool RRsetView::has_whole_names() const noexcept {
  bool whole = true;
  if (type_ == kRelativeType)
    for_each_stored([&](ByteView stored) {
      whole = !is_relative(stored);
      return whole;
    });
  return whole;
}

ByteView RRsetView::first_rdata() const noexcept {
  if (count_ == 0 || type_ == kRelativeType) return {};
  const std::uint8_t* const end = data_ + size_;
  std::uint32_t length = static_cast<std::uint32_t>(dns::fixed_rdata_length(type_));
  const std::uint8_t* p = length != 0 ? data_ : get_varint(data_, end, length);
  if (p == nullptr || static_cast<std::size_t>(end - p) < length) return {};
  return {p, length};
}

inline RecordView RecordView::at(shm::Window window, std::uint32_t ref,
                                 const std::uint8_t* apex) noexcept {
  RecordView view;
  const auto* header = window.at(shm::Ref<RecordHeader>{ref});
  if (header == nullptr || (header->flags & RecordHeader::kBranchBit) != 0) return view;
  const auto* block = reinterpret_cast<const std::uint8_t*>(header);
  if (first_rrset(block, block + window.room_after(block)) == nullptr) return view;
  view.block_ = block;
  view.window_ = window;
  view.apex_ = apex;
  return view;
}

RecordView record_view(shm::Window window, std::uint32_t ref, dns::NameView apex) noexcept {
  return RecordView::at(window, ref, apex.data());
}

inline RRsetView RecordView::view_of(const RawRRset& raw) const noexcept {
  RRsetView view;
  view.data_ = raw.data;
  view.block_ = block_;
  view.apex_ = apex_;
  view.size_ = raw.data_bytes;
  view.ttl_ = {raw.ttl};
  view.type_ = static_cast<dns::RRType>(raw.type);
  view.count_ = raw.rdata_count;
  view.signature_count_ = raw.signature_count;
  view.shared_ = raw.external == 0 && raw.external_at != nullptr;
  return view;
}

const std::uint8_t* RecordView::step(const std::uint8_t* p, RRsetView& out) const noexcept {
  RawRRset raw;
  p = scan_rrset(p, end(), window_, raw);
  if (p != nullptr) out = view_of(raw);
  return p;
}

bool RecordView::has_ns() const noexcept { return (block_[0] & RecordHeader::kHasNs) != 0; }
bool RecordView::has_cname() const noexcept { return (block_[0] & RecordHeader::kHasCname) != 0; }
bool RecordView::has_nsec() const noexcept { return (block_[0] & RecordHeader::kHasNsec) != 0; }
bool RecordView::has_dname() const noexcept { return (block_[0] & RecordHeader::kHasDname) != 0; }

RRsetView RecordView::find(dns::RRType type) const noexcept {
  if (block_ == nullptr) return {};
  const std::uint8_t* const end_of_block = end();
  const std::uint8_t* p = first();
  for (unsigned left = block_[2]; left > 0 && p != nullptr; --left) {
    RawRRset raw;
    p = scan_rrset(p, end_of_block, window_, raw);
    if (p == nullptr || raw.type > static_cast<std::uint16_t>(type)) break;  // types ascend
    if (raw.type == static_cast<std::uint16_t>(type)) return view_of(raw);
  }
  return {};
}

std::uint32_t RecordView::shared_set(dns::RRType type) const noexcept {
  if (block_ == nullptr) return 0;
  const std::uint8_t* p = first();
  for (unsigned left = block_[2]; left > 0 && p != nullptr; --left) {
    RawRRset raw;
    p = scan_rrset(p, end(), window_, raw);
    if (p != nullptr && raw.type == static_cast<std::uint16_t>(type)) return raw.shared();
  }
  return 0;
}

// --- one zone ---

inline RecordView ZoneView::record(std::uint32_t ref) const noexcept {
  return RecordView::at(window_, ref, apex().data());
}
Trie ZoneView::names() const noexcept { return {window_, entry_->names, LeafKind::kRecord}; }
Trie ZoneView::nsec3() const noexcept { return {window_, entry_->nsec3, LeafKind::kRecord}; }

dns::NameView ZoneView::apex() const noexcept {
  // Labels and, after them, a root octet that the block has for this purpose.
  return {reinterpret_cast<const std::uint8_t*>(entry_ + 1), entry_->name_octets + std::size_t{1}};
}
std::uint64_t ZoneView::data_version() const noexcept { return entry_->data_version; }
bool ZoneView::loaded() const noexcept { return (entry_->flags & ZoneEntry::kLoaded) != 0; }
std::uint32_t ZoneView::side_index() const noexcept { return entry_->side_index; }
dns::Serial ZoneView::serial() const noexcept { return {entry_->serial}; }
std::optional<dns::Serial> primary_serial(const ZoneView& zone) noexcept {
  if (!zone || (zone.entry_->flags & ZoneEntry::kPrimarySerial) == 0) return std::nullopt;
  return dns::Serial{zone.entry_->primary_serial};
}
RecordView ZoneView::apex_record() const noexcept {
  return loaded() ? record(entry_->apex) : RecordView{};
}
std::uint64_t ZoneView::record_count() const noexcept { return entry_->record_count; }
std::uint64_t ZoneView::name_count() const noexcept { return entry_->name_count; }
ZoneFigures ZoneFigures::of(const ZoneView& zone) noexcept {
  return {std::uint64_t{zone.entry_->data_units} * shm::kUnit, zone.entry_->changed_at};
}
std::uint64_t ZoneView::history_bytes() const noexcept { return entry_->history_bytes; }
bool ZoneView::has_snapshots() const noexcept { return entry_->snapshots != 0; }
bool ZoneView::has_shared_sets() const noexcept { return entry_->shared != 0; }
ZoneFileInfo ZoneView::source() const noexcept {
  return {entry_->source_mtime_ns, entry_->source_bytes, entry_->source_hash, entry_->source_stamp};
}
std::uint64_t ZoneView::settings_tag() const noexcept { return entry_->settings_hash; }

ByteView ZoneView::settings_bytes() const noexcept {
  return find_settings(window_, root_->settings, entry_->settings_hash);
}

Denial ZoneView::denial() const noexcept {
  if ((entry_->flags & ZoneEntry::kNsec) != 0) return Denial::kNsec;
  return (entry_->flags & ZoneEntry::kNsec3) != 0 ? Denial::kNsec3 : Denial::kUnsigned;
}

Nsec3Parameters ZoneView::nsec3_parameters() const noexcept {
  Nsec3Parameters parameters;
  bool chosen = false;
  apex_record().find(dns::RRType::kNSEC3PARAM).for_each_rdata([&](ByteView rdata) {
    // RFC 5155 §4.1.2: a record with flags other than zero is not for use.
    if (chosen || rdata.size() < 5 || rdata[1] != 0 || rdata[0] != 1) return;
    chosen = true;
    parameters.hash = rdata[0];
    parameters.iterations = load_be16(rdata.data() + 2);
    parameters.salt = rdata.subspan(5, std::min<std::size_t>(rdata[4], rdata.size() - 5));
  });
  return parameters;
}

RecordView ZoneView::topmost_barrier(const TrieMatch& found, std::size_t apex_labels,
                                     std::uint8_t& labels) const noexcept {
  const auto stops = [&](std::uint32_t ref, unsigned flags) {
    const auto* header = window_.at(shm::Ref<RecordHeader>{ref});
    return header != nullptr && (header->flags & flags) != 0;
  };
  if (stops(entry_->apex, RecordHeader::kHasDname)) {
    // RFC 6672 §2.3: a DNAME at the apex covers all below it
    labels = static_cast<std::uint8_t>(apex_labels);
    return record(entry_->apex);
  }
  for (unsigned i = 0; i < found.ancestor_count; ++i) {
    if (!stops(found.ancestors[i], RecordHeader::kHasNs | RecordHeader::kHasDname)) continue;
    const RecordView ancestor = record(found.ancestors[i]);
    if (!ancestor) continue;
    const ByteView owner(ancestor.block_ + sizeof(RecordHeader), ancestor.block_[1]);
    std::size_t depth = 0;
    for (std::size_t at = 0; at < owner.size(); at += owner[at] + std::size_t{1}) ++depth;
    labels = static_cast<std::uint8_t>(apex_labels + depth);
    return ancestor;
  }
  return {};
}

Match ZoneView::lookup(dns::NameView name, Wanted wanted) const noexcept {
  if (!loaded()) return {};
  const std::size_t apex_labels = apex().label_count();
  const ByteView labels = relative_labels(name, apex());
  return lookup_below(labels, TrieKey(labels), apex_labels, wanted, nullptr);
}

Match ZoneView::lookup(const NameKey& key, Wanted wanted) const noexcept {
  if (!loaded()) return {};
  const std::size_t apex_labels = apex().label_count();
  const ByteView labels = relative_labels(key.name(), apex());
  return lookup_below(labels, key.below(apex_labels), apex_labels, wanted, key.descent());
}

inline Match ZoneView::lookup_below(ByteView labels, KeyView key, std::size_t apex_labels,
                                    Wanted wanted, const TrieDescent* made) const noexcept {
  Match match;
  if (labels.empty()) {
    match.exact = record(entry_->apex);
    match.damaged = !match.exact;
    match.encloser_labels = static_cast<std::uint8_t>(apex_labels);
    return match;
  }
  const Trie trie = names();
  TrieMatch found;
  TriePath own_path;
  TrieBranches path;
  if (made != nullptr && trie.has_ended(*made, key)) {
    trie.match(*made, found, labels);
    path = made->path();
  } else {
    trie.match(key, found, wanted == Wanted::kNsecToo ? &own_path : nullptr, labels);
    path = own_path;
  }
  if (found.exact) match.exact = record(found.nearest.ref.units);
  match.damaged = found.damaged || (found.exact && !match.exact);
  match.empty_non_terminal = found.prefix_of_leaf;
  match.encloser_labels = static_cast<std::uint8_t>(apex_labels + key.labels_within(found.common));
  match.barrier = topmost_barrier(found, apex_labels, match.barrier_labels);
  // A record that is no ancestor of the name must not become the barrier.
  match.damaged |= match.barrier_labels > match.encloser_labels;
  if (wanted == Wanted::kNsecToo && !match.exact && !match.barrier && !match.damaged)
    match.nsec = nsec_from(trie.before(key, found, path));
  return match;
}

Bookmark::Bookmark(const ZoneView& zone, const RecordView& record) noexcept {
  const auto reference = [&](const void* block) {
    const auto offset = static_cast<const std::byte*>(block) - zone.window_.base();
    return static_cast<std::uint32_t>(static_cast<std::uint64_t>(offset) / shm::kUnit);
  };
  if (zone) zone_ = reference(zone.entry_);
  if (record) record_ = reference(record.block_);
}

RecordView Bookmark::record_in(const ZoneView& zone) const noexcept { return zone.record(record_); }

void Bookmark::fetch_record(const ZoneView& zone, std::size_t lines) const noexcept {
  constexpr std::size_t kLine = 64;
  if (!has_record()) return;
  const std::byte* const block = zone.window_.base() + shm::Ref<>{record_}.offset();
  for (std::size_t line = 0; line < lines; ++line) zone::fetch(block + line * kLine);
}

RecordView ZoneView::record_at(dns::NameView name) const noexcept {
  if (!loaded()) return {};
  const ByteView labels = relative_labels(name, apex());
  if (labels.empty()) return record(entry_->apex);
  const LeafBlock leaf = names().find(TrieKey(labels), labels);
  return leaf ? record(leaf.ref.units) : RecordView{};
}

RecordView ZoneView::wildcard_below(dns::NameView encloser) const noexcept {
  if (!loaded() || encloser.size() + 2 > dns::kMaxNameOctets) return {};
  std::uint8_t wire[dns::kMaxNameOctets] = {1, '*'};
  std::copy_n(encloser.data(), encloser.size(), wire + 2);
  return record_at(dns::NameView(wire, encloser.size() + 2));
}

RecordView ZoneView::nsec_at_or_before(dns::NameView name) const noexcept {
  if (!loaded()) return {};
  const ByteView labels = relative_labels(name, apex());
  return nsec_from(labels.empty() ? LeafBlock{} : names().at_or_before(TrieKey(labels)));
}

/// The NSEC record of `leaf` or, when `leaf` has none, of the nearest name before.
RecordView ZoneView::nsec_from(LeafBlock leaf) const noexcept {
  // A name without NSEC is glue or occluded. The cut or DNAME above it has an NSEC, and stands
  // before all names below. More rounds are for zones that are not well formed.
  constexpr unsigned kMaxRounds = 8;
  for (unsigned round = 0; leaf && round < kMaxRounds; ++round) {
    const RecordView candidate = record(leaf.ref.units);
    if (!candidate) return {};
    if (candidate.has_nsec()) return candidate;
    const TrieKey key(candidate.relative_owner());
    TrieMatch found;
    names().match(key, found);
    std::uint8_t ignored = 0;
    const RecordView barrier = topmost_barrier(found, 0, ignored);
    if (barrier && barrier.has_nsec()) return barrier;
    leaf = names().before(key);
  }
  const RecordView top = record(entry_->apex);
  return top && top.has_nsec() ? top : RecordView{};
}

namespace {

constexpr std::size_t kHashOctets = 20;       // SHA-1, the only hash there is (RFC 5155 §11)
constexpr std::size_t kHashLabelOctets = 32;  // base32hex of the hash

/// First label of an NSEC3 owner: base32hex without padding, lower case (RFC 5155 §3.3).
void hash_label(ByteView hash, std::uint8_t (&label)[1 + kHashLabelOctets]) noexcept {
  static constexpr char kDigits[] = "0123456789abcdefghijklmnopqrstuv";
  label[0] = kHashLabelOctets;
  for (std::size_t i = 0; i < kHashLabelOctets; ++i) {
    const std::size_t bit = i * 5;
    const unsigned high = hash[bit / 8];
    const unsigned low = bit / 8 + 1 < kHashOctets ? hash[bit / 8 + 1] : 0U;
    const unsigned window = high << 8 | low;
    label[1 + i] = static_cast<std::uint8_t>(kDigits[(window >> (11 - bit % 8)) & 31U]);
  }
}

/// A record whose owner is no hash is no part of a chain, wherever it stands in the order.
bool is_hash_label(ByteView owner) noexcept {
  if (owner.size() != 1 + kHashLabelOctets || owner[0] != kHashLabelOctets) return false;
  return std::all_of(owner.begin() + 1, owner.end(), [](std::uint8_t octet) {
    const std::uint8_t lower = dns::kFoldCase[octet];
    return (lower >= '0' && lower <= '9') || (lower >= 'a' && lower <= 'v');
  });
}

/// True when the record has an NSEC3 of the chain with these parameters. A next hash of another
/// length than the hash's links to no record, so its NSEC3 is part of no chain.
bool in_chain(const RecordView& record, const Nsec3Parameters& parameters) noexcept {
  bool found = false;
  record.find(dns::RRType::kNSEC3).for_each_rdata([&](ByteView rdata) {
    found = found ||
            (rdata.size() > 5 && rdata[0] == parameters.hash &&
             load_be16(rdata.data() + 2) == parameters.iterations &&
             rdata[4] == parameters.salt.size() && rdata.size() > 5U + rdata[4] + kHashOctets &&
             rdata[5U + rdata[4]] == kHashOctets &&
             std::equal(parameters.salt.begin(), parameters.salt.end(), rdata.begin() + 5));
  });
  return found;
}

}  // namespace

RecordView ZoneView::nsec3_match_or_cover(ByteView hash, bool& exact) const noexcept {
  exact = false;
  if (!loaded() || hash.size() != kHashOctets) return {};
  std::uint8_t label[1 + kHashLabelOctets];
  hash_label(hash, label);
  const Trie trie = nsec3();
  const Nsec3Parameters parameters = nsec3_parameters();
  // Two chains stand mixed while parameters change (RFC 5155 §10.4): step back over the other one.
  // Where one record in a hundred belongs to the chain, one search in 30,000 fails.
  constexpr unsigned kMaxSteps = 1024;
  TrieKey key(ByteView(label, sizeof label));
  LeafBlock leaf = trie.at_or_before(key);
  bool wrapped = false;
  for (unsigned step = 0; step < kMaxSteps; ++step) {
    if (!leaf) {  // before the first: the last one covers it (RFC 5155 §7.2.1)
      if (wrapped) return {};
      wrapped = true;
      leaf = trie.last();
      if (!leaf) return {};
    }
    const RecordView candidate = record(leaf.ref.units);
    if (!candidate) return {};
    const ByteView owner = candidate.relative_owner();
    if (is_hash_label(owner) && in_chain(candidate, parameters)) {
      exact = !wrapped && TrieKey(owner).compare(TrieKey(ByteView(label, sizeof label))) == 0;
      return candidate;
    }
    leaf = trie.before(TrieKey(owner));
  }
  return {};
}

RecordView ZoneView::nsec3_at(ByteView hash) const noexcept {
  if (!loaded() || hash.size() != kHashOctets) return {};
  std::uint8_t label[1 + kHashLabelOctets];
  hash_label(hash, label);
  const ByteView labels(label, sizeof label);
  const LeafBlock leaf = nsec3().find(TrieKey(labels), labels);
  const RecordView candidate = leaf ? record(leaf.ref.units) : RecordView{};
  return candidate && in_chain(candidate, nsec3_parameters()) ? candidate : RecordView{};
}

Trie ZoneView::trie_of(Tree tree) const noexcept {
  return tree == Tree::kNames ? names() : nsec3();
}

RecordView ZoneView::nsec3_record_at(dns::NameView owner) const noexcept {
  if (!loaded() || nsec3().empty()) return {};
  const ByteView labels = relative_labels(owner, apex());
  const LeafBlock leaf = nsec3().find(TrieKey(labels), labels);
  return leaf ? record(leaf.ref.units) : RecordView{};
}

RecordView ZoneView::record_before(Tree tree, dns::NameView name) const noexcept {
  if (!loaded()) return {};
  const LeafBlock leaf = trie_of(tree).before(TrieKey(relative_labels(name, apex())));
  const RecordView found = leaf ? record(leaf.ref.units) : RecordView{};
  return found && compare_canonical(owner_of(found), name) < 0 ? found : RecordView{};
}

RecordView ZoneView::record_after(Tree tree, dns::NameView name) const {
  if (!loaded()) return {};
  TrieWalk walk(trie_of(tree));
  walk.seek(TrieKey(relative_labels(name, apex())), false);
  const LeafBlock leaf = walk.next();
  const RecordView found = leaf ? record(leaf.ref.units) : RecordView{};
  return found && compare_canonical(owner_of(found), name) > 0 ? found : RecordView{};
}

RecordView ZoneView::last_record(Tree tree) const noexcept {
  if (!loaded()) return {};
  const LeafBlock leaf = trie_of(tree).last();
  return leaf ? record(leaf.ref.units) : RecordView{};
}

dns::Name ZoneView::owner_of(const RecordView& record) const noexcept {
  auto name = dns::Name::join(record.relative_owner(), apex());
  return name ? *name : dns::Name(apex());
}

ZoneView::Cursor ZoneView::begin() const { return Cursor(*this); }

ZoneView::Cursor::Cursor(ZoneView zone) : zone_(zone), walk_(nullptr, &delete_walk) {}

RecordView ZoneView::Cursor::next() {
  if (phase_ == Phase::kApex) {
    if (!zone_ || !zone_.loaded()) return {};
    phase_ = Phase::kNames;
    walk_.reset(new TrieWalk(zone_.names()));
    return zone_.record(zone_.entry_->apex);
  }
  while (phase_ != Phase::kEnd) {
    if (const LeafBlock leaf = walk_->next()) return zone_.record(leaf.ref.units);
    if (phase_ == Phase::kNames) walk_.reset(new TrieWalk(zone_.nsec3()));
    phase_ = phase_ == Phase::kNames ? Phase::kNsec3 : Phase::kEnd;
  }
  return {};
}

// --- all zones ---

StoreView::StoreView(shm::Window window, shm::Ref<> root, std::uint64_t version) noexcept
    : window_(window), root_(window.at(root.as<RootData>())), version_(version) {}

Trie StoreView::zones() const noexcept {
  return {window_, root_ == nullptr ? 0 : root_->zones, LeafKind::kZone};
}

ZoneView StoreView::view_at(std::uint32_t ref) const noexcept {
  ZoneView zone;
  const auto* entry = window_.at(shm::Ref<ZoneEntry>{ref});
  if (entry == nullptr || window_.room_after(entry) < entry->octets()) return zone;
  const ByteView apex(reinterpret_cast<const std::uint8_t*>(entry + 1),
                      entry->name_octets + std::size_t{1});
  if (dns::wire_name_length(apex) != apex.size()) return zone;
  zone.entry_ = entry;
  zone.root_ = root_;
  zone.window_ = window_;
  return zone;
}

ZoneView StoreView::find_zone(const NameKey& key) const noexcept {
  if (root_ == nullptr || root_->zones == 0) return {};
  const dns::NameView name = key.name();
  const ByteView labels = name.bytes().first(name.size() - 1);
  const Trie trie = zones();
  const TrieDescent* const made = key.descent();
  TrieMatch found;
  if (made != nullptr && trie.has_ended(*made, key.whole()))
    trie.match(*made, found, labels);
  else
    trie.match(key.whole(), found, nullptr, labels);
  if (found.exact) return view_at(found.nearest.ref.units);
  if (found.ancestor_count == 0) return {};
  const std::uint32_t ref = found.ancestors[found.ancestor_count - 1];
  const ZoneView zone = view_at(ref);
  // The nearest leaf has been compared with the key. Another leaf stands where an ancestor belongs,
  // but the zone must really contain the name.
  const bool compared = ref == found.nearest.ref.units;
  return compared || (zone && name.is_at_or_below(zone.apex())) ? zone : ZoneView{};
}

ZoneView StoreView::zone_at(dns::NameView apex) const noexcept {
  if (root_ == nullptr) return {};
  const ByteView labels = apex.bytes().first(apex.size() - 1);
  const LeafBlock leaf = zones().find(TrieKey(labels), labels);
  return leaf ? view_at(leaf.ref.units) : ZoneView{};
}

bool StoreView::has_zone_at_or_below(dns::NameView name) const noexcept {
  if (root_ == nullptr || root_->zones == 0) return false;
  const TrieKey key(name.bytes().first(name.size() - 1));
  TrieMatch found;
  zones().match(key, found);
  return found.exact || found.prefix_of_leaf || found.damaged;
}

ZoneView StoreView::zone_at(const Bookmark& bookmark) const noexcept {
  return view_at(bookmark.zone_);
}

std::uint64_t StoreView::zone_count() const noexcept {
  return root_ == nullptr ? 0 : root_->zone_count;
}
std::uint64_t StoreView::history_bytes() const noexcept {
  return root_ == nullptr ? 0 : root_->history_bytes;
}
std::uint64_t StoreView::archives() const noexcept {
  return root_ == nullptr ? 0 : root_->archives;
}
std::uint32_t StoreView::snapshot_losses() const noexcept {
  return root_ == nullptr ? 0 : root_->snapshot_losses;
}
bool StoreView::has_discarded() const noexcept { return root_ != nullptr && root_->discarded != 0; }

ByteView StoreView::server_settings_bytes() const noexcept {
  if (root_ == nullptr) return {};
  const auto* block = window_.at(shm::Ref<>{root_->server_settings}, root_->server_settings_bytes);
  if (block == nullptr) return {};
  return {reinterpret_cast<const std::uint8_t*>(block), root_->server_settings_bytes};
}

std::uint64_t StoreView::server_settings_tag() const noexcept {
  return root_ == nullptr ? 0 : root_->server_settings_hash;
}

ZoneWalk::ZoneWalk(const StoreView& snapshot)
    : snapshot_(snapshot), walk_(new TrieWalk(snapshot.zones()), &delete_walk) {}

void ZoneWalk::seek_after(dns::NameView apex) {
  walk_->seek(TrieKey(apex.bytes().first(apex.size() - 1)), false);
}

ZoneView ZoneWalk::next() {
  const LeafBlock leaf = walk_->next();
  return leaf ? snapshot_.view_at(leaf.ref.units) : ZoneView{};
}

}  // namespace pando::zone
