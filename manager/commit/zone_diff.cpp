#include "manager/commit/zone_diff.h"

#include <algorithm>

#include "base/progress.h"
#include "dns/dnssec/derived_types.h"
#include "dns/rdata/rdata.h"

namespace pando::manager {

namespace {

using dns::RRType;
using zone::RecordView;
using zone::RRsetView;

/// One place of a zone's walk, in the cursor's order: names in canonical order (the apex is first),
/// then NSEC3 owners.
struct NamePosition {
  RecordView record;
  dns::Name owner;
  bool nsec3 = false;

  static NamePosition next(zone::ZoneView::Cursor& cursor, const zone::ZoneView& zone) {
    NamePosition place;
    place.record = cursor.next();
    if (!place.record) return place;
    place.owner = zone.owner_of(place.record);
    place.nsec3 = static_cast<bool>(place.record.find(RRType::kNSEC3));
    return place;
  }
};

/// <0: `a` comes first or `b` has ended; 0: the same owner.
int compare(const NamePosition& a, const NamePosition& b) noexcept {
  if (!a.record || !b.record) return a.record ? -1 : (b.record ? 1 : 0);
  if (a.nsec3 != b.nsec3) return a.nsec3 ? 1 : -1;
  return dns::compare_canonical(a.owner, b.owner);
}

std::vector<Bytes> rdatas_of(const RRsetView& rrset) {
  std::vector<Bytes> all;
  rrset.for_each_rdata([&](ByteView rdata) { all.emplace_back(rdata.begin(), rdata.end()); });
  std::sort(all.begin(), all.end(), [&](const Bytes& a, const Bytes& b) {
    return dns::compare_rdata_canonical(rrset.type(), a, b) < 0;
  });
  return all;
}

std::vector<Bytes> signatures_of(const RRsetView& rrset) {
  std::vector<Bytes> all;
  rrset.for_each_signature([&](ByteView rest) {
    Bytes rdata;
    append_be16(rdata, static_cast<std::uint16_t>(rrset.type()));
    append(rdata, rest);
    all.push_back(std::move(rdata));
  });
  std::sort(all.begin(), all.end());
  return all;
}

class Differ {
 public:
  Differ(const zone::ZoneView& before, const zone::ZoneView& after, Compared compared)
      : before_(before), after_(after), compared_(compared) {
    changes_.zone = dns::Name(before.apex());
  }

  bool has_more_than(std::uint64_t max_records) {
    collects_ = false;
    max_records_ = max_records;
    return !walk();
  }

  zone::Changeset changes() {
    collects_ = true;
    max_records_ = UINT64_MAX;
    walk();
    return std::move(changes_);
  }

 private:
  /// False when more than max_records_ change, or when the work was cancelled.
  bool walk() {
    count_ = 0;
    auto old_cursor = before_.begin();
    auto new_cursor = after_.begin();
    NamePosition old_place = NamePosition::next(old_cursor, before_);
    NamePosition new_place = NamePosition::next(new_cursor, after_);
    ProgressCount count(Progress::Phase::kComparing, before_.name_count() + after_.name_count());
    while (old_place.record || new_place.record) {
      const int order = compare(old_place, new_place);
      diff_names(order <= 0 ? old_place : NamePosition(), order >= 0 ? new_place : NamePosition());
      count.add(order == 0 ? 2 : 1);
      if (order <= 0) old_place = NamePosition::next(old_cursor, before_);
      if (order >= 0) new_place = NamePosition::next(new_cursor, after_);
      if (count_ > max_records_ || count.is_given_up()) return false;
    }
    return true;
  }

  void diff_names(const NamePosition& before, const NamePosition& after) {
    if (before.record) {
      before.record.for_each_rrset([&](const RRsetView& rrset) {
        diff_sets(before.owner, rrset,
                  after.record ? after.record.find(rrset.type()) : RRsetView());
      });
    }
    if (!after.record) return;
    after.record.for_each_rrset([&](const RRsetView& rrset) {
      if (before.record && before.record.find(rrset.type())) return;
      diff_sets(after.owner, RRsetView(), rrset);
    });
  }

  void diff_sets(const dns::Name& owner, const RRsetView& before, const RRsetView& after) {
    const RRType type = before ? before.type() : after.type();
    if (compared_ == Compared::kSource) {
      const bool is_apex = owner.view() == before_.apex();
      if (type == RRType::kSOA || dns::is_dropped_by_signing(type, is_apex)) return;
      const bool has_other_ttl = before && after && before.ttl() != after.ttl();
      return diff_lists(owner, type, before, after, rdatas_of(before), rdatas_of(after),
                        has_other_ttl);
    }
    if (type == RRType::kSOA) {
      // The signatures change with the SOA; the record itself is the caller's.
      return diff_lists(owner, RRType::kRRSIG, before, after, signatures_of(before),
                        signatures_of(after), false);
    }
    const bool whole = before && after && before.ttl() != after.ttl();
    diff_lists(owner, type, before, after, rdatas_of(before), rdatas_of(after), whole);
    diff_lists(owner, RRType::kRRSIG, before, after, signatures_of(before), signatures_of(after),
               whole);
  }

  /// `whole`: the TTL differs, so every record is removed and added again.
  void diff_lists(const dns::Name& owner, RRType type, const RRsetView& before,
                  const RRsetView& after, const std::vector<Bytes>& old_list,
                  const std::vector<Bytes>& new_list, bool whole) {
    const auto less = [type](const Bytes& a, const Bytes& b) {
      return type == RRType::kRRSIG ? a < b : dns::compare_rdata_canonical(type, a, b) < 0;
    };
    std::vector<Bytes> out, in;
    if (whole) {
      out = old_list;
      in = new_list;
    } else {
      std::set_difference(old_list.begin(), old_list.end(), new_list.begin(), new_list.end(),
                          std::back_inserter(out), less);
      std::set_difference(new_list.begin(), new_list.end(), old_list.begin(), old_list.end(),
                          std::back_inserter(in), less);
    }
    count_ += out.size() + in.size();
    if (!collects_) return;
    for (Bytes& rdata : out)
      changes_.removed.push_back({owner, type, before.ttl(), std::move(rdata)});
    for (Bytes& rdata : in) changes_.added.push_back({owner, type, after.ttl(), std::move(rdata)});
  }

  const zone::ZoneView& before_;
  const zone::ZoneView& after_;
  Compared compared_;
  std::uint64_t max_records_ = UINT64_MAX;
  bool collects_ = true;
  std::uint64_t count_ = 0;
  zone::Changeset changes_;
};

}  // namespace

std::optional<zone::Changeset> diff_zones(const zone::ZoneView& before, const zone::ZoneView& after,
                                          std::uint64_t max_records, Compared compared) {
  Differ differ(before, after, compared);
  if (max_records != UINT64_MAX && differ.has_more_than(max_records)) return std::nullopt;
  return differ.changes();
}

BuiltView::BuiltView(shm::Store& store, const dns::Name& apex,
                     const zone::BuiltZone& built)
    : scratch_(store.begin_private()), draft_(scratch_, {}, 0), apex_(apex) {
  made_ = draft_.put_zone_settings(apex, {}, 0);
  if (made_) made_ = draft_.put_zone(apex, built, {});
}

Result<zone::ZoneView> BuiltView::zone() const {
  if (!made_) return pass(made_);
  return draft_.view().zone_at(apex_);
}

std::optional<zone::Record> soa_record(const zone::ZoneView& zone) {
  if (!zone || !zone.loaded()) return std::nullopt;
  const RRsetView soa = zone.soa();
  const ByteView rdata = soa.first_rdata();
  if (rdata.empty()) return std::nullopt;
  return zone::Record{dns::Name(zone.apex()), RRType::kSOA, soa.ttl(),
                      Bytes(rdata.begin(), rdata.end())};
}

}  // namespace pando::manager
