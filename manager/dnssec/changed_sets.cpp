#include "manager/dnssec/changed_sets.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "dns/dnssec/rrsig.h"
#include "dns/rdata/rdata.h"

namespace pando::manager {

using dns::RRType;

Status ChangedSets::sign(Node& node, RRType type) {
  const RRset& set = node.now.at(type);
  const RRset* before = ChangedZone::find(node.before, type);
  const bool is_unchanged =
      before != nullptr && before->ttl == set.ttl && before->rdatas == set.rdatas;
  if (is_unchanged && fit(node, type)) return {};
  keep_signatures(node, [type](RRType covered) { return covered != type; });
  std::vector<Bytes> rdatas = set.rdatas;
  RRset& signatures = node.now[RRType::kRRSIG];
  const bool done = sets_.sign(node.owner, type, set.ttl, rdatas, [&](ByteView rrsig) {
    TouchedNames::insert(signatures, RRType::kRRSIG, rrsig);
  });
  if (!done) return fail(Errc::kUnsupported, "OpenSSL makes no signature");
  return {};
}

Status ChangedSets::replace(Node& node, RRType type, RRset set) {
  node.now[type] = std::move(set);
  return sign(node, type);
}

void ChangedSets::remove(Node& node, RRType type) {
  node.now.erase(type);
  keep_signatures(node, [type](RRType covered) { return covered != type; });
}

void ChangedSets::keep_signatures(Node& node, const std::function<bool(RRType)>& stays) {
  const auto found = node.now.find(RRType::kRRSIG);
  if (found == node.now.end()) return;
  std::erase_if(found->second.rdatas, [&](const Bytes& rdata) {
    return rdata.size() < 2 || !stays(dns::rrsig_covered(rdata));
  });
  if (found->second.rdatas.empty()) node.now.erase(found);
}

/// Whether each key has a signature of the set that need not be renewed, and nobody else has one.
bool ChangedSets::fit(const Node& node, RRType type) const {
  const std::vector<ByteView> found = ChangedZone::signatures(node.before, type);
  std::size_t wanted = 0;
  for (const dns::SigningKey& key : signer_.keys().all()) {
    if (!signer_.keys().signs(key, type)) continue;
    ++wanted;
    if (std::ranges::none_of(found, [&](ByteView rdata) { return is_good(rdata, key); }))
      return false;
  }
  return found.size() == wanted;
}

/// A signature from the future was made while the clock was wrong, and nobody else accepts it.
bool ChangedSets::is_good(ByteView rrsig, const dns::SigningKey& key) const {
  const auto fields = dns::parse_rrsig(rrsig);
  return fields && fields->key_tag == key.tag() && fields->algorithm == key.algorithm() &&
         dns::whole_time(fields->expiration, now_) >= renewed_before_ &&
         dns::whole_time(fields->inception, now_) <= now_;
}

}  // namespace pando::manager
