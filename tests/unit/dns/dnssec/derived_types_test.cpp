#include "dns/dnssec/derived_types.h"

#include <gtest/gtest.h>

#include <set>

namespace pando::dns {
namespace derived_types_test {

std::set<RRType> types_for(bool (*is_one)(RRType, bool), bool at_apex) {
  std::set<RRType> types;
  for (unsigned value = 0; value <= 65535; ++value)
    if (is_one(static_cast<RRType>(value), at_apex)) types.insert(static_cast<RRType>(value));
  return types;
}

TEST(DerivedTypes, DependOnTypeAndPlaceAlone) {
  using enum RRType;
  EXPECT_EQ(types_for(is_derived, false), (std::set{kRRSIG, kNSEC, kNSEC3}))
      << "DNSKEY, CDS and CDNSKEY below the apex are somebody's source (RFC 9615)";
  EXPECT_EQ(types_for(is_derived, true),
            (std::set{kRRSIG, kNSEC, kNSEC3, kDNSKEY, kNSEC3PARAM, kCDS, kCDNSKEY}));
}

TEST(DerivedTypes, ADigestOfTheZoneIsDroppedAtTheApexAlone) {
  EXPECT_FALSE(is_derived(RRType::kZONEMD, true));
  EXPECT_TRUE(is_dropped_by_signing(RRType::kZONEMD, true));
  EXPECT_FALSE(is_dropped_by_signing(RRType::kZONEMD, false));
  EXPECT_TRUE(is_dropped_by_signing(RRType::kNSEC, false));
}

}  // namespace derived_types_test
}  // namespace pando::dns
