#include "zone/draft/zone_edit.h"

#include <algorithm>

#include "dns/rdata/rdata.h"
#include "zone/draft/built.h"
#include "zone/draft/collected.h"
#include "zone/draft/entry_past.h"
#include "zone/draft/name_diff.h"
#include "zone/draft/name_rules.h"
#include "zone/trie/trie_edit.h"

namespace pando::zone {

namespace {

tl::unexpected<Error> given_up() { return fail(Errc::kFull, "the manager stops"); }

}  // namespace

ZoneEdit::ZoneEdit(DraftCore& core, const Changeset& changes, const DataLimits& limits,
                   const std::atomic<bool>* stop)
    : core_(core), changes_(changes), limits_(limits), stop_(stop) {}

Result<Applied> ZoneEdit::run() {
  zone_ = core_.view().zone_at(changes_.zone);
  if (!zone_ || !zone_.loaded())
    return fail(Errc::kNotFound, "{}: no such zone, or not loaded", dns::to_text(changes_.zone));
  entry_ = *core_.entry_at(changes_.zone);
  applied_.from = applied_.to = {entry_.serial};
  applied_.effective.zone = changes_.zone;
  applied_.effective.author = changes_.author;
  if (auto collected = collect_steps(); !collected) return pass(collected);
  if (auto worked_out = work_out_names(); !worked_out) return pass(worked_out);
  if (auto allowed = check_size(); !allowed) return pass(allowed);
  EntryPast past(core_, changes_.zone, entry_);
  if (auto copied = past.archive_copy(applied_, limits_); !copied) return pass(copied);
  if (auto written = write_names(); !written) return pass(written);
  if (auto put = put_entry(); !put) return pass(put);
  return std::move(applied_);
}

/// The end of the steps of one name, which start at `first`.
std::size_t ZoneEdit::end_of_name(std::size_t first) const noexcept {
  const auto is_other = [name = steps_[first]](const Step& step) {
    return step.in_nsec3 != name.in_nsec3 || !(step.record->owner == name.record->owner);
  };
  const auto begin = steps_.begin() + static_cast<std::ptrdiff_t>(first);
  return static_cast<std::size_t>(std::find_if(begin, steps_.end(), is_other) - steps_.begin());
}

/// Computes and checks every name without a write.
Status ZoneEdit::work_out_names() {
  applied_.effective.removed.reserve(changes_.removed.size());
  applied_.effective.added.reserve(changes_.added.size());
  for (std::size_t at = 0, end = 0; at < steps_.size(); at = end) {
    end = end_of_name(at);
    if (is_given_up()) return given_up();
    auto done = work_out(at, end);
    if (!done && done.error().code != Errc::kInvalid) return done;
    if (!done) add_broken(done.error());
  }
  if (broken_names_ > kBrokenNamed)
    broken_ += fmt::format("; and {} more names", broken_names_ - kBrokenNamed);
  if (broken_names_ > 0) return fail(Errc::kInvalid, "{}", broken_);
  return {};
}

/// A zone that is too large already may still shrink.
Status ZoneEdit::check_size() const {
  if (limits_.zone_records == 0 || entry_.record_count <= limits_.zone_records ||
      entry_.record_count <= zone_.record_count())
    return {};
  return fail(Errc::kFull, "{}: more than {} records (limits.zone-records)",
              dns::to_text(changes_.zone), limits_.zone_records);
}

/// The counters rise whenever a name is computed: restoring them counts each step once.
Status ZoneEdit::write_names() {
  const auto missing = applied_.missing_removals;
  const auto redundant = applied_.redundant_additions;
  const std::int64_t bytes = core_.data().added_bytes();
  for (std::size_t at = 0; at < names_.size(); ++at) {
    if (is_given_up()) return given_up();
    if (auto written = write(at); !written) return written;
  }
  entry_.data_units += units_of(core_.data().added_bytes() - bytes);
  applied_.missing_removals = missing;
  applied_.redundant_additions = redundant;
  return {};
}

/// Appends the changeset to the zone's history, and puts the entry of the changed zone.
Status ZoneEdit::put_entry() {
  if (names_.empty()) return {};
  applied_.to = {entry_.serial};
  core_.mark_changed(entry_);
  EntryPast past(core_, changes_.zone, entry_);
  if (auto done = past.append(applied_, limits_); !done) return done;
  return core_.put_entry(entry_, changes_.zone);
}

/// Relaxed: the flag guards no other memory, and a delay of one name does no harm.
bool ZoneEdit::is_given_up() const noexcept {
  return stop_ != nullptr && stop_->load(std::memory_order_relaxed);
}

/// The error lists all broken names, so that the author of the changes need not retry for each.
void ZoneEdit::add_broken(const Error& error) {
  if (broken_names_++ >= kBrokenNamed) return;
  broken_ += (broken_.empty() ? "" : "; ") + error.text;
}

Status ZoneEdit::collect_steps() {
  const auto collect = [&](const std::vector<Record>& records, bool add) -> Status {
    for (const Record& record : records) {
      if (!record.owner.view().is_at_or_below(changes_.zone))
        return fail(Errc::kInvalid, "{} is outside the zone {}", dns::to_text(record.owner),
                    dns::to_text(changes_.zone));
      if (dns::is_meta_type(record.type))
        return fail(Errc::kInvalid, "type {} cannot be in a zone", dns::to_text(record.type));
      steps_.push_back({&record, add, belongs_to_nsec3(record.type, record.rdata)});
    }
    return {};
  };
  steps_.reserve(changes_.removed.size() + changes_.added.size());
  if (auto out = collect(changes_.removed, false); !out) return out;
  if (auto in = collect(changes_.added, true); !in) return in;
  // Stable, so that at each name the removals stay before the additions.
  std::stable_sort(steps_.begin(), steps_.end(), [](const Step& a, const Step& b) {
    if (a.in_nsec3 != b.in_nsec3) return b.in_nsec3;
    return dns::compare_canonical(a.record->owner, b.record->owner) < 0;
  });
  return {};
}

/// The present record of the step's name, 0 = none.
std::uint32_t ZoneEdit::find(const Step& step) const {
  const ByteView labels = relative_labels(step.record->owner, changes_.zone);
  if (labels.empty() && !step.in_nsec3) return entry_.apex;
  const Trie trie(core_.data().window(), step.in_nsec3 ? entry_.nsec3 : entry_.names,
                  LeafKind::kRecord);
  return trie.find(TrieKey(labels), labels).ref.units;
}

Result<ZoneEdit::NameEdit> ZoneEdit::put_together(const ChangedName& name) {
  const Step& first = steps_[name.first];
  NameEdit edit;
  edit.in_nsec3 = first.in_nsec3;
  edit.labels = relative_labels(first.record->owner, changes_.zone);
  edit.old_ref = name.old_ref;
  if (edit.old_ref != 0) {
    const RecordView old = record_view(core_.data().window(), edit.old_ref, changes_.zone);
    if (!old) return fail(Errc::kCorrupt, "name record is damaged");
    edit.before = decode_record(old);
    edit.labels = edit.before.labels;
  }
  edit.after = edit.before;
  edit.after.labels = edit.labels;
  for (std::size_t at = name.first; at < name.end; ++at) change_record(edit, steps_[at]);
  edit.after.drop_empty();
  for (RRsetDraft& rrset : edit.after.rrsets) normalise(rrset);
  return edit;
}

Status ZoneEdit::work_out(std::size_t first, std::size_t end) {
  const ChangedName name{static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(end),
                         find(steps_[first])};
  auto made = put_together(name);
  if (!made) return pass(made);
  const NameEdit& edit = *made;
  const std::size_t removed = applied_.effective.removed.size();
  const std::size_t added = applied_.effective.added.size();
  add_effect(edit);
  if (applied_.effective.removed.size() == removed && applied_.effective.added.size() == added)
    return {};  // no change at this name
  if (auto ok = check_name(edit.after, changes_.zone); !ok) return ok;
  if (auto ok = check_limits(edit.before, edit.after, limits_, changes_.zone); !ok) return ok;
  entry_.record_count += edit.after.record_count() - edit.before.record_count();
  names_.push_back(name);
  if (drafts_.size() < kMaxDrafts) drafts_.push_back(std::move(*made));
  return {};
}

void ZoneEdit::change_record(NameEdit& edit, const Step& step) {
  const Placed placed = place(step.record->type, step.record->rdata);
  RRsetDraft& rrset = edit.after.at(placed.set);
  std::vector<ByteView>& list = placed.is_signature ? rrset.signatures : rrset.rdatas;
  const auto same = [&](ByteView other) {
    return placed.is_signature
               ? same_octets(other, placed.octets)
               : dns::compare_rdata_canonical(placed.set, other, placed.octets) == 0;
  };
  const auto found = std::find_if(list.begin(), list.end(), same);
  if (!step.add) {
    if (found == list.end())
      ++applied_.missing_removals;
    else
      list.erase(found);
    return;
  }
  // RFC 2181 §5.2: the newest record's TTL is the whole set's; an RRSIG follows the set that it
  // covers.
  const bool sets_ttl = !placed.is_signature || rrset.rdatas.empty();
  if (found == list.end())
    list.push_back(placed.octets);
  else if (!sets_ttl || rrset.ttl == step.record->ttl)
    ++applied_.redundant_additions;
  if (sets_ttl) rrset.ttl = step.record->ttl;
}

void ZoneEdit::add_effect(const NameEdit& edit) {
  const auto joined = dns::Name::join(edit.labels, changes_.zone);
  const dns::Name owner = joined ? *joined : changes_.zone;
  append_changes(owner, edit.before, edit.after, SoaRecord::kCompared, applied_.effective);
}

Status ZoneEdit::write(std::size_t at) {
  if (at < drafts_.size()) return write(drafts_[at]);
  auto made = put_together(names_[at]);
  if (!made) return pass(made);
  return write(*made);
}

Status ZoneEdit::write(const NameEdit& edit) {
  std::uint32_t ref = 0;
  if (!edit.after.rrsets.empty()) {
    auto written = write_record(core_.data(), changes_.zone, edit.after);
    if (!written) return pass(written);
    ref = *written;
  }
  if (auto put = write_leaf(edit, ref); !put) return put;
  if (edit.old_ref != 0) release_record(core_.data(), edit.old_ref);
  if (edit.old_ref == 0) ++entry_.name_count;
  if (ref == 0) --entry_.name_count;
  return {};
}

Status ZoneEdit::write_leaf(const NameEdit& edit, std::uint32_t ref) {
  if (edit.labels.empty() && !edit.in_nsec3) {
    entry_.apex = ref;
    const auto kept = entry_.flags & ZoneEntry::kPrimarySerial;
    entry_.flags =
        static_cast<std::uint8_t>(ZoneEntry::kLoaded | kept | denial_flags(edit.after));
    if (const RRsetDraft* soa = edit.after.find(dns::RRType::kSOA))
      entry_.serial = soa_serial(soa->rdatas.front());
    return {};
  }
  std::uint32_t& root = edit.in_nsec3 ? entry_.nsec3 : entry_.names;
  const TrieKey key(edit.labels);
  auto changed = ref != 0 ? trie_put(core_.data(), root, LeafKind::kRecord, key, ref)
                          : trie_remove(core_.data(), root, LeafKind::kRecord, key);
  if (!changed) return pass(changed);
  root = *changed;
  return {};
}

}  // namespace pando::zone
