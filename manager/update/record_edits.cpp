#include "manager/update/record_edits.h"

#include "dns/dnssec/derived_types.h"
#include "dns/folded_key.h"
#include "dns/rdata/rdata.h"
#include "manager/journal/record/journal_payload.h"
#include "manager/support/soa.h"
#include "manager/update/signed_update.h"

namespace pando::manager {

using dns::RRType;

namespace {

/// Memory of a map's node and of a small vector, beside the octets in them.
constexpr std::size_t kEntryBytes = 128;

/// Estimates for NameEdit, which is large since it has a name in place.
constexpr std::size_t kNameBytes = 512;

std::size_t bytes_of(const TouchedNames::RRset& set) noexcept {
  std::size_t bytes = 0;
  for (const Bytes& rdata : set.rdatas) bytes += kEntryBytes + rdata.size();
  return bytes;
}

/// Removes a record from an edit's own set, which may be empty meanwhile.
void take_out(TouchedNames::RRset& set, RRType type, ByteView rdata) {
  std::erase_if(set.rdatas, [&](const Bytes& one) {
    return dns::compare_rdata_canonical(type, one, rdata) == 0;
  });
}

std::uint64_t records_of(const zone::RRsetView& set) noexcept {
  return set ? std::uint64_t{set.count()} + set.signature_count() : 0;
}

/// A SOA that is set keeps the serial, or moves it ahead: secondaries would not follow it back.
Status check_soa(const TouchedNames::Node& apex, dns::NameView zone) {
  const TouchedNames::RRset* now = apex.find(RRType::kSOA);
  const auto before = apex.before.find(RRType::kSOA);
  if (now == nullptr || before == apex.before.end())
    return fail(Errc::kCorrupt, "{} has no SOA", to_text(zone));
  const dns::Serial had = soa_serial(before->second.rdatas.front());
  const dns::Serial has = soa_serial(now->rdatas.front());
  if (has == had || has.ahead_of(had)) return {};
  return fail(Errc::kInvalid, "{}: serial {} is not ahead of {} (RFC 1982)", to_text(zone),
              has.value, had.value);
}

/// Records that only a signer can keep valid have no place in an unsigned zone.
Status check_unsigned(const TouchedNames& touched, dns::NameView zone) {
  for (const auto& [key, node] : touched.nodes())
    for (const auto& [type, set] : node.now)
      if (needs_signer(type, node.owner == zone) && !node.before.contains(type))
        return fail(Errc::kInvalid, "{} {} in an unsigned zone needs a signer",
                    to_text(node.owner), to_text(type));
  return {};
}

/// In a zone that is signed here, the server makes these records.
Status check_underived(const TouchedNames& touched, dns::NameView zone) {
  for (const auto& [key, node] : touched.nodes())
    for (const auto& [type, set] : node.now) {
      const auto before = node.before.find(type);
      const bool is_as_before =
          before != node.before.end() && before->second.rdatas == set.rdatas;
      if (!is_as_before && dns::is_dropped_by_signing(type, node.owner == zone))
        return fail(Errc::kInvalid, "{} {} is made by this server, which signs the zone",
                    to_text(node.owner), to_text(type));
    }
  return {};
}

}  // namespace

RecordEdits::NameEdit& RecordEdits::at(dns::NameView owner) {
  NameEdit& edit = names_.try_emplace(dns::folded_key(owner)).first->second;
  edit.owner = dns::Name(owner);
  return edit;
}

/// Adds an edit's size to the sums, or takes it out, around each change of the edit.
void RecordEdits::count(const NameEdit& edit, bool in) {
  std::size_t size = edit.cleared ? 1 : 0;
  std::size_t bytes = kNameBytes;
  for (const auto& [type, set] : edit.sets) {
    size += (set.cleared ? 1 : 0) + set.added.rdatas.size() + set.removed.rdatas.size();
    bytes += kEntryBytes + bytes_of(set.added) + bytes_of(set.removed);
  }
  size_ = in ? size_ + size : size_ - size;
  bytes_ = in ? bytes_ + bytes : bytes_ - bytes;
}

Status RecordEdits::set(dns::NameView owner, RRType type, std::optional<dns::Ttl> ttl,
                        ByteView rdata) {
  if (!owner.is_at_or_below(zone_))
    return fail(Errc::kInvalid, "{} is not in {}", to_text(owner), to_text(zone_));
  if (dns::is_meta_type(type))
    return fail(Errc::kInvalid, "{} is no type of a record", to_text(type));
  if (type == RRType::kSOA && !(owner == zone_.view()))
    return fail(Errc::kInvalid, "a SOA belongs to the apex");
  if (auto fits = dns::check_record_size(owner, type, rdata); !fits) return fits;
  const bool fresh = !names_.contains(dns::folded_key(owner));
  NameEdit& edit = at(owner);
  if (!fresh) count(edit, false);
  SetEdit& set = edit.sets[type];
  if (TouchedNames::is_singleton(type)) set.added.rdatas.clear();
  if (ttl) set.ttl = ttl;
  TouchedNames::insert(set.added, type, rdata);
  take_out(set.removed, type, rdata);
  count(edit, true);
  return {};
}

Status RecordEdits::unset(const zone::ZoneView& zone, dns::NameView owner,
                          std::optional<RRType> type, std::optional<ByteView> rdata) {
  if (!owner.is_at_or_below(zone_))
    return fail(Errc::kInvalid, "{} is not in {}", to_text(owner), to_text(zone_));
  if (type == RRType::kSOA)
    return fail(Errc::kInvalid, "a zone has one SOA: set another one to replace it");
  if (auto exists = check_exists(zone, owner, type, rdata); !exists) return exists;
  const bool fresh = !names_.contains(dns::folded_key(owner));
  NameEdit& edit = at(owner);
  if (!fresh) count(edit, false);
  if (!type)
    unset_name(edit);
  else if (!rdata)
    unset_set(edit, *type);
  else
    unset_record(edit, *type, *rdata);
  count(edit, true);
  return {};
}

/// An edited SOA stays: the apex always has one.
void RecordEdits::unset_name(NameEdit& edit) {
  edit.cleared = true;
  std::erase_if(edit.sets, [&](const auto& entry) {
    return !(edit.owner == zone_) ||
           (entry.first != RRType::kSOA && entry.first != RRType::kNS);
  });
}

void RecordEdits::unset_set(NameEdit& edit, RRType type) {
  SetEdit& set = edit.sets[type];
  set = {};
  set.cleared = true;
}

void RecordEdits::unset_record(NameEdit& edit, RRType type, ByteView rdata) {
  SetEdit& set = edit.sets[type];
  take_out(set.added, type, rdata);
  TouchedNames::insert(set.removed, type, rdata);
}

/// The name as the edits leave it has the record, the set, or any record.
Status RecordEdits::check_exists(const zone::ZoneView& zone, dns::NameView owner,
                                 std::optional<RRType> type, std::optional<ByteView> rdata) const {
  TouchedNames touched(zone);
  TouchedNames::Node& node = touched.at(owner);
  const auto edit = names_.find(dns::folded_key(owner));
  if (edit != names_.end()) apply(edit->second, {}, node);
  if (!type && !node.now.empty()) return {};
  if (!type) return fail(Errc::kNotFound, "{} has no records", to_text(owner));
  const TouchedNames::RRset* set = node.find(*type);
  if (set == nullptr)
    return fail(Errc::kNotFound, "{} has no {} record", to_text(owner), to_text(*type));
  if (!rdata || TouchedNames::contains(*set, *type, *rdata)) return {};
  return fail(Errc::kNotFound, "{} has no record {} {}", to_text(owner), to_text(*type),
              dns::rdata_to_text(*type, *rdata));
}

void RecordEdits::apply(const NameEdit& edit, dns::Ttl default_ttl,
                        TouchedNames::Node& node) const {
  const bool at_apex = edit.owner == zone_;
  if (edit.cleared)
    std::erase_if(node.now, [&](const auto& entry) {
      return !at_apex || (entry.first != RRType::kSOA && entry.first != RRType::kNS);
    });
  for (const auto& [type, set] : edit.sets) {
    const auto had = node.before.find(type);
    const dns::Ttl kept = had == node.before.end() ? default_ttl : had->second.ttl;
    if (set.cleared) node.now.erase(type);
    for (const Bytes& rdata : set.removed.rdatas) TouchedNames::remove(node, type, rdata);
    if (set.added.rdatas.empty()) continue;
    if (TouchedNames::is_singleton(type)) node.now.erase(type);
    for (const Bytes& rdata : set.added.rdatas)
      TouchedNames::add(node, type, set.ttl.value_or(kept), rdata);
  }
}

Result<zone::Changeset> RecordEdits::changes(const zone::ZoneView& zone,
                                             config::SerialPolicy policy,
                                             std::uint64_t now) const {
  TouchedNames touched(zone);
  const dns::Ttl default_ttl = zone.soa().ttl();
  for (const auto& [key, edit] : names_) apply(edit, default_ttl, touched.at(edit.owner));
  zone::Changeset changes = touched.changes();
  if (changes.empty()) return changes;
  TouchedNames::Node& apex = touched.at(zone.apex());
  if (auto fine = check_soa(apex, zone.apex()); !fine) return pass(fine);
  const bool signs = is_signed_here(zone);
  if (signs) {
    if (auto fine = check_underived(touched, zone.apex()); !fine) return pass(fine);
  } else if (is_signed(zone)) {
    if (const auto fault = check_signed_update(zone, touched, now))
      return fail(Errc::kInvalid, "{} is signed and the edits are not consistent: {}",
                  to_text(zone.apex()), *fault);
    return changes;
  } else if (auto fine = check_unsigned(touched, zone.apex()); !fine) {
    return pass(fine);
  }
  move_serial(apex, policy, now);
  return touched.changes();
}

std::uint64_t RecordEdits::records(const zone::ZoneView& zone) const {
  std::uint64_t records = size_;
  if (!zone || !zone.loaded()) return records;
  for (const auto& [key, edit] : names_) {
    const zone::RecordView record = zone.record_at(edit.owner);
    if (!record) continue;
    if (edit.cleared)
      record.for_each_rrset([&](const zone::RRsetView& set) { records += records_of(set); });
    else  // a new TTL removes and adds the whole set
      for (const auto& [type, set] : edit.sets)
        if (set.cleared || set.ttl) records += 2 * records_of(record.find(type));
  }
  return records;
}

}  // namespace pando::manager
