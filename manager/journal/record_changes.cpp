#include "manager/journal/record_changes.h"

#include "dns/rdata/rdata.h"
#include "manager/support/soa.h"

namespace pando::manager {

RecordKey::RecordKey(dns::NameView owner, dns::RRType type, ByteView rdata)
    : owner_octets_(static_cast<std::uint16_t>(owner.size())), type_(type) {
  bytes_.reserve(owner.size() + rdata.size());
  append(bytes_, owner.bytes());
  if (type != dns::RRType::kSOA) {
    append(bytes_, rdata);
    return;
  }
  Bytes soa(rdata.begin(), rdata.end());
  set_soa_serial(soa, {});
  append(bytes_, soa);
}

zone::Record RecordKey::record(dns::Ttl ttl) const {
  const ByteView data = rdata();
  return {dns::HeapName(owner()), type_, ttl, Bytes(data.begin(), data.end())};
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

namespace {

void drop_same(Steps& steps) {
  std::erase_if(steps, [](const auto& entry) { return entry.second.before == entry.second.after; });
}

void append_step(const RecordKey& key, const Step& step, zone::Changeset& out) {
  if (step.before) out.removed.push_back(key.record(*step.before));
  if (step.after) out.added.push_back(key.record(*step.after));
}

}  // namespace

Steps steps_of(const zone::Changeset& changes) {
  Steps steps;
  for (const zone::Record& record : changes.removed)
    steps[{record.owner, record.type, record.rdata}].before = record.ttl;
  for (const zone::Record& record : changes.added)
    steps[{record.owner, record.type, record.rdata}].after = record.ttl;
  drop_same(steps);
  return steps;
}

Steps steps_of(zone::Changeset&& changes) {
  Steps steps;
  const auto take = [&](std::vector<zone::Record>& records, std::optional<dns::Ttl> Step::* side) {
    for (zone::Record& place : records) {
      const zone::Record record = std::move(place);
      steps[{record.owner, record.type, record.rdata}].*side = record.ttl;
    }
    records = std::vector<zone::Record>();  // gives the memory back
  };
  take(changes.removed, &Step::before);
  take(changes.added, &Step::after);
  drop_same(steps);
  return steps;
}

zone::Changeset changes_of(const dns::Name& zone, const Steps& steps) {
  zone::Changeset changes{zone, {}, {}};
  for (const auto& [key, step] : steps) append_step(key, step, changes);
  return changes;
}

zone::Changeset changes_of(const dns::Name& zone, Steps&& steps) {
  zone::Changeset changes{zone, {}, {}};
  while (!steps.empty()) {
    const auto first = steps.extract(steps.begin());
    append_step(first.key(), first.mapped(), changes);
  }
  return changes;
}

}  // namespace pando::manager
