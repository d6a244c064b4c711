#include "zone/dnssec/delegation_check.h"

#include "dns/dnssec/dnskey.h"
#include "dns/dnssec/ds.h"

namespace pando::zone {

std::string delegation_problem(const ZoneView& parent, const ZoneView& child) {
  using dns::RRType;
  if (!parent.loaded() || !child.loaded()) return {};
  const RRsetView set = parent.record_at(child.apex()).find(RRType::kDS);
  if (set.count() == 0 || parent.apex_record().find(RRType::kDNSKEY).count() == 0) return {};
  const RRsetView keys = child.apex_record().find(RRType::kDNSKEY);
  bool usable = false;
  bool matched = false;
  set.for_each_rdata([&](ByteView rdata) {
    const auto ds = dns::parse_ds(rdata);
    if (!ds || !dns::is_supported_digest(ds->digest_type) ||
        !dns::is_supported_algorithm(ds->algorithm))
      return;
    usable = true;
    keys.for_each_rdata([&](ByteView key) { matched |= dns::matches(*ds, child.apex(), key); });
  });
  // RFC 4035 §5.2: with no DS that it knows, a validator takes the zone for unsigned.
  if (!usable || matched) return {};
  return fmt::format(
      "validators refuse it: {}, which is served here, too, has DS records for it, "
      "and {}",
      to_text(parent.apex()),
      keys.count() == 0 ? "it has no DNSKEY" : "none is of its DNSKEY records");
}

}  // namespace pando::zone
