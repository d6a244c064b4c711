#include "manager/update/update_request.h"

#include <algorithm>
#include <optional>

#include "dns/dnssec/derived_types.h"
#include "dns/rdata/rdata.h"
#include "manager/dnssec/touched_names.h"
#include "manager/support/soa.h"
#include "manager/update/signed_update.h"

namespace pando::manager {

namespace {

using dns::Rcode;
using dns::RRClass;
using dns::RRType;
using Node = TouchedNames::Node;
using Refused = std::optional<Refusal>;

std::string describe(const UpdateRecord& record) {
  return fmt::format("{} {}", to_text(record.owner), to_text(record.type));
}

template <class... Args>
Refusal refusal(Rcode rcode, fmt::format_string<Args...> format, Args&&... args) {
  return {rcode, fmt::format(format, std::forward<Args>(args)...)};
}

/// Adds an extended error (RFC 8914), so the client gets the reason, too.
Refusal with_code(dns::ExtendedError code, Refusal refusal) {
  refusal.code = code;
  return refusal;
}

// Zone ------------------------------------------------------------------------------------------

/// RFC 2136 §3.1.2.
Refused check_zone(const zone::ZoneView& zone) {
  using dns::ExtendedError;
  if (!zone)
    return with_code(ExtendedError::kNotAuthoritative,
                     refusal(Rcode::kNotAuth, "not a zone of this server"));
  if (!zone.loaded())
    return with_code(ExtendedError::kNotReady, refusal(Rcode::kServFail, "zone is not loaded"));
  return std::nullopt;
}

// Permission ------------------------------------------------------------------------------------

bool may_update(const UpdateRules& rules, dns::NameView owner, RRType type) {
  return manager::may_update(*rules.allow_update, rules.requester, owner, type);
}

/// True if `may` holds for each type with records or signatures at `owner`. A signature counts as
/// the type that it covers.
template <class May>
bool may_all_types(const UpdateRules& rules, const zone::ZoneView& zone, dns::NameView owner,
                   May&& may) {
  bool allowed = true;
  for (const zone::RecordView& record : {zone.record_at(owner), zone.nsec3_record_at(owner)})
    record.for_each_rrset([&](const zone::RRsetView& rrset) {
      // What this server's signer has made is not deleted by the client.
      const bool is_left_alone =
          rules.is_signed_here && dns::is_derived(rrset.type(), owner == zone.apex());
      allowed = allowed && (is_left_alone || may(rrset));
    });
  return allowed;
}

/// Deleting a name needs permission for each type there. For an absent name, permission for any one
/// type is enough.
bool may_delete_name(const UpdateRules& rules, const zone::ZoneView& zone, dns::NameView owner) {
  if (!zone.record_at(owner) && !zone.nsec3_record_at(owner)) {
    return std::any_of(rules.allow_update->begin(), rules.allow_update->end(),
                       [&](const zone::AclRule& rule) {
                         const RRType type = rule.types.empty() ? RRType::kANY : rule.types[0];
                         return may_update(rules, owner, type);
                       });
  }
  return may_all_types(rules, zone, owner, [&](const zone::RRsetView& rrset) {
    return may_update(rules, owner, rrset.type());
  });
}

/// A permission to change a set includes its signatures, since neither is usable without the other.
bool may_update_signatures(const UpdateRules& rules, const zone::ZoneView& zone,
                           const UpdateRecord& record) {
  if (may_update(rules, record.owner, RRType::kRRSIG)) return true;
  if (record.rr_class != RRClass::kANY)
    return may_update(rules, record.owner, dns::rrsig_covered(record.rdata));
  return may_all_types(rules, zone, record.owner, [&](const zone::RRsetView& rrset) {
    return rrset.signature_count() == 0 || may_update(rules, record.owner, rrset.type());
  });
}

bool may_update(const UpdateRules& rules, const zone::ZoneView& zone, const UpdateRecord& record) {
  if (record.type == RRType::kANY) return may_delete_name(rules, zone, record.owner);
  if (record.type == RRType::kRRSIG) return may_update_signatures(rules, zone, record);
  return may_update(rules, record.owner, record.type);
}

/// A request has room for larger records than a signed transfer of the zone.
Refused check_size(const UpdateRecord& record) {
  if (record.rr_class != RRClass::kIN) return std::nullopt;
  const Status fits = dns::check_record_size(record.owner, record.type, record.rdata);
  if (fits) return std::nullopt;
  return with_code(dns::ExtendedError::kNotSupported,
                   refusal(Rcode::kRefused, "{}", fits.error().text));
}

/// RFC 2136 §3.3.
Refused check_permission(const UpdateRules& rules, const zone::ZoneView& zone,
                         const UpdateMessage& message) {
  if (!may_update_something(*rules.allow_update, rules.requester))
    return with_code(dns::ExtendedError::kProhibited,
                     refusal(Rcode::kRefused, "no rule of allow-update matches"));
  const bool has_signer = is_signed(zone);
  const auto is_added_with = [&](const UpdateRecord& record, auto&& is_such) {
    return record.rr_class == RRClass::kIN && is_such(record.type, record.owner == zone.apex());
  };
  for (const UpdateRecord& record : message.updates) {
    if (!may_update(rules, zone, record))
      return with_code(
          dns::ExtendedError::kProhibited,
          refusal(Rcode::kRefused, "no rule of allow-update matches {}", describe(record)));
    if (auto refused = check_size(record)) return refused;
    if (rules.is_signed_here && is_added_with(record, dns::is_dropped_by_signing))
      return with_code(dns::ExtendedError::kNotSupported,
                       refusal(Rcode::kRefused, "{} is made by this server, which signs the zone",
                               describe(record)));
    if (!rules.is_signed_here && !has_signer && is_added_with(record, needs_signer))
      return with_code(
          dns::ExtendedError::kNotSupported,
          refusal(Rcode::kRefused, "{} in an unsigned zone needs a signer", describe(record)));
  }
  return std::nullopt;
}

// Prerequisites ---------------------------------------------------------------------------------

/// RFC 2136 §2.4.1 to §2.4.5, except value-dependent sets, which are collected first.
Refused check_existence(TouchedNames& touched, const UpdateRecord& record) {
  const Node& node = touched.at(record.owner);
  const bool any_type = record.type == RRType::kANY;
  const bool exists = any_type ? !node.now.empty() : node.find(record.type) != nullptr;
  const bool wanted = record.rr_class == RRClass::kANY;
  if (exists == wanted) return std::nullopt;
  if (wanted)
    return refusal(any_type ? Rcode::kNXDomain : Rcode::kNXRRSet, "{} does not exist",
                   describe(record));
  return refusal(any_type ? Rcode::kYXDomain : Rcode::kYXRRSet, "{} exists", describe(record));
}

using WantedSets = std::map<std::pair<const Node*, RRType>, TouchedNames::RRset>;

/// RFC 2136 §2.4.2: the sets of the message and of the zone have the same RDATA, in any order.
Refused compare_sets(const WantedSets& wanted) {
  for (const auto& [key, rrset] : wanted) {
    const auto& [node, type] = key;
    const TouchedNames::RRset* present = node->find(type);
    bool equal = present != nullptr && present->rdatas.size() == rrset.rdatas.size();
    for (std::size_t i = 0; equal && i < rrset.rdatas.size(); ++i)
      equal = dns::compare_rdata_canonical(type, rrset.rdatas[i], present->rdatas[i]) == 0;
    if (!equal)
      return refusal(Rcode::kNXRRSet, "{} {} has other data", to_text(node->owner), to_text(type));
  }
  return std::nullopt;
}

/// RFC 2136 §3.2.5.
Refused check_prerequisites(TouchedNames& touched, const UpdateMessage& message) {
  WantedSets wanted;
  for (const UpdateRecord& record : message.prerequisites) {
    if (record.rr_class != RRClass::kIN) {
      if (auto refused = check_existence(touched, record)) return refused;
      continue;
    }
    TouchedNames::insert(wanted[{&touched.at(record.owner), record.type}], record.type,
                         record.rdata);
  }
  return compare_sets(wanted);
}

// Updates ---------------------------------------------------------------------------------------

/// True for types allowed beside a CNAME (RFC 2181 §10.1, RFC 4034 §3, §4; RFC 3007 for KEY).
bool may_join_cname(RRType type) noexcept {
  return type == RRType::kCNAME || type == RRType::kRRSIG || type == RRType::kNSEC ||
         type == RRType::kKEY || type == RRType::kSIG || type == RRType::kNXT;
}

/// RFC 2136 §3.4.2.2: an addition that would put a CNAME beside other data is silently ignored.
bool breaks_cname_rule(const Node& node, RRType type) noexcept {
  if (may_join_cname(type) && type != RRType::kCNAME) return false;
  if (type != RRType::kCNAME) return node.find(RRType::kCNAME) != nullptr;
  return std::any_of(node.now.begin(), node.now.end(),
                     [](const auto& entry) { return !may_join_cname(entry.first); });
}

/// RFC 2136 §3.4.2.2: WKS sets have one record per address and protocol.
void remove_same_wks(Node& node, ByteView rdata) {
  constexpr std::size_t kAddressAndProtocol = 5;
  const TouchedNames::RRset* found = node.find(RRType::kWKS);
  if (found == nullptr || rdata.size() < kAddressAndProtocol) return;
  const TouchedNames::RRset copy = *found;
  for (const Bytes& other : copy.rdatas)
    if (other.size() >= kAddressAndProtocol &&
        std::equal(rdata.begin(), rdata.begin() + kAddressAndProtocol, other.begin()))
      TouchedNames::remove(node, RRType::kWKS, other);
}

class Updater {
 public:
  /// `keeps_derived`: records of a signer are left alone.
  Updater(TouchedNames& touched, dns::NameView apex, bool keeps_derived)
      : touched_(touched), apex_(apex), keeps_derived_(keeps_derived) {}

  void apply(const UpdateRecord& record) {
    Node& node = touched_.at(record.owner);
    const bool at_apex = record.owner == apex_;
    if (keeps_derived_ && dns::is_derived(record.type, at_apex)) return;
    if (record.rr_class == RRClass::kIN) return add(node, at_apex, record);
    if (record.rr_class == RRClass::kNONE) return delete_record(node, at_apex, record);
    if (record.type == RRType::kANY) return delete_name(node, at_apex, keeps_derived_);
    delete_rrset(node, at_apex, record.type);
  }

 private:
  static void add(Node& node, bool at_apex, const UpdateRecord& record) {
    if (record.type == RRType::kSOA && !soa_counts(node, at_apex, record)) return;
    if (breaks_cname_rule(node, record.type)) return;
    if (TouchedNames::is_singleton(record.type)) node.now.erase(record.type);
    if (record.type == RRType::kWKS) remove_same_wks(node, record.rdata);
    // RFC 2181 §8: a TTL with the top bit set is zero.
    const std::uint32_t ttl = record.ttl > 0x7FFFFFFFU ? 0 : record.ttl;
    TouchedNames::add(node, record.type, dns::Ttl{ttl}, record.rdata);
  }

  /// RFC 2136 §3.4.2.2: a SOA counts at the apex only and only when its serial is ahead.
  static bool soa_counts(const Node& node, bool at_apex, const UpdateRecord& record) {
    const TouchedNames::RRset* present = at_apex ? node.find(RRType::kSOA) : nullptr;
    return present != nullptr &&
           soa_serial(record.rdata).ahead_of(soa_serial(present->rdatas.front()));
  }

  /// RFC 2136 §3.4.2.3: the apex keeps its SOA and NS.
  static void delete_name(Node& node, bool at_apex, bool keeps_derived) {
    std::erase_if(node.now, [&](const auto& entry) {
      if (keeps_derived && dns::is_derived(entry.first, at_apex)) return false;
      return !at_apex || (entry.first != RRType::kSOA && entry.first != RRType::kNS);
    });
  }
  static void delete_rrset(Node& node, bool at_apex, RRType type) {
    if (at_apex && (type == RRType::kSOA || type == RRType::kNS)) return;
    node.now.erase(type);
  }

  /// RFC 2136 §3.4.2.4: never the SOA, never the apex's last NS.
  static void delete_record(Node& node, bool at_apex, const UpdateRecord& record) {
    if (record.type == RRType::kSOA) return;
    const TouchedNames::RRset* present = node.find(record.type);
    if (present == nullptr) return;
    if (at_apex && record.type == RRType::kNS && present->rdatas.size() == 1) return;
    TouchedNames::remove(node, record.type, record.rdata);
  }

  TouchedNames& touched_;
  dns::NameView apex_;
  bool keeps_derived_;
};

// After the updates -----------------------------------------------------------------------------

/// Limits apply only to growth: a set above a lowered limit may still shrink.
Refused check_node_limits(const Node& node, const zone::DataLimits& limits) {
  if (limits.name_types != 0 && node.now.size() > limits.name_types &&
      node.now.size() > node.before.size())
    return refusal(Rcode::kRefused, "{} would have {} types, limits name-types is {}",
                   to_text(node.owner), node.now.size(), limits.name_types);
  if (limits.rrset_records == 0) return std::nullopt;
  for (const auto& [type, rrset] : node.now) {
    const auto before = node.before.find(type);
    const std::size_t had = before == node.before.end() ? 0 : before->second.rdatas.size();
    if (rrset.rdatas.size() > limits.rrset_records && rrset.rdatas.size() > had)
      return refusal(Rcode::kRefused, "{} {} would have {} records, limits rrset-records is {}",
                     to_text(node.owner), to_text(type), rrset.rdatas.size(), limits.rrset_records);
  }
  return std::nullopt;
}

Refused check_limits(const TouchedNames& touched, const zone::ZoneView& zone,
                     const zone::Changeset& changes, const zone::DataLimits& limits) {
  for (const auto& [key, node] : touched.nodes())
    if (auto refused = check_node_limits(node, limits)) return refused;
  const std::uint64_t records =
      zone.record_count() + changes.added.size() -
      std::min(zone.record_count(), std::uint64_t{changes.removed.size()});
  if (limits.zone_records != 0 && changes.added.size() > changes.removed.size() &&
      records > limits.zone_records)
    return refusal(Rcode::kRefused, "zone would have {} records, limits zone-records is {}",
                   records, limits.zone_records);
  return std::nullopt;
}

// Size ------------------------------------------------------------------------------------------

std::uint64_t records_at(const zone::RecordView& record) {
  std::uint64_t count = 0;
  record.for_each_rrset([&](const zone::RRsetView& rrset) {
    count += std::uint64_t{rrset.count()} + rrset.signature_count();
  });
  return count;
}

/// Number of zone records that one record of an update affects beside itself.
std::uint64_t records_along(const zone::ZoneView& zone, const UpdateRecord& record) {
  if (record.rr_class == RRClass::kNONE) return 0;
  const bool adds = record.rr_class == RRClass::kIN;
  std::uint64_t count = 0;
  for (const zone::RecordView& at :
       {zone.record_at(record.owner), zone.nsec3_record_at(record.owner)}) {
    if (!at) continue;
    if (!adds && (record.type == RRType::kANY || record.type == RRType::kRRSIG)) {
      count += records_at(at);
      continue;
    }
    const zone::RRsetView rrset = at.find(record.type);
    if (!rrset || (adds && rrset.ttl().seconds == record.ttl)) continue;
    count += std::uint64_t{rrset.count()} * (adds ? 2 : 1);
  }
  return count;
}

UpdateOutcome refused_outcome(Refusal refusal) {
  return {refusal.rcode, {}, std::move(refusal.reason), refusal.code};
}

}  // namespace

UpdateOutcome compute_update(const zone::StoreView& snapshot, const UpdateMessage& message,
                             const UpdateRules& rules) {
  const zone::ZoneView zone = snapshot.zone_at(message.zone.name);
  if (auto refused = check_zone(zone)) return refused_outcome(std::move(*refused));
  if (auto refused = check_permission(rules, zone, message))
    return refused_outcome(std::move(*refused));
  TouchedNames touched(zone);
  if (auto refused = check_prerequisites(touched, message))
    return refused_outcome(std::move(*refused));
  Updater updater(touched, zone.apex(), rules.is_signed_here);
  for (const UpdateRecord& record : message.updates) updater.apply(record);
  zone::Changeset changes = touched.changes();
  if (changes.empty()) return {Rcode::kNoError, std::move(changes), {}};
  if (auto refused = check_limits(touched, zone, changes, rules.limits))
    return refused_outcome(with_code(dns::ExtendedError::kProhibited, std::move(*refused)));
  Node& apex = touched.at(zone.apex());
  if (apex.find(RRType::kSOA) == nullptr)
    return refused_outcome(refusal(Rcode::kServFail, "zone has no SOA"));
  if (rules.is_signed_here || !is_signed(zone)) {
    move_serial(apex, rules.serial_policy, rules.now);
    return {Rcode::kNoError, touched.changes(), {}};
  }
  if (auto fault = check_signed_update(zone, touched, rules.now))
    return refused_outcome(with_code(
        dns::ExtendedError::kNotSupported,
        refusal(Rcode::kRefused, "zone is signed and the update is not consistent: {}", *fault)));
  return {Rcode::kNoError, std::move(changes), {}};
}

bool concerns_more_than(std::uint64_t limit, const zone::ZoneView& zone,
                        const UpdateMessage& message) {
  std::uint64_t count = std::uint64_t{message.prerequisites.size()} + message.updates.size();
  if (count > limit) return true;
  if (!zone || !zone.loaded()) return false;
  for (const UpdateRecord& record : message.updates) {
    count += records_along(zone, record);
    if (count > limit) return true;
  }
  return false;
}

}  // namespace pando::manager
