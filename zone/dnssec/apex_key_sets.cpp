#include "zone/dnssec/apex_key_sets.h"

#include <algorithm>
#include <utility>

#include "dns/dnssec/dnskey.h"

namespace pando::zone {

using dns::RRType;

std::vector<MadeSet> apex_key_sets(dns::NameView apex, const SigningKeys& keys, dns::Ttl ttl,
                                   ParentRequest request) {
  constexpr std::uint8_t kSha256 = 2;
  MadeSet dnskeys{RRType::kDNSKEY, ttl, {}}, cds{RRType::kCDS, ttl, {}},
      cdnskeys{RRType::kCDNSKEY, ttl, {}};
  for (const dns::SigningKey& key : keys.all()) {
    const KeyUse& use = keys.use_of(key);
    if (use.is_published) dnskeys.rdatas.push_back(key.dnskey());
    if (request != ParentRequest::kKeys || !use.has_ds) continue;
    cds.rdatas.push_back(*dns::make_ds(apex, key.dnskey(), kSha256));
    cdnskeys.rdatas.push_back(key.dnskey());
  }
  if (request == ParentRequest::kRemoval) {
    cds.rdatas.push_back({0, 0, 0, 0, 0});
    cdnskeys.rdatas.push_back({0, 0, 3, 0, 0});
  }
  std::vector<MadeSet> sets;
  for (MadeSet* set : {&dnskeys, &cds, &cdnskeys}) {
    if (set->rdatas.empty()) continue;
    std::ranges::sort(set->rdatas);
    sets.push_back(std::move(*set));
  }
  return sets;
}

}  // namespace pando::zone
