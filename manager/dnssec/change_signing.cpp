#include "manager/dnssec/change_signing.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "dns/dnssec/denial_fields.h"
#include "dns/dnssec/derived_types.h"
#include "dns/dnssec/rrsig.h"
#include "manager/dnssec/changed_zone.h"
#include "manager/dnssec/denial_check.h"

namespace pando::manager {

namespace {

using dns::RRType;
using Node = TouchedNames::Node;
using RRset = TouchedNames::RRset;
using Place = ChangedZone::Place;
using Tree = ChangedZone::Tree;

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

/// Whether the sets of a type are the same before and after the change.
bool is_unchanged(const Node& node, RRType type, const RRset& now) {
  const RRset* before = ChangedZone::find(node.before, type);
  return before != nullptr && before->ttl == now.ttl && before->rdatas == now.rdatas;
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
      : zone_(zone), touched_(touched), signer_(signer), sets_(sets), options_(options) {}

  /// False: more than max_names names.
  Result<bool> run() {
    const RRset* soa = zone_.at(zone_.apex()).find(RRType::kSOA);
    if (soa == nullptr) return fail(Errc::kInvalid, "the zone would have no SOA");
    denial_ttl_ = denial_ttl(*soa);
    put_key_sets(soa->ttl);
    NameSet names = zone_.affected();
    names.insert(options_.renewed.begin(), options_.renewed.end());
    if (names.size() > options_.max_names) return false;
    for (const dns::Name& name : names)
      if (auto done = sign_name(name); !done) return pass(done);
    for (const dns::Name& name : before_changed_)
      if (!names.contains(name))
        if (auto done = sign_name(name); !done) return pass(done);
    return true;
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

  Status sign_name(const dns::Name& name) {
    Node& node = touched_.at(name);
    const Place place = zone_.place_now(name);
    const bool is_linked = in_chain(name);
    RRset signatures;
    std::vector<RRType> types;
    for (const auto& [type, set] : node.now) {
      if (type == RRType::kRRSIG || type == RRType::kNSEC || type == RRType::kNSEC3) continue;
      const bool is_ours = place == Place::kAuthoritative || type == RRType::kDS;
      if (is_linked && (is_ours || type == RRType::kNS)) types.push_back(type);
      if (is_linked && is_ours)
        if (auto done = sign_set(node, type, set, signatures); !done) return done;
    }
    node.now.erase(RRType::kNSEC);
    if (is_linked) {
      const RRset& nsec = node.now[RRType::kNSEC] = nsec_of(name, std::move(types));
      if (auto done = sign_set(node, RRType::kNSEC, nsec, signatures); !done) return done;
    }
    if (signatures.rdatas.empty())
      node.now.erase(RRType::kRRSIG);
    else
      node.now[RRType::kRRSIG] = std::move(signatures);
    const bool was_linked = node.before.contains(RRType::kNSEC);
    if (was_linked != is_linked && !(name == zone_.apex()))
      before_changed_.insert(previous_in_chain(name));
    return {};
  }

  /// Adds the signatures of a set: those that are there, if they fit still, or new ones.
  Status sign_set(const Node& node, RRType type, const RRset& set, RRset& signatures) {
    if (is_unchanged(node, type, set) && take_over(node, type, signatures)) return {};
    std::vector<Bytes> rdatas = set.rdatas;
    const bool done = sets_.sign(node.owner, type, set.ttl, rdatas, [&](ByteView rrsig) {
      TouchedNames::insert(signatures, RRType::kRRSIG, rrsig);
    });
    if (!done) return fail(Errc::kUnsupported, "OpenSSL makes no signature");
    return {};
  }

  /// Takes over the set's signatures if each key has one that need not be renewed.
  bool take_over(const Node& node, RRType type, RRset& signatures) const {
    const std::vector<ByteView> found = ChangedZone::signatures(node.before, type);
    std::size_t wanted = 0;
    for (const dns::SigningKey& key : signer_.keys().all()) {
      if (!signer_.keys().signs(key, type)) continue;
      ++wanted;
      if (std::ranges::none_of(found, [&](ByteView rdata) { return is_good(rdata, key); }))
        return false;
    }
    if (found.size() != wanted) return false;
    for (const ByteView rdata : found) TouchedNames::insert(signatures, RRType::kRRSIG, rdata);
    return true;
  }

  /// A signature from the future was made while the clock was wrong, and nobody else accepts it.
  [[nodiscard]] bool is_good(ByteView rdata, const dns::SigningKey& key) const {
    const auto fields = dns::parse_rrsig(rdata);
    return fields && fields->key_tag == key.tag() && fields->algorithm == key.algorithm() &&
           dns::whole_time(fields->expiration, options_.now) >= options_.renewed_before &&
           dns::whole_time(fields->inception, options_.now) <= options_.now;
  }

  RRset nsec_of(const dns::Name& name, std::vector<RRType> types) {
    types.push_back(RRType::kRRSIG);
    types.push_back(RRType::kNSEC);
    std::ranges::sort(types);
    const dns::Name next = next_in_chain(name).folded();
    Bytes rdata(next.view().bytes().begin(), next.view().bytes().end());
    dns::append_type_bitmap(types, rdata);
    RRset set;
    set.ttl = denial_ttl_;
    set.rdatas.push_back(std::move(rdata));
    return set;
  }

  /// Whether the name is to have an NSEC record: it has data of this zone, or is a delegation.
  bool in_chain(dns::NameView name) {
    return !ChangedZone::own_types(zone_.at(name).now).empty() &&
           zone_.place_now(name) != Place::kOccluded;
  }

  dns::Name next_in_chain(dns::NameView name) {
    const auto next = forward_.find(
        zone_.next(Tree::kNames, name),
        [this](dns::NameView from) { return zone_.next(Tree::kNames, from); },
        [this](dns::NameView at) { return in_chain(at); });
    return next ? *next : dns::Name(zone_.apex());
  }

  dns::Name previous_in_chain(dns::NameView name) {
    const auto previous = backward_.find(
        zone_.previous(Tree::kNames, name),
        [this](dns::NameView from) { return zone_.previous(Tree::kNames, from); },
        [this](dns::NameView at) { return in_chain(at); });
    return previous ? *previous : dns::Name(zone_.apex());
  }

  ChangedZone& zone_;
  TouchedNames& touched_;
  const ZoneSigner& signer_;
  zone::SetSigner& sets_;
  const ChangeSigningOptions& options_;
  dns::Ttl denial_ttl_;
  NameSet before_changed_;        // names whose NSEC gets another next name
  Shortcuts forward_, backward_;  // skip names outside the chain
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
