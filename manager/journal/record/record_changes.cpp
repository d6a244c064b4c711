#include "manager/journal/record/record_changes.h"

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

void drop_same(RecordChanges& by_record) {
  std::erase_if(by_record,
                [](const auto& entry) { return entry.second.before == entry.second.after; });
}

}  // namespace

void append_change(const RecordKey& key, const RecordChange& change, zone::Changeset& out) {
  if (change.before) out.removed.push_back(key.record(*change.before));
  if (change.after) out.added.push_back(key.record(*change.after));
}

RecordChanges record_changes_of(const zone::Changeset& changes) {
  RecordChanges by_record;
  for (const zone::Record& record : changes.removed)
    by_record[{record.owner, record.type, record.rdata}].before = record.ttl;
  for (const zone::Record& record : changes.added)
    by_record[{record.owner, record.type, record.rdata}].after = record.ttl;
  drop_same(by_record);
  return by_record;
}

RecordChanges record_changes_of(zone::Changeset&& changes) {
  RecordChanges by_record;
  const auto take = [&](std::vector<zone::Record>& records,
                        std::optional<dns::Ttl> RecordChange::* side) {
    for (zone::Record& place : records) {
      const zone::Record record = std::move(place);
      by_record[{record.owner, record.type, record.rdata}].*side = record.ttl;
    }
    records = std::vector<zone::Record>();  // gives the memory back
  };
  take(changes.removed, &RecordChange::before);
  take(changes.added, &RecordChange::after);
  drop_same(by_record);
  return by_record;
}

zone::Changeset changeset_of(const dns::Name& zone, const RecordChanges& by_record) {
  zone::Changeset changes{zone, {}, {}};
  for (const auto& [key, change] : by_record) append_change(key, change, changes);
  return changes;
}

zone::Changeset changeset_of(const dns::Name& zone, RecordChanges&& by_record) {
  zone::Changeset changes{zone, {}, {}};
  while (!by_record.empty()) {
    const auto first = by_record.extract(by_record.begin());
    append_change(first.key(), first.mapped(), changes);
  }
  return changes;
}

}  // namespace pando::manager
