#include "manager/dnssec/touched_names.h"

#include <algorithm>

#include "dns/folded_key.h"
#include "dns/rdata/rdata.h"

namespace pando::manager {

namespace {

using dns::RRType;
using RRset = TouchedNames::RRset;
using RRsets = TouchedNames::RRsets;

/// The first position not before `rdata` in canonical order.
template <class RRsetType>
auto place_of(RRsetType& rrset, RRType type, ByteView rdata) {
  return std::lower_bound(rrset.rdatas.begin(), rrset.rdatas.end(), rdata,
                          [type](const Bytes& other, ByteView wanted) {
                            return dns::compare_rdata_canonical(type, other, wanted) < 0;
                          });
}

void sort_rdatas(RRset& rrset, RRType type) {
  const auto before = [type](const Bytes& a, const Bytes& b) {
    return dns::compare_rdata_canonical(type, a, b) < 0;
  };
  if (!std::is_sorted(rrset.rdatas.begin(), rrset.rdatas.end(), before))
    std::sort(rrset.rdatas.begin(), rrset.rdatas.end(), before);
}

/// Reads signatures as records. The store keeps them with the covered set, but an update handles
/// them like other records.
void read_signatures(const zone::RRsetView& rrset, RRsets& out) {
  rrset.for_each_signature([&](ByteView rest) {
    Bytes rdata;
    append_be16(rdata, static_cast<std::uint16_t>(rrset.type()));
    append(rdata, rest);
    RRset& signatures = out[RRType::kRRSIG];
    signatures.ttl = rrset.ttl();
    signatures.rdatas.push_back(std::move(rdata));
  });
}

void read_rrsets(const zone::RecordView& record, RRsets& out) {
  record.for_each_rrset([&](const zone::RRsetView& rrset) {
    read_signatures(rrset, out);
    if (rrset.count() == 0) return;
    RRset& copy = out[rrset.type()];
    copy.ttl = rrset.ttl();
    rrset.for_each_rdata(
        [&](ByteView rdata) { copy.rdatas.emplace_back(rdata.begin(), rdata.end()); });
  });
}

/// Reads all sets at `name`, and sets `owner` to the zone's spelling of it, if there are any.
void read_name(const zone::ZoneView& zone, dns::NameView name, RRsets& out, dns::Name& owner) {
  // The store keeps NSEC3 records in a tree of their own.
  for (const zone::RecordView record : {zone.nsec3_record_at(name), zone.record_at(name)}) {
    if (!record) continue;
    owner = zone.owner_of(record);
    read_rrsets(record, out);
  }
  for (auto& [type, rrset] : out) sort_rdatas(rrset, type);
}

void append_records(const dns::Name& owner, RRType type, const RRset& rrset, const RRset* except,
                    std::vector<zone::Record>& out) {
  for (const Bytes& rdata : rrset.rdatas)
    if (except == nullptr || !TouchedNames::contains(*except, type, rdata))
      out.push_back({owner, type, rrset.ttl, rdata});
}

const RRset* find_in(const RRsets& rrsets, RRType type) noexcept {
  const auto found = rrsets.find(type);
  return found == rrsets.end() ? nullptr : &found->second;
}

}  // namespace

const RRset* TouchedNames::Node::find(RRType type) const noexcept { return find_in(now, type); }

TouchedNames::Node& TouchedNames::at(dns::NameView name) {
  auto [found, fresh] = nodes_.try_emplace(dns::folded_key(name));
  Node& node = found->second;
  if (!fresh) return node;
  node.owner = dns::Name(name);
  read_name(zone_, name, node.before, node.owner);
  node.now = node.before;
  return node;
}

void TouchedNames::set_now(dns::NameView name, const zone::ZoneView& zone) {
  Node& node = at(name);
  node.now.clear();
  read_name(zone, name, node.now, node.owner);
}

bool TouchedNames::contains(const RRset& rrset, RRType type, ByteView rdata) noexcept {
  const auto place = place_of(rrset, type, rdata);
  return place != rrset.rdatas.end() && dns::compare_rdata_canonical(type, *place, rdata) == 0;
}

void TouchedNames::add(Node& node, RRType type, dns::Ttl ttl, ByteView rdata) {
  RRset& rrset = node.now[type];
  rrset.ttl = ttl;
  insert(rrset, type, rdata);
}

void TouchedNames::insert(RRset& rrset, RRType type, ByteView rdata) {
  if (contains(rrset, type, rdata)) return;
  rrset.rdatas.emplace(place_of(rrset, type, rdata), rdata.begin(), rdata.end());
}

void TouchedNames::remove(Node& node, RRType type, ByteView rdata) {
  const auto found = node.now.find(type);
  if (found == node.now.end() || !contains(found->second, type, rdata)) return;
  found->second.rdatas.erase(place_of(found->second, type, rdata));
  if (found->second.rdatas.empty()) node.now.erase(found);
}

bool TouchedNames::same_ttl(RRType type, const RRset& a, const RRset& b) noexcept {
  return type == RRType::kRRSIG || a.ttl == b.ttl;
}

bool TouchedNames::is_singleton(RRType type) noexcept {
  return type == RRType::kCNAME || type == RRType::kSOA || type == RRType::kDNAME;
}

zone::Changeset TouchedNames::changes() const {
  zone::Changeset changes;
  changes.zone = dns::Name(zone_.apex());
  for (const auto& [key, node] : nodes_) {
    for (const auto& [type, before] : node.before) {
      const RRset* now = find_in(node.now, type);
      const bool whole = now == nullptr || !same_ttl(type, *now, before);
      append_records(node.owner, type, before, whole ? nullptr : now, changes.removed);
    }
    for (const auto& [type, now] : node.now) {
      const RRset* before = find_in(node.before, type);
      const bool whole = before == nullptr || !same_ttl(type, now, *before);
      append_records(node.owner, type, now, whole ? nullptr : before, changes.added);
    }
  }
  return changes;
}

}  // namespace pando::manager
