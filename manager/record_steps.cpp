#include "manager/record_steps.h"

#include "dns/rdata.h"
#include "manager/soa.h"

namespace pando::manager {

RecordKey::RecordKey(dns::NameView owner, dns::RRType type, ByteView rdata)
    : owner_octets_(static_cast<std::uint16_t>(owner.size())), type_(type) {
  octets_.reserve(owner.size() + rdata.size());
  append(octets_, owner.bytes());
  if (type != dns::RRType::kSOA) {
    append(octets_, rdata);
    return;
  }
  Bytes soa(rdata.begin(), rdata.end());
  set_soa_serial(soa, {});
  append(octets_, soa);
}

zone::Record RecordKey::record(dns::Ttl ttl) const {
  const ByteView data = rdata();
  return {dns::Name(owner()), type_, ttl, Bytes(data.begin(), data.end())};
}

bool RecordKeyLess::operator()(const RecordKey& a, const RecordKey& b) const noexcept {
  if (const int order = dns::compare_canonical(a.owner(), b.owner()); order != 0) return order < 0;
  if (a.type() != b.type()) return a.type() < b.type();
  return dns::compare_rdata_canonical(a.type(), a.rdata(), b.rdata()) < 0;
}

bool RecordKeyLess::operator()(const RecordKey& a, const SetKey& b) const noexcept {
  const int order = dns::compare_canonical(a.owner(), b.owner);
  return order != 0 ? order < 0 : a.type() < b.type;
}

bool RecordKeyLess::operator()(const SetKey& a, const RecordKey& b) const noexcept {
  const int order = dns::compare_canonical(a.owner, b.owner());
  return order != 0 ? order < 0 : a.type < b.type();
}

bool operator==(const RecordKey& a, const RecordKey& b) noexcept {
  return a.same_set(b) && dns::compare_rdata_canonical(a.type(), a.rdata(), b.rdata()) == 0;
}

Steps steps_of(const zone::Changes& changes) {
  Steps steps;
  for (const zone::Record& record : changes.removed)
    steps[{record.owner, record.type, record.rdata}].before = record.ttl;
  for (const zone::Record& record : changes.added)
    steps[{record.owner, record.type, record.rdata}].after = record.ttl;
  std::erase_if(steps, [](const auto& entry) { return entry.second.before == entry.second.after; });
  return steps;
}

zone::Changes changes_of(const dns::Name& zone, const Steps& steps) {
  zone::Changes changes{zone, {}, {}};
  for (const auto& [key, step] : steps) {
    if (step.before) changes.removed.push_back(key.record(*step.before));
    if (step.after) changes.added.push_back(key.record(*step.after));
  }
  return changes;
}

}  // namespace pando::manager
