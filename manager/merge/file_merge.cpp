#include "manager/merge/file_merge.h"

#include <set>

#include "dns/rdata/rdata.h"
#include "manager/support/soa.h"

namespace pando::manager {

namespace {

using dns::RRType;
using Edits = std::pair<RecordChanges::const_iterator,
                        RecordChanges::const_iterator>;  // the edits of one RRset

/// Merges the file's edits of one RRset into the served RRset.
class SetMerge {
 public:
  SetMerge(const zone::RRsetView& live, Edits edits)
      : edits_(edits), less_{edits.first->first.type()}, ttl_(live.ttl()) {
    if (!live) return;
    live.for_each_rdata([&](ByteView rdata) { rdatas_.insert({rdata.begin(), rdata.end()}); });
  }

  void run(zone::Changeset& out) {
    const bool files_alone = is_the_files_alone();
    remove(out);
    for (auto edit = edits_.first; edit != edits_.second; ++edit) {
      const auto& [key, change] = *edit;
      if (!change.after) continue;
      const bool here = rdatas_.contains(key.rdata());
      if (here && change.before && files_alone) append_change(key, change, out);
      if (here || change.before) continue;
      const bool takes_files_ttl = files_alone || rdatas_.empty();
      out.added.push_back(key.record(takes_files_ttl ? *change.after : ttl_));
    }
  }

 private:
  /// True if the file's edits cover every record of the served set, each with the file's TTL. Then
  /// no record and no TTL of the set came by update.
  bool is_the_files_alone() {
    std::size_t known = 0;
    for (auto edit = edits_.first; edit != edits_.second; ++edit)
      if (edit->second.before == ttl_ && rdatas_.contains(edit->first.rdata())) ++known;
    return known == rdatas_.size();
  }

  void remove(zone::Changeset& out) {
    for (auto edit = edits_.first; edit != edits_.second; ++edit) {
      const auto& [key, change] = *edit;
      if (change.after) continue;
      const auto here = rdatas_.find(key.rdata());
      if (here == rdatas_.end()) continue;
      out.removed.push_back(key.record(ttl_));
      rdatas_.erase(here);
    }
  }

  struct Less {
    using is_transparent = void;
    RRType type;
    bool operator()(ByteView a, ByteView b) const noexcept {
      return dns::compare_rdata_canonical(type, a, b) < 0;
    }
  };
  Edits edits_;
  Less less_;
  dns::Ttl ttl_;
  std::set<Bytes, Less> rdatas_{less_};
};

/// True if `set` has the signature `key`. RRSIGs are stored with the covered set, without the two
/// bytes of the type covered.
bool has_signature(const zone::RRsetView& set, const RecordKey& key) {
  const ByteView wanted = key.rdata();
  bool here = false;
  if (set)
    set.for_each_signature([&](ByteView rest) {
      Bytes rdata(wanted.begin(), wanted.begin() + 2);
      append(rdata, rest);
      here = here || dns::compare_rdata_canonical(RRType::kRRSIG, rdata, wanted) == 0;
    });
  return here;
}

bool has_record(const zone::RRsetView& set, const RecordKey& key) {
  bool here = false;
  if (set)
    set.for_each_rdata([&](ByteView rdata) {
      const RecordKey other(key.owner(), key.type(), rdata);  // the key leaves out a SOA's serial
      here = here || dns::compare_rdata_canonical(key.type(), other.rdata(), key.rdata()) == 0;
    });
  return here;
}

/// TTL of a record in a zone; nullopt if the record is absent. Both trees are searched, since NSEC3
/// records have their own.
std::optional<dns::Ttl> ttl_in(const zone::ZoneView& zone, const RecordKey& key) {
  const bool signature = key.type() == RRType::kRRSIG;
  const RRType type = signature ? dns::rrsig_covered(key.rdata()) : key.type();
  for (const zone::RecordView& record :
       {zone.record_at(key.owner()), zone.nsec3_record_at(key.owner())}) {
    const zone::RRsetView set = record ? record.find(type) : zone::RRsetView();
    if (signature ? has_signature(set, key) : has_record(set, key)) return set.ttl();
  }
  return std::nullopt;
}

}  // namespace

bool is_signers(RRType type) noexcept {
  return type == RRType::kRRSIG || type == RRType::kNSEC || type == RRType::kNSEC3;
}

std::size_t drop_stale(DynamicChanges& changes, const zone::ZoneView& live) {
  DynamicChanges::Entries entries = changes.entries();
  const std::size_t stale = std::erase_if(
      entries, [&](const auto& entry) { return ttl_in(live, entry.first) != entry.second.after; });
  if (stale > 0) changes.assign(std::move(entries));
  return stale;
}

RecordChanges file_changes(RecordChanges to_file, const DynamicChanges& changes) {
  for (const auto& [key, entry] : changes.entries()) {
    const auto [at, same] = to_file.try_emplace(key, RecordChange{entry.after, entry.after});
    at->second.before = entry.before;
    if (at->second.before == at->second.after) to_file.erase(at);
  }
  return to_file;
}

zone::Changeset merge_edit(const zone::ZoneView& live, const RecordChanges& edit) {
  zone::Changeset out{dns::Name(live.apex()), {}, {}};
  for (auto at = edit.begin(); at != edit.end();) {
    const RecordKey& first = at->first;
    auto end = at;
    while (end != edit.end() && end->first.same_set(first)) ++end;
    if (is_signers(first.type())) {
      for (; at != end; ++at)
        if (ttl_in(live, at->first) != at->second.after) append_change(at->first, at->second, out);
    } else if (first.type() != RRType::kSOA) {
      const zone::RecordView record = live.record_at(first.owner());
      SetMerge(record ? record.find(first.type()) : zone::RRsetView(), {at, end}).run(out);
    }
    at = end;
  }
  return out;
}

zone::Record merged_soa(const zone::Record& live, const RecordChanges& edit) {
  const auto change = edit.find({live.owner, live.type, live.rdata});
  if (change == edit.end() || change->second.before != live.ttl) return live;
  for (const auto& [key, other] : edit) {
    if (key.type() != RRType::kSOA || !other.after) continue;
    zone::Record next = key.record(*other.after);
    set_soa_serial(next.rdata, soa_serial(live.rdata));
    return next;
  }
  return live;
}

RecordChanges not_followed(const zone::ZoneView& now, const RecordChanges& by_record) {
  RecordChanges apart;
  for (const auto& [key, change] : by_record)
    if (key.type() != RRType::kSOA && ttl_in(now, key) != change.after) apart.emplace(key, change);
  return apart;
}

RecordChanges held_back(const RecordChanges& edit, const RecordChanges& live) {
  RecordChanges held;
  for (const auto& [key, change] : edit) {
    const auto moved = live.find(key);
    const bool followed = moved != live.end() && moved->second == change;
    if (!followed && !is_signers(key.type())) held.emplace(key, change);
  }
  return held;
}

}  // namespace pando::manager
