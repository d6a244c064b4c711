#include "zone/dnssec/zone_signing.h"

#include <map>
#include <set>

#include "tests/unit/zone/dnssec/signed_zone.h"

namespace pando::zone {
namespace zone_signing_test {

using dns::RRType;
using ::testing::ElementsAre;

using namespace signed_zone_support;

TEST(ZoneSigning, OfASmallZoneIsAChainWithKeysAndSignatures) {
  const SignedZone signed_zone{std::string(kHead)};
  expect_valid(signed_zone);
  EXPECT_THAT(signed_zone.records(RRType::kNSEC),
              ElementsAre("example. 60 ns1.example. NS SOA RRSIG NSEC DNSKEY",
                          "ns1.example. 60 example. A RRSIG NSEC"));
  EXPECT_EQ(signed_zone.records(RRType::kDNSKEY).size(), 1U);
  EXPECT_EQ(signed_zone.report().signatures, 6U) << "SOA, NS, DNSKEY, A and two NSEC";
  EXPECT_EQ(signed_zone.report().dropped, 0U);
  EXPECT_EQ(signed_zone.zone().serial().value, 7U);
}

TEST(ZoneSigning, ATtlOfDenialIsTheLesserOfSoaAndMinimum) {  // RFC 9077 §3
  const SignedZone soa_less("@ 30 SOA ns1 admin 7 3600 600 86400 60\n@ 300 NS ns1\n");
  EXPECT_THAT(soa_less.records(RRType::kNSEC),
              ElementsAre("example. 30 example. NS SOA RRSIG NSEC DNSKEY"));
  for (const std::string& line : soa_less.records(RRType::kDNSKEY))
    EXPECT_TRUE(line.starts_with("example. 30 "));
}

/// RFC 4035 §2.2, §2.3: glue, delegations and what lies below.
TEST(ZoneSigning, DelegationsHaveNsecAndSignedDsAlone) {
  const SignedZone signed_zone(std::string(kHead) +
                               "secure 300 NS ns.secure\nsecure 300 DS 1 8 2 "
                               "0123456789012345678901234567890123456789012345678901234567890123\n"
                               "ns.secure 300 A 192.0.2.2\nsecure 300 TXT \"hidden\"\n"
                               "insecure 300 NS ns.insecure\nns.insecure 300 A 192.0.2.3\n"
                               "deep.ns.insecure 300 TXT \"hidden\"\nx.insecure 300 NS ns1\n");
  expect_valid(signed_zone);
  EXPECT_THAT(signed_zone.records(RRType::kNSEC),
              ElementsAre("example. 60 insecure.example. NS SOA RRSIG NSEC DNSKEY",
                          "insecure.example. 60 ns1.example. NS RRSIG NSEC",
                          "ns1.example. 60 secure.example. A RRSIG NSEC",
                          "secure.example. 60 example. NS DS RRSIG NSEC"));
  const auto types = signed_zone.signed_types();
  EXPECT_EQ(types.at("insecure.example."), std::set{RRType::kNSEC});
  EXPECT_EQ(types.at("secure.example."), (std::set{RRType::kDS, RRType::kNSEC}));
  EXPECT_EQ(types.count("ns.secure.example."), 0U);
  EXPECT_EQ(types.count("deep.ns.insecure.example."), 0U);
  EXPECT_EQ(types.count("x.insecure.example."), 0U) << "a cut below a cut";
  EXPECT_EQ(signed_zone.records(RRType::kTXT).size(), 2U) << "hidden records stay";
}

TEST(ZoneSigning, NamesBelowADnameAreHidden) {
  const SignedZone signed_zone(std::string(kHead) +
                               "d 300 DNAME other.\nd 300 TXT \"here\"\nx.d 300 A 192.0.2.9\n");
  expect_valid(signed_zone);
  EXPECT_THAT(signed_zone.records(RRType::kNSEC),
              ElementsAre("example. 60 d.example. NS SOA RRSIG NSEC DNSKEY",
                          "d.example. 60 ns1.example. TXT DNAME RRSIG NSEC",
                          "ns1.example. 60 example. A RRSIG NSEC"));
}

TEST(ZoneSigning, OddNamesAreInTheChainInLowerCase) {
  const SignedZone signed_zone(std::string(kHead) +
                               "a.b.C 300 A 192.0.2.1\n*.Wild 300 TXT \"w\"\n* 300 TXT \"all\"\n"
                               "\\000.Z 300 TYPE65535 \\# 1 00\n\\255\\.\\@ 300 A 192.0.2.1\n"
                               "UP 300 AAAA 2001:db8::1\n");
  expect_valid(signed_zone);
  EXPECT_THAT(signed_zone.records(RRType::kNSEC),
              ElementsAre("example. 60 *.example. NS SOA RRSIG NSEC DNSKEY",
                          "*.example. 60 a.b.c.example. TXT RRSIG NSEC",
                          "a.b.C.example. 60 ns1.example. A RRSIG NSEC",
                          "ns1.example. 60 up.example. A RRSIG NSEC",
                          "UP.example. 60 *.wild.example. AAAA RRSIG NSEC",
                          "*.Wild.example. 60 \\000.z.example. TXT RRSIG NSEC",
                          "\\000.Z.example. 60 \\255\\.\\@.example. RRSIG NSEC TYPE65535",
                          "\\255\\.\\@.example. 60 example. A RRSIG NSEC"));
}

TEST(ZoneSigning, ASignersRecordsInTheSourceAreDroppedAndCounted) {
  const std::string own =
      "_dsboot.x 300 CDS 1 8 2 "
      "0123456789012345678901234567890123456789012345678901234567890123\n"
      "_dsboot.x 300 DNSKEY 257 3 15 l02Woi0iS8Aa25FQkUd9RMzZHJpBoRQwAQEX1SxZJA4=\n";
  const std::string derived =
      "@ 300 DNSKEY 257 3 15 l02Woi0iS8Aa25FQkUd9RMzZHJpBoRQwAQEX1SxZJA4=\n"
      "@ 300 CDNSKEY 257 3 15 l02Woi0iS8Aa25FQkUd9RMzZHJpBoRQwAQEX1SxZJA4=\n"
      "@ 300 NSEC3PARAM 1 0 0 -\n"
      "@ 300 RRSIG SOA 15 1 600 20300101000000 20200101000000 1 example. AAAA\n"
      "@ 300 ZONEMD 7 1 1 "
      "0123456789012345678901234567890123456789012345678901234567890123"
      "01234567890123456789012345678901\n"
      "ns1 300 NSEC example. A NSEC\nnobody 300 NSEC example. NSEC\n"
      "nobody 300 RRSIG NSEC 15 2 600 20300101000000 20200101000000 1 example. AAAA\n"
      "0p9mhaveqvm6t7vbl5lop2u3t2rp3tom 300 NSEC3 1 0 0 - 2T7B4G4VSA5SMI47K61MV5BV1A22BOJR A\n";
  const auto without = SignedZone(std::string(kHead) + own).all_records();
  const SignedZone with(std::string(kHead) + own + derived);
  expect_valid(with);
  EXPECT_EQ(with.report().dropped, 9U);
  EXPECT_EQ(with.all_records(), without);
  EXPECT_EQ(with.records(RRType::kDNSKEY).size(), 2U) << "one is of a source name";
}

TEST(ZoneSigning, KskAndZskSignTheirPartsAndCdsIsOfTheKsk) {
  ZoneSigningOptions options = usual();
  options.parent_request = ParentRequest::kKeys;
  const dns::SigningKey ksk = ed25519(2, 257), zsk = ed25519(3, 256);
  const SignedZone signed_zone{std::string(kHead), options, {zsk, ksk}};
  expect_valid(signed_zone);
  const auto cds = signed_zone.records(RRType::kCDS);
  ASSERT_EQ(cds.size(), 1U);
  EXPECT_TRUE(cds.front().starts_with(fmt::format("example. 600 {} 15 2 ", ksk.tag())));
  EXPECT_EQ(signed_zone.records(RRType::kCDNSKEY).size(), 1U);
  EXPECT_EQ(signed_zone.records(RRType::kDNSKEY).size(), 2U);
  for (const std::string& line : signed_zone.records(RRType::kRRSIG)) {
    const bool is_of_keys =
        line.find("DNSKEY ") != std::string::npos || line.find(" CDS ") != std::string::npos;
    const auto tag = is_of_keys ? ksk.tag() : zsk.tag();
    EXPECT_NE(line.find(fmt::format(" {} example. ", tag)), std::string::npos) << line;
  }
}

/// A validator tries both keys (RFC 4034 §3.1.6).
TEST(ZoneSigning, TwoKeysMayHaveOneTag) {
  std::map<std::uint16_t, dns::SigningKey> by_tag;
  for (;;) {
    auto key = dns::SigningKey::generate(15, 257).value();
    const auto [found, is_new] = by_tag.try_emplace(key.tag(), key);
    if (is_new) continue;
    const SignedZone signed_zone{std::string(kHead), usual(), {key, found->second}};
    expect_valid(signed_zone);
    EXPECT_EQ(signed_zone.report().signatures, 12U);
    return;
  }
}

TEST(ZoneSigning, TheSerialCanBeAnother) {
  ZoneSigningOptions options = usual();
  options.serial = dns::Serial{4'294'967'295};
  const SignedZone signed_zone{std::string(kHead), options};
  expect_valid(signed_zone);
  EXPECT_THAT(signed_zone.records(RRType::kSOA),
              ElementsAre("example. 600 ns1.example. admin.example. 4294967295 3600 600 86400 60"));
}

/// Ed25519 signatures are always the same, so both zones must be.
TEST(ZoneSigning, ThreadsMakeTheSameZone) {
  std::string text(kHead);
  for (int i = 0; i < 1500; ++i)
    text += fmt::format(
        "{} 300 A 192.0.2.{}\n{}.sub{} 300 TXT \"x\"\nc{} 300 NS ns.c{}\n"
        "ns.c{} 300 A 192.0.2.1\n",
        i, i % 250, i, i % 7, i, i, i);
  ZoneSigningOptions options = usual();
  std::vector<std::string> alone;
  for (const unsigned threads : {0U, 1U, 3U}) {
    options.threads = threads;
    const SignedZone signed_zone(text, options);
    EXPECT_EQ(signed_zone.report().signatures, signed_zone.records(RRType::kRRSIG).size());
    if (threads == 0) {
      expect_valid(signed_zone);
      alone = signed_zone.all_records();
    }
    EXPECT_EQ(signed_zone.all_records(), alone);
  }
}

TEST(ZoneSigning, ManyHiddenNamesBetweenTwoLinksAreNoGap) {
  std::string text(kHead);
  text += "cut 300 NS ns.cut\n";
  for (int i = 0; i < 1000; ++i) text += fmt::format("{}.cut 300 A 192.0.2.1\n", i);
  text += "last 300 A 192.0.2.1\n";
  const SignedZone signed_zone(text);
  expect_valid(signed_zone);
  EXPECT_EQ(signed_zone.records(RRType::kNSEC).size(), 4U);
  EXPECT_EQ(signed_zone.records(RRType::kA).size(), 1002U);
}

TEST(ZoneSigning, GivenUpWorkEndsWithAnErrorAndAllThreads) {
  std::string text(kHead);
  for (int i = 0; i < 6000; ++i) text += fmt::format("{} 300 A 192.0.2.1\n", i);
  fuzz::ServedZone source(text);
  Progress progress;
  progress.give_up();
  const Progress::Scope scope(&progress);
  auto transaction = source.store().begin();
  ZoneBuilder builder(source.apex(), transaction);
  ZoneSigningOptions options = usual();
  options.threads = 2;
  const auto keys = SigningKeys::make({ed25519(1)});
  const auto done = sign_zone(source.zone(), *keys, options, builder);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().text, kGivenUp);
}

TEST(ZoneSigning, OfNoZoneIsAnError) {
  fuzz::ServedZone source{std::string(kHead)};
  auto transaction = source.store().begin();
  ZoneBuilder builder(source.apex(), transaction);
  const auto keys = SigningKeys::make({ed25519(1)});
  EXPECT_FALSE(sign_zone(ZoneView(), *keys, usual(), builder));
}

}  // namespace zone_signing_test
}  // namespace pando::zone
