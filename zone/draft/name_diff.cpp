#include "zone/draft/name_diff.h"

#include <algorithm>

#include "dns/rdata/rdata.h"

namespace pando::zone {

namespace {

/// RDATAs of one list that are missing from the other; both are sorted canonically.
template <class Compare>
std::vector<ByteView> missing_from(const std::vector<ByteView>& list,
                                   const std::vector<ByteView>& other, Compare&& compare) {
  std::vector<ByteView> result;
  std::set_difference(list.begin(), list.end(), other.begin(), other.end(),
                      std::back_inserter(result),
                      [&](ByteView a, ByteView b) { return compare(a, b) < 0; });
  return result;
}

class SetChanges {
 public:
  SetChanges(const dns::Name& owner, SoaRecord soa, Changeset& out)
      : owner_(owner), soa_(soa), out_(out) {}

  void only(const RRsetDraft& set, std::vector<Record>& to) const {
    if (!is_left_out(set)) put(set.type, set.ttl, set.rdatas, to);
    put_signatures(set, set.signatures, to);
  }

  void both(const RRsetDraft& before, const RRsetDraft& after) const {
    if (before.ttl != after.ttl && !is_left_out(after)) {
      only(before, out_.removed);
      only(after, out_.added);
      return;
    }
    missing(before, after, out_.removed);
    missing(after, before, out_.added);
  }

 private:
  [[nodiscard]] bool is_left_out(const RRsetDraft& set) const {
    return soa_ == SoaRecord::kLeftOut && set.type == dns::RRType::kSOA;
  }

  /// Appends the records that `set` has and `other` lacks.
  void missing(const RRsetDraft& set, const RRsetDraft& other, std::vector<Record>& to) const {
    const auto canonical = [&](ByteView a, ByteView b) {
      return dns::compare_rdata_canonical(set.type, a, b);
    };
    if (!is_left_out(set))
      put(set.type, set.ttl, missing_from(set.rdatas, other.rdatas, canonical), to);
    put_signatures(set, missing_from(set.signatures, other.signatures, compare_bytes), to);
  }

  void put(dns::RRType type, dns::Ttl ttl, const std::vector<ByteView>& rdatas,
           std::vector<Record>& to) const {
    for (const ByteView rdata : rdatas)
      to.push_back({owner_, type, ttl, Bytes(rdata.begin(), rdata.end())});
  }

  void put_signatures(const RRsetDraft& set, const std::vector<ByteView>& signatures,
                      std::vector<Record>& to) const {
    for (const ByteView rest : signatures) {
      Bytes rdata;
      append_be16(rdata, static_cast<std::uint16_t>(set.type));
      append(rdata, rest);
      to.push_back({owner_, dns::RRType::kRRSIG, set.ttl, std::move(rdata)});
    }
  }

  const dns::Name& owner_;
  SoaRecord soa_;
  Changeset& out_;
};

}  // namespace

void append_changes(const dns::Name& owner, const NameDraft& before, const NameDraft& after,
                    SoaRecord soa, Changeset& out) {
  const SetChanges sets(owner, soa, out);
  // Both lists are ascending by type, so one joint walk suffices.
  auto old = before.rrsets.begin();
  auto next = after.rrsets.begin();
  while (old != before.rrsets.end() || next != after.rrsets.end()) {
    const bool only_old =
        next == after.rrsets.end() || (old != before.rrsets.end() && old->type < next->type);
    const bool only_new = !only_old && (old == before.rrsets.end() || next->type < old->type);
    if (only_old) {
      sets.only(*old++, out.removed);
    } else if (only_new) {
      sets.only(*next++, out.added);
    } else {
      sets.both(*old++, *next++);
    }
  }
}

}  // namespace pando::zone
