#include "manager/dnssec/change_signing.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "dns/dnssec/derived_types.h"
#include "manager/dnssec/changed_sets.h"
#include "manager/dnssec/changed_zone.h"
#include "manager/dnssec/denial_check.h"
#include "manager/dnssec/nsec3_signing.h"
#include "manager/dnssec/nsec_signing.h"

namespace pando::manager {

namespace {

using dns::RRType;
using Node = TouchedNames::Node;
using RRset = TouchedNames::RRset;
using Place = ChangedZone::Place;

constexpr std::size_t kNoLimit = SIZE_MAX;

/// Makes the change of the source, without derived records.
void take_source(const zone::Changeset& source, dns::NameView apex, TouchedNames& touched) {
  const auto is_left_out = [&](const zone::Record& record) {
    return dns::is_dropped_by_signing(record.type, record.owner.view() == apex);
  };
  for (const zone::Record& record : source.removed)
    if (!dns::is_derived(record.type, record.owner.view() == apex))
      TouchedNames::remove(touched.at(record.owner), record.type, record.rdata);
  for (const zone::Record& record : source.added) {
    if (is_left_out(record)) continue;
    Node& node = touched.at(record.owner);
    if (TouchedNames::is_singleton(record.type)) node.now.erase(record.type);
    TouchedNames::add(node, record.type, record.ttl, record.rdata);
  }
}

/// RFC 9077 §3.1: the lesser of the SOA's TTL and its MINIMUM, the last four octets.
dns::Ttl denial_ttl(const RRset& soa) {
  constexpr std::size_t kNumberOctets = 4;
  const Bytes& rdata = soa.rdatas.front();
  return std::min(soa.ttl, dns::Ttl{load_be32(rdata.data() + rdata.size() - kNumberOctets)});
}

class Signing {
 public:
  Signing(ChangedZone& zone, TouchedNames& touched, const ZoneSigner& signer, zone::SetSigner& sets,
          const ChangeSigningOptions& options)
      : zone_(zone),
        touched_(touched),
        signer_(signer),
        denial_(options.denial ? *options.denial : signer.options().denial),
        sets_(signer, sets, options.now, options.renewed_before),
        options_(options) {}

  /// False: more than max_names names.
  Result<bool> run() {
    const RRset* soa = zone_.at(zone_.apex()).find(RRType::kSOA);
    if (soa == nullptr) return fail(Errc::kInvalid, "the zone would have no SOA");
    put_key_sets(soa->ttl);
    NameSet names = zone_.affected();
    names.insert(options_.renewed.begin(), options_.renewed.end());
    if (names.size() > options_.max_names) return false;
    for (const dns::Name& name : names)
      if (auto done = sign_name(name); !done) return pass(done);
    return sign_denial(names, denial_ttl(*soa));
  }

 private:
  /// The sets that name the keys may have changed since: their TTL, or what the parent is asked.
  void put_key_sets(dns::Ttl ttl) {
    Node& apex = touched_.at(zone_.apex());
    for (const RRType type : {RRType::kDNSKEY, RRType::kCDS, RRType::kCDNSKEY})
      apex.now.erase(type);
    for (zone::MadeSet& made : signer_.key_sets(ttl))
      apex.now[made.type] = RRset{made.ttl, std::move(made.rdatas)};
  }

  Result<bool> sign_denial(const NameSet& names, dns::Ttl ttl) {
    if (denial_.is_nsec3)
      return Nsec3Signing(zone_, touched_, sets_, denial_, ttl, options_.max_names).run(names);
    if (auto done = NsecSigning(zone_, touched_, sets_, ttl).run(names); !done) return pass(done);
    return true;
  }

  /// RFC 4035 §2.2, §2.3: at a delegation only DS is signed, and nothing below it.
  Status sign_name(const dns::Name& name) {
    Node& node = touched_.at(name);
    const Place place = zone_.place_now(name);
    std::vector<RRType> types = ChangedZone::own_types(node.now);
    if (place != Place::kAuthoritative)
      std::erase_if(types, [place](RRType type) {
        return place == Place::kOccluded || type != RRType::kDS;
      });
    ChangedSets::keep_signatures(node, [&](RRType covered) {
      return covered == RRType::kNSEC || covered == RRType::kNSEC3 ||
             std::ranges::find(types, covered) != types.end();
    });
    for (const RRType type : types)
      if (auto done = sets_.sign(node, type); !done) return done;
    return {};
  }

  ChangedZone& zone_;
  TouchedNames& touched_;
  const ZoneSigner& signer_;
  const zone::SigningDenial& denial_;
  ChangedSets sets_;
  const ChangeSigningOptions& options_;
};

/// The changes of all nodes. A node has one TTL for all signatures of a name, but each has that of
/// its own set, which is in its RDATA (RFC 4034 §3.1.4).
zone::Changeset changes_of(const TouchedNames& touched, const zone::Author& author) {
  constexpr std::size_t kTtlAt = 4;
  zone::Changeset changes = touched.changes();
  for (auto* records : {&changes.removed, &changes.added})
    for (zone::Record& record : *records)
      if (record.type == RRType::kRRSIG && record.rdata.size() >= kTtlAt + 4)
        record.ttl = dns::Ttl{load_be32(record.rdata.data() + kTtlAt)};
  changes.author = author;
  return changes;
}

}  // namespace

Result<std::optional<zone::Changeset>> sign_change(const zone::ZoneView& before,
                                                   const zone::Changeset& source,
                                                   const ZoneSigner& signer,
                                                   const ChangeSigningOptions& options) {
  TouchedNames touched(before);
  take_source(source, before.apex(), touched);
  if (options.renewed.empty() && touched.changes().empty())
    return zone::Changeset{dns::Name(before.apex()), {}, {}, source.author};
  bool is_whole = false;
  const Status done = signer.with_set_signer(options.now, [&](zone::SetSigner& sets) -> Status {
    ChangedZone zone(before, touched, kNoLimit);
    auto run = Signing(zone, touched, signer, sets, options).run();
    if (!run) return pass(run);
    is_whole = *run;
    return {};
  });
  if (!done) return pass(done);
  if (!is_whole) return std::nullopt;
  ChangedZone zone(before, touched, kNoLimit);
  if (const auto fault = check_denial(zone))
    return fail(Errc::kCorrupt, "the signed change would not be valid: {}", *fault);
  return changes_of(touched, source.author);
}

}  // namespace pando::manager
