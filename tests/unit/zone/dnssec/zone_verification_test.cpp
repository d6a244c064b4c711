#include "zone/dnssec/zone_verification.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "tests/fuzz/served_zone.h"
#include "tests/support/trees.h"

namespace pando::zone {
namespace zone_verification_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::uint64_t kIn2026 = 1'780'000'000;
constexpr std::uint64_t kIn2019 = 1'560'000'000;
constexpr std::uint64_t kIn2038 = 2'150'000'000;
constexpr std::uint64_t kEnd = 2'114'380'800;  // 2037-01-01

/// By BIND, with a key of each of eight algorithms; valid from 2020 to 2037.
std::string signed_text() {
  std::ifstream file(pando::tests::source_path("/tests/data/dnssec/all_algorithms.zone"));
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// The text with the first `from` replaced.
std::string changed(const std::string& from, const std::string& to) {
  std::string text = signed_text();
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

Verification verify(const std::string& text, std::uint64_t now = kIn2026, unsigned threads = 0) {
  fuzz::ServedZone served(text);
  return verify_zone(served.zone(), {now, threads});
}

TEST(ZoneVerification, EveryAlgorithmOfASignerVerifies) {
  const Verification result = verify(signed_text());
  EXPECT_THAT(result.faults, IsEmpty());
  EXPECT_TRUE(result.ok() && result.is_signed);
  EXPECT_GE(result.signatures, 8U * 3U) << "of each set by each algorithm";
  ASSERT_TRUE(result.first_end);
  EXPECT_EQ(result.first_end->at, kEnd);
}

TEST(ZoneVerification, TimesAreThoseOfTheSignatures) {
  const Verification early = verify(signed_text(), kIn2019);
  ASSERT_FALSE(early.ok());
  EXPECT_THAT(early.faults.front(), HasSubstr("begins at 2020-01-01T00:00:00Z"));
  EXPECT_FALSE(early.first_end) << "none is good";
  const Verification late = verify(signed_text(), kIn2038);
  EXPECT_THAT(late.faults.front(), HasSubstr("expired at 2037-01-01T00:00:00Z"));
}

TEST(ZoneVerification, ThreadsFindTheSameInTheSameOrder) {
  const Verification alone = verify(signed_text(), kIn2038);
  const Verification beside = verify(signed_text(), kIn2038, 3);
  EXPECT_EQ(alone.faults, beside.faults);
  EXPECT_EQ(alone.fault_count, beside.fault_count);
  EXPECT_EQ(verify(signed_text(), kIn2026, 3).signatures, verify(signed_text()).signatures);
}

TEST(ZoneVerification, AChangedSoaFailsByEachAlgorithmAndIsOneFault) {
  const Verification result =
      verify(changed("Ns1.Example. Admin.Example. 1 3600", "Ns1.Example. Admin.Example. 2 3600"));
  EXPECT_EQ(result.fault_count, 1U);
  EXPECT_THAT(result.faults, ElementsAre(HasSubstr("SOA: RRSIG by key ")));
}

TEST(ZoneVerification, AnUnsignedZoneHasNoFault) {
  const Verification result = verify("@ 300 SOA ns1 admin 7 3600 600 86400 60\n@ 300 NS ns1\n"
                                     "ns1 300 A 192.0.2.1\n");
  EXPECT_TRUE(result.ok());
  EXPECT_FALSE(result.is_signed);
}

TEST(ZoneVerification, KeysWithoutSignaturesAreOneFaultAndNotOneOfEachName) {
  const Verification result =
      verify("@ 300 SOA ns1 admin 7 3600 600 86400 60\n@ 300 NS ns1\nns1 300 A 192.0.2.1\n"
             "@ 300 DNSKEY 257 3 15 l02Woi0iS8Aa25FQkUd9RMzZHJpBoRQwAQEX1SxZJA4=\n");
  EXPECT_THAT(result.faults, ElementsAre(HasSubstr("SOA has no RRSIG of an algorithm"),
                                         HasSubstr("has neither NSEC nor NSEC3PARAM")));
}

/// RFC 8976 A.1: a zone of four records with its digest.
TEST(ZoneVerification, TheDigestOfRfc8976AppendixA1Agrees) {
  const std::string digest =
      "c68090d90a7aed716bc459f9340e3d7c1370d4d24b7e2fc3a1ddc0b9a87153b9a9713b3c9ae5cc27777f98b8e730044c";
  const auto zone = [&](const char* last_octet) {
    return "example. 86400 IN SOA ns1 admin 2018031900 1800 900 604800 86400\n"
           "example. 86400 IN NS ns1\nexample. 86400 IN NS ns2\n"
           "example. 86400 IN ZONEMD 2018031900 1 1 " +
           digest + "\nns1 3600 IN A 203.0.113.63\nns2 3600 IN AAAA 2001:db8::" + last_octet + "\n";
  };
  EXPECT_THAT(verify(zone("63")).faults, IsEmpty());
  EXPECT_THAT(verify(zone("64")).faults,
              ElementsAre("example. ZONEMD is not the digest of the zone's data"));
}

}  // namespace zone_verification_test
}  // namespace pando::zone
