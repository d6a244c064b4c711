#include "zone/builder/comparison.h"

#include <algorithm>
#include <utility>

#include "dns/rdata/rdata.h"
#include "zone/builder/name_writer.h"
#include "zone/builder/zone_builder.h"
#include "zone/draft/name_diff.h"
#include "zone/trie/zone_layout.h"

namespace pando::zone {

namespace {

/// Number of served records with which a new record is compared, from after the last match.
/// Records are sorted, so mostly one comparison is enough. A record without a match is kept, which
/// is never wrong.
constexpr std::uint32_t kMaxTries = 128;

/// A run of one owner is compared when it has this many bytes, or ends.
constexpr std::size_t kRunBytes = std::size_t{1} << 20;

/// After this many names that are not the walk's next name, the walk seeks to the present name.
constexpr unsigned kMissesToSeek = 16;

/// RRSIGs are compared octet by octet, as in normalise().
bool is_same(ByteView live, const Placed& placed) {
  if (same_octets(live, placed.octets)) return true;
  return !placed.is_signature && dns::compare_rdata_canonical(placed.set, live, placed.octets) == 0;
}

/// Bounds of the kept records, above which a second zone is cheaper. The bounds are one kept record
/// per kKeptPart served records, and kKeptOctets bytes for each of these. A fixed allowance comes
/// on top. The zone takes 30 to 40 bytes of the store for a record. So would a second zone, of
/// which most is not new. A kept record takes 45 to 70 bytes (16, the owner with its key, RDATA).
/// So both cost the same at half of the zone. The changeset comes on top of either.
constexpr std::uint64_t kKeptPart = 2;
constexpr std::uint64_t kKeptAnyway = 10'000;
constexpr std::uint64_t kKeptOctets = 32;
constexpr std::uint64_t kKeptBytesAnyway = std::uint64_t{8} << 20;

}  // namespace

Comparison::Comparison(const ZoneView& live, const DataLimits& limits)
    : live_(live),
      apex_(live.apex()),
      window_(live.window_),
      limits_(limits),
      names_(live.names()),
      nsec3_(live.nsec3()),
      records_(live.record_count()) {
  changes_.zone = apex_;
}

// While the records come
// -----------------------------------------------------------------------------------------

Status Comparison::add(dns::NameView owner, dns::RRType type, dns::Ttl ttl, ByteView rdata) {
  if (auto ok = check_record(apex_, owner, type, rdata); !ok) return ok;
  ++added_;
  Stream& stream = belongs_to_nsec3(type, rdata) ? nsec3_ : names_;
  const ByteView labels = relative_labels(owner, apex_);
  if (!stream.is_open || !same_octets(labels, stream.labels) || stream.records.size() > kRunBytes) {
    if (auto closed = close(stream); !closed) return closed;
    stream.is_open = true;
    stream.has_key = false;
    stream.labels.assign(labels.begin(), labels.end());
  }
  append_record(stream.records, type, ttl, rdata);
  return {};
}

/// Compares the run that has ended.
Status Comparison::close(Stream& stream) {
  if (!stream.is_open) return {};
  stream.is_open = false;
  const std::uint32_t ref = find(stream);
  auto compared = compare_run(stream, ref);
  stream.records.clear();
  return compared;
}

void Comparison::use_key(Stream& stream) {
  if (!stream.has_key) stream.key.assign(stream.labels);
  stream.has_key = true;
}

/// The name's record in the served zone, 0 = none. As long as names come in the zone's order, each
/// is the next one of a walk, and no search is needed.
std::uint32_t Comparison::find(Stream& stream) {
  if (&stream == &names_ && stream.labels.empty()) return live_.entry_->apex;
  if (stream.expected && same_octets(stream.trie.labels_of(stream.expected), stream.labels)) {
    const std::uint32_t ref = stream.expected.ref.units;
    stream.expected = stream.walk.next();
    stream.misses = 0;
    return ref;
  }
  use_key(stream);
  const LeafBlock leaf = stream.trie.find(stream.key, stream.labels);
  if (leaf && ++stream.misses % kMissesToSeek == 0) {
    stream.walk.seek(stream.key, false);
    stream.expected = stream.walk.next();
  }
  return leaf.ref.units;
}

/// Decodes the record: its sets, and all their RDATAs and RRSIGs in a row.
void Comparison::decode(std::uint32_t ref) {
  sets_.clear();
  rdatas_.clear();
  whole_names_.clear();
  record_ = ref == 0 ? RecordView() : record_view(window_, ref, apex_);
  const auto here = [this] { return static_cast<std::uint32_t>(rdatas_.size()); };
  record_.for_each_rrset([&](const RRsetView& view) {
    const std::uint32_t first = here();
    if (view.has_whole_names()) {
      view.for_each_rdata([&](ByteView rdata) { rdatas_.push_back(rdata); });
    } else if (whole_names_.empty()) {  // a second set of the type is damage
      whole_names_.reserve(view.count() * dns::kMaxNameOctets);
      view.for_each_rdata([&](ByteView rdata) {
        const std::size_t at = whole_names_.size();
        append(whole_names_, rdata);
        rdatas_.emplace_back(whole_names_.data() + at, rdata.size());
      });
    }
    const std::uint32_t signatures = here();
    view.for_each_signature([&](ByteView rest) { rdatas_.push_back(rest); });
    sets_.push_back({view.type(), view.ttl(), first, signatures, here()});
  });
}

const Comparison::LiveSet* Comparison::set_of(dns::RRType type) const noexcept {
  const auto set = std::ranges::find(sets_, type, &LiveSet::type);
  return set == sets_.end() ? nullptr : &*set;
}

/// Marks the run's records that the served name has, and keeps the others.
Status Comparison::compare_run(Stream& stream, std::uint32_t ref) {
  decode(ref);
  // The first spelling of an owner counts, so a record with another spelling is kept.
  const bool is_spelt_so = record_ && same_octets(record_.relative_owner(), stream.labels);
  matched_.assign(rdatas_.size(), false);
  next_match_ = 0;
  std::size_t met = 0;
  bool all_met = true;
  for (std::size_t at = 0; at < stream.records.size();) {
    const CollectedRecord record(stream.records.data() + at);
    at += record.octets().size();
    const Placed placed = place(record.type(), record.rdata());
    const LiveSet* set = set_of(placed.set);
    const auto same = set != nullptr ? match(*set, placed) : std::nullopt;
    if (is_spelt_so && same && record.ttl() == set->ttl &&
        same_octets(rdatas_[*same], placed.octets)) {
      if (!matched_[*same]) ++met;
      matched_[*same] = true;
      continue;
    }
    if (same && was_seen(ref, *same, *same + 1)) continue;
    all_met = false;
    if (auto kept = keep(stream, ref, set, record); !kept) return kept;
  }
  if (met == 0 || marks_.has_name(ref)) return {};
  if (all_met && met == rdatas_.size()) {
    marks_.mark_name(ref);
    return {};
  }
  for (std::uint32_t index = 0; index < rdatas_.size(); ++index)
    if (matched_[index]) marks_.mark(ref, index);
  return {};
}

/// The number of the same record in the served set, whatever its spelling.
std::optional<std::uint32_t> Comparison::match(const LiveSet& set, const Placed& placed) {
  const std::uint32_t first = placed.is_signature ? set.signatures : set.first;
  const std::uint32_t end =
      std::min(placed.is_signature ? set.end : set.signatures, SeenMarks::kMaxRecords);
  if (first >= end) return std::nullopt;
  std::uint32_t at = next_match_ >= first && next_match_ < end ? next_match_ : first;
  for (std::uint32_t tries = std::min(end - first, kMaxTries); tries > 0; --tries) {
    if (is_same(rdatas_[at], placed)) {
      next_match_ = at + 1;
      return at;
    }
    if (++at == end) at = first;
  }
  return std::nullopt;
}

/// Whether one of these records of the name has been seen, in this run or before.
bool Comparison::was_seen(std::uint32_t ref, std::uint32_t first, std::uint32_t end) const {
  if (first == end) return false;
  const auto begin = matched_.begin();
  return marks_.has_name(ref) || std::find(begin + first, begin + end, true) != begin + end ||
         marks_.has_any(ref, first, end);
}

/// Keeps a record of the run. Marks have no order of their own, so questions of order are decided
/// here. A record that comes after a seen record gets the served TTL of the set and the served
/// spelling of the owner. The TTL is decided among RDATAs and among RRSIGs separately. A record
/// that equals a seen one is not kept at all. So every kept record may be treated as if it came
/// first.
Status Comparison::keep(Stream& stream, std::uint32_t ref, const LiveSet* set,
                        const CollectedRecord& record) {
  dns::Ttl ttl = record.ttl();
  if (set != nullptr && ttl != set->ttl) {
    const bool is_signature = place(record.type(), record.rdata()).is_signature;
    const bool seen = is_signature ? was_seen(ref, set->signatures, set->end)
                                   : was_seen(ref, set->first, set->signatures);
    if (seen) ttl = set->ttl;
  }
  const bool spelt_before = record_ && !same_octets(record_.relative_owner(), stream.labels) &&
                            was_seen(ref, 0, static_cast<std::uint32_t>(rdatas_.size()));
  kept_.clear();
  append_record(kept_, record.type(), ttl, record.rdata());
  return keep(stream, spelt_before ? record_.relative_owner() : ByteView(stream.labels), kept_);
}

Status Comparison::keep(Stream& stream, ByteView labels, ByteView record) {
  use_key(stream);
  return stream.late.add(labels, stream.key, record);
}

std::uint64_t Comparison::kept_count() const noexcept {
  return names_.late.size() + nsec3_.late.size();
}

bool Comparison::is_too_much() const noexcept {
  const std::uint64_t records = live_.record_count();
  return kept_count() > records / kKeptPart + kKeptAnyway ||
         names_.late.octets() + nsec3_.late.octets() > records * kKeptOctets + kKeptBytesAnyway;
}

std::uint64_t Comparison::octets() const noexcept {
  return marks_.octets() + names_.late.octets() + nsec3_.late.octets();
}

// When all records have come
// -----------------------------------------------------------------------------------------

Status Comparison::sort() {
  if (is_sorted_) {
    names_.late.rewind();
    nsec3_.late.rewind();
    return {};
  }
  is_sorted_ = true;
  if (auto closed = close(names_); !closed) return closed;
  if (auto closed = close(nsec3_); !closed) return closed;
  if (auto sorted = names_.late.sort(); !sorted) return sorted;
  return nsec3_.late.sort();
}

/// Names of a stream with late records, in canonical order, and their positions in the trie: the
/// leaf at or before each name. The keys of other leaves are not needed.
class Comparison::LateNames {
 public:
  explicit LateNames(Stream& stream) : stream_(stream) { advance(); }

  /// Null at the end.
  [[nodiscard]] const Group* name() const noexcept { return name_ ? &*name_ : nullptr; }
  void advance() {
    name_ = stream_.late.next();
    place_ = name_ ? stream_.trie.at_or_before(TrieKey(name_->labels)) : LeafBlock{};
  }
  [[nodiscard]] bool is_before_all_leaves() const noexcept { return name_ && !place_; }
  /// Whether the name belongs at the leaf or between it and the next one.
  [[nodiscard]] bool is_from(const LeafBlock& leaf) const noexcept {
    return name_ && place_.ref == leaf.ref;
  }
  /// The name, if it is the leaf's own; else null.
  [[nodiscard]] const Group* name_at(const LeafBlock& leaf) const {
    if (!is_from(leaf)) return nullptr;
    const TrieKey key(stream_.trie.labels_of(leaf));
    return same_octets(name_->key, {key.data(), key.length()}) ? name() : nullptr;
  }
  [[nodiscard]] const Group* name_at_apex() const noexcept {
    return name_ && name_->labels.empty() ? name() : nullptr;
  }

 private:
  Stream& stream_;
  std::optional<Group> name_;
  LeafBlock place_;
};

/// Calls `visit(ref, late)` for each name of a trie and each new name, in canonical order, until
/// the changes exceed the bound. ref 0: the name is new. late null: no record of the name was kept.
template <class Visit>
Status Comparison::walk(Stream& stream, ProgressCount& count, Visit&& visit) {
  LateNames late(stream);
  const auto visit_name = [&](std::uint32_t ref, const Group* own) {
    auto visited = visit(ref, own);
    if (visited && own != nullptr) late.advance();
    return visited;
  };
  const auto visit_new = [&] { return visit_name(0, late.name()); };
  if (&stream == &names_)
    if (auto visited = visit_name(live_.entry_->apex, late.name_at_apex()); !visited)
      return visited;
  while (late.is_before_all_leaves())
    if (auto visited = visit_new(); !visited) return visited;
  TrieWalk leaves(stream.trie);
  for (LeafBlock leaf = leaves.next(); leaf && !is_above(most_at_all_); leaf = leaves.next()) {
    count.add();
    if (count.is_given_up()) return fail(Errc::kExists, kGivenUp);
    if (auto visited = visit_name(leaf.ref.units, late.name_at(leaf)); !visited) return visited;
    while (late.is_from(leaf))
      if (auto visited = visit_new(); !visited) return visited;
  }
  if (late.name() != nullptr && !is_above(most_at_all_))
    return fail(Errc::kCorrupt, "{}: its trie is damaged", dns::to_text(apex_));
  return {};
}

/// Whether all records of the served name were seen, and the limits allow that many.
bool Comparison::is_as_it_was(std::uint32_t ref) {
  const bool has_limits = limits_.name_types != 0 || limits_.rrset_records != 0;
  const bool is_marked = marks_.has_name(ref);
  if (is_marked && !has_limits) return true;
  std::uint32_t records = 0;
  std::uint32_t longest = 0;
  const RecordView record = record_view(window_, ref, apex_);
  record.for_each_rrset([&](const RRsetView& view) {
    records += view.count() + std::uint32_t{view.signature_count()};
    longest = std::max<std::uint32_t>(longest, view.count());
  });
  if (limits_.name_types != 0 && record && record.rrset_count() > limits_.name_types) return false;
  if (limits_.rrset_records != 0 && longest > limits_.rrset_records) return false;
  return is_marked || (records > 0 && marks_.has_all(ref, records));
}

/// The name before and after: its seen records and its kept records. The views of `after` are into
/// `before` and into the kept records.
Result<Comparison::Pair> Comparison::put_together(const Stream& stream, std::uint32_t ref,
                                                  const Group* late) {
  Pair name;
  if (ref != 0) {
    const RecordView record = record_view(window_, ref, apex_);
    if (!record) return fail(Errc::kCorrupt, "name record is damaged");
    name.before = decode_record(record);
  }
  name.after.labels = late != nullptr ? late->labels : name.before.labels;
  if (late != nullptr)
    for (const LateRecords::Entry& entry : late->entries)
      add_record(name.after, stream.late.record(entry));
  add_seen(ref, name);
  for (RRsetDraft& rrset : name.after.rrsets) normalise(rrset);
  return name;
}

/// Appends the seen records after the kept ones: see keep().
void Comparison::add_seen(std::uint32_t ref, Pair& name) {
  std::vector<bool> seen(name.before.record_count(), marks_.has_name(ref));
  marks_.for_each(ref, [&](std::uint32_t record) {
    if (record < seen.size()) seen[record] = true;
  });
  std::size_t at = 0;
  for (const RRsetDraft& before : name.before.rrsets) {
    RRsetDraft set{before.type, before.ttl, {}, {}};
    for (const ByteView rdata : before.rdatas)
      if (seen[at++]) set.rdatas.push_back(rdata);
    for (const ByteView rest : before.signatures)
      if (seen[at++]) set.signatures.push_back(rest);
    if (!set.rdatas.empty() || !set.signatures.empty()) add_set(name.after.at(before.type), set);
  }
}

/// Checks the name as the new zone has it, if the name is there.
Status Comparison::check(const Pair& name) const {
  if (name.after.rrsets.empty()) return {};
  if (auto ok = check_name(name.after, apex_); !ok) return ok;
  if (auto ok = check_limits(NameDraft{}, name.after, limits_, apex_); !ok) return ok;
  return check_sets(name.after);
}

void Comparison::add_changes(const Pair& name, std::uint32_t ref) {
  records_ += name.after.record_count() - name.before.record_count();
  const auto owner = dns::Name::join(ref != 0 ? name.before.labels : name.after.labels, apex_);
  append_changes(owner ? *owner : apex_, name.before, name.after, SoaRecord::kLeftOut, changes_);
}

Status Comparison::judge(const Stream& stream, std::uint32_t ref, const Group* late) {
  if (late == nullptr && is_as_it_was(ref)) return {};
  auto name = put_together(stream, ref, late);
  if (!name) return pass(name);
  if (auto ok = check(*name); !ok) return ok;
  add_changes(*name, ref);
  return {};
}

Result<Comparison::Soa> Comparison::finish() {
  if (auto sorted = sort(); !sorted) return pass(sorted);
  const auto first = names_.late.next();
  names_.late.rewind();
  const bool is_late = first && first->labels.empty();
  auto name = put_together(names_, live_.entry_->apex, is_late ? &*first : nullptr);
  if (!name) return pass(name);
  if (name->after.rrsets.empty()) {  // any other fault has precedence
    ProgressCount count(Progress::Phase::kComparing, live_.name_count());
    auto walked = walk(names_, count, [&](std::uint32_t ref, const Group* late) {
      return judge(names_, ref, late);
    });
    if (!walked) return pass(walked);
    return fail(Errc::kInvalid, "{}: no SOA record", dns::to_text(apex_));
  }
  if (auto ok = check(*name); !ok) return pass(ok);
  const RRsetDraft& soa = *name->after.find(dns::RRType::kSOA);
  const ByteView rdata = soa.rdatas.front();
  return Soa{{apex_, dns::RRType::kSOA, soa.ttl, Bytes(rdata.begin(), rdata.end())},
             !soa.signatures.empty()};
}

Result<std::optional<Changeset>> Comparison::changeset(const Most& most) {
  if (auto sorted = sort(); !sorted) return pass(sorted);
  // No resulting zone has more records, so a changeset above this bound is always too large.
  most_at_all_ = most(live_.record_count() + names_.late.size() + nsec3_.late.size());
  ProgressCount count(Progress::Phase::kComparing, live_.name_count());
  for (Stream* stream : {&names_, &nsec3_}) {
    auto walked = walk(*stream, count, [&](std::uint32_t ref, const Group* late) {
      return judge(*stream, ref, late);
    });
    if (!walked) return pass(walked);
  }
  if (is_above(most_at_all_) || is_above(most(records_))) return std::nullopt;
  return std::move(changes_);
}

Status Comparison::give(const Pair& name, ZoneBuilder& builder) const {
  const auto owner = dns::Name::join(name.after.labels, apex_);
  if (!owner) return fail(Errc::kCorrupt, "name record is damaged");
  Bytes signature;
  for (const RRsetDraft& rrset : name.after.rrsets) {
    for (const ByteView rdata : rrset.rdatas)
      if (auto given = builder.add(*owner, rrset.type, rrset.ttl, rdata); !given) return given;
    for (const ByteView rest : rrset.signatures) {
      signature.clear();
      append_be16(signature, static_cast<std::uint16_t>(rrset.type));
      append(signature, rest);
      auto given = builder.add(*owner, dns::RRType::kRRSIG, rrset.ttl, signature);
      if (!given) return given;
    }
  }
  return {};
}

Status Comparison::give_to(ZoneBuilder& builder) {
  if (auto sorted = sort(); !sorted) return sorted;
  changes_ = {};
  most_at_all_ = UINT64_MAX;
  ProgressCount count(Progress::Phase::kComparing, live_.name_count());
  for (Stream* stream : {&names_, &nsec3_}) {
    auto walked = walk(*stream, count, [&](std::uint32_t ref, const Group* late) -> Status {
      if (late == nullptr && !marks_.has_some(ref)) return {};
      auto name = put_together(*stream, ref, late);
      if (!name) return pass(name);
      return give(*name, builder);
    });
    if (!walked) return walked;
  }
  return {};
}

}  // namespace pando::zone
