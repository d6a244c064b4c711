#include <algorithm>

#include "dns/encoding.h"
#include "tests/unit/zone/dnssec/signed_zone.h"
#include "zone/dnssec/signing_denial.h"

namespace pando::zone {
namespace nsec3_signing_test {

using dns::RRType;
using namespace signed_zone_support;
using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

constexpr std::string_view kDs =
    " 300 DS 1 8 2 0123456789012345678901234567890123456789012345678901234567890123\n";

ZoneSigningOptions with_nsec3(bool is_opt_out = false, std::uint16_t iterations = 0,
                              Bytes salt = {}) {
  ZoneSigningOptions options = usual();
  options.denial = {true, is_opt_out, iterations, std::move(salt)};
  return options;
}

std::string hash_of(const std::string& name, const SigningDenial& denial = {true}) {
  dns::Nsec3Hash hash{};
  EXPECT_TRUE(
      dns::Nsec3Hasher().hash(*dns::Name::from_text(name), denial.iterations, denial.salt, hash));
  std::string text;
  dns::append_base32hex(text, hash);
  return text;
}

/// Type bitmaps of the chain as text, for the names of which `names` has the hashes; other owners
/// are shown as they are.
std::vector<std::string> types_of(const SignedZone& zone, const std::vector<std::string>& names,
                                  const SigningDenial& denial = {true}) {
  std::vector<std::string> found;
  for (const std::string& line : zone.records(RRType::kNSEC3)) {
    std::string owner = line.substr(0, 32);
    for (const std::string& name : names) {
      std::string hash = hash_of(name, denial);
      std::ranges::transform(hash, hash.begin(), [](char c) {
        return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      });
      if (owner == hash) owner = name;
    }
    std::size_t at = line.find(" 60 ") + 4;  // hash, flags, iterations, salt, next hash
    for (int i = 0; i < 5; ++i) at = std::min(line.find(' ', at), line.size() - 1) + 1;
    found.push_back(at >= line.size() ? owner : owner + " " + line.substr(at));
  }
  return found;
}

TEST(Nsec3Signing, OfASmallZoneIsAChainWithItsParameters) {
  const SignedZone signed_zone{std::string(kHead), with_nsec3()};
  expect_valid(signed_zone);
  EXPECT_EQ(signed_zone.zone().denial(), Denial::kNsec3);
  EXPECT_THAT(signed_zone.records(RRType::kNSEC3PARAM), ElementsAre("example. 0 1 0 0 -"));
  EXPECT_THAT(signed_zone.records(RRType::kNSEC), ElementsAre());
  const std::string apex = hash_of("example."), ns1 = hash_of("ns1.example.");
  EXPECT_THAT(
      types_of(signed_zone, {"example.", "ns1.example."}),
      UnorderedElementsAre("example. NS SOA RRSIG DNSKEY NSEC3PARAM", "ns1.example. A RRSIG"));
  for (const std::string& line : signed_zone.records(RRType::kNSEC3)) {
    const bool is_apex = line.find(" SOA ") != std::string::npos;
    EXPECT_NE(line.find(" 60 1 0 0 - " + (is_apex ? ns1 : apex)), std::string::npos) << line;
  }
  EXPECT_EQ(signed_zone.report().signatures, 7U);
}

/// RFC 5155 §7.1: each of them has a record, and those above nothing but insecure delegations
/// none with opt-out.
class Nsec3OfEmptyNonTerminals : public ::testing::Test {
 protected:
  const std::string text = std::string(kHead) +
                           "x.y.z 300 A 192.0.2.1\ncut.deep 300 NS ns1\nsub.cut.deep 300 TXT h\n"
                           "q.sec 300 NS ns1\nq.sec" +
                           std::string(kDs) + "r.sec 300 NS ns1\nother.y.z 300 NS ns1\n";
  const std::vector<std::string> names{"example.",       "ns1.example.",      "z.example.",
                                       "y.z.example.",   "x.y.z.example.",    "deep.example.",
                                       "sec.example.",   "cut.deep.example.", "q.sec.example.",
                                       "r.sec.example.", "other.y.z.example."};
};

TEST_F(Nsec3OfEmptyNonTerminals, AndDelegationsAreInTheChain) {
  const SignedZone whole(text, with_nsec3());
  expect_valid(whole);
  EXPECT_THAT(
      types_of(whole, names),
      UnorderedElementsAre("example. NS SOA RRSIG DNSKEY NSEC3PARAM", "ns1.example. A RRSIG",
                           "z.example.", "y.z.example.", "x.y.z.example. A RRSIG", "deep.example.",
                           "cut.deep.example. NS", "sec.example.", "q.sec.example. NS DS RRSIG",
                           "r.sec.example. NS", "other.y.z.example. NS"));
}

TEST_F(Nsec3OfEmptyNonTerminals, AboveInsecureDelegationsAreLeftOutByOptOut) {
  const SignedZone opt_out(text, with_nsec3(true));
  expect_valid(opt_out);
  EXPECT_THAT(
      types_of(opt_out, names),
      UnorderedElementsAre("example. NS SOA RRSIG DNSKEY NSEC3PARAM", "ns1.example. A RRSIG",
                           "z.example.", "y.z.example.", "x.y.z.example. A RRSIG", "sec.example.",
                           "q.sec.example. NS DS RRSIG"));
  for (const std::string& line : opt_out.records(RRType::kNSEC3))
    EXPECT_NE(line.find(" 60 1 1 0 - "), std::string::npos) << line;
  EXPECT_THAT(opt_out.records(RRType::kNSEC3PARAM), ElementsAre("example. 0 1 0 0 -"));
}

TEST(Nsec3Signing, OddNamesAndHiddenOnes) {
  const SignedZone signed_zone(std::string(kHead) +
                                   "*.Wild 300 TXT w\n\\000.Z 300 TYPE65535 \\# 1 00\n"
                                   "d 300 DNAME other.\nx.d 300 A 192.0.2.9\n"
                                   "cut 300 NS ns.cut\ncut 300 TXT h\nns.cut 300 A 192.0.2.1\n",
                               with_nsec3());
  expect_valid(signed_zone);
  EXPECT_THAT(
      types_of(signed_zone, {"example.", "ns1.example.", "*.wild.example.", "wild.example.",
                             "\\000.z.example.", "z.example.", "d.example.", "cut.example."}),
      UnorderedElementsAre("example. NS SOA RRSIG DNSKEY NSEC3PARAM", "ns1.example. A RRSIG",
                           "*.wild.example. TXT RRSIG", "wild.example.",
                           "\\000.z.example. RRSIG TYPE65535", "z.example.",
                           "d.example. DNAME RRSIG", "cut.example. NS"));
}

TEST(Nsec3Signing, IterationsAndSaltAreInEachRecord) {
  const ZoneSigningOptions options = with_nsec3(false, 3, {0xAB, 0xCD});
  const SignedZone signed_zone{std::string(kHead), options};
  expect_valid(signed_zone);
  EXPECT_THAT(signed_zone.records(RRType::kNSEC3PARAM), ElementsAre("example. 0 1 0 3 ABCD"));
  EXPECT_THAT(
      types_of(signed_zone, {"example.", "ns1.example."}, options.denial),
      UnorderedElementsAre("example. NS SOA RRSIG DNSKEY NSEC3PARAM", "ns1.example. A RRSIG"));
}

TEST(Nsec3Signing, ASourceCanHaveARecordAtAnOwnerOfTheChain) {
  const std::string owner = hash_of("ns1.example.");
  const SignedZone signed_zone(std::string(kHead) + owner + " 300 A 192.0.2.7\n", with_nsec3());
  expect_valid(signed_zone);
  EXPECT_EQ(signed_zone.records(RRType::kNSEC3).size(), 3U);
  EXPECT_EQ(signed_zone.records(RRType::kA).size(), 2U);
}

/// Ed25519 signatures are always the same, so both zones must be.
TEST(Nsec3Signing, ThreadsMakeTheSameZone) {
  std::string text(kHead);
  for (int i = 0; i < 700; ++i)
    text += fmt::format("{} 300 A 192.0.2.{}\n{}.sub{} 300 TXT \"x\"\nc{} 300 NS ns.c{}\n", i,
                        i % 250, i, i % 7, i, i);
  ZoneSigningOptions options = with_nsec3();
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

TEST(Nsec3Signing, AZoneOfALongNameHasNoRoomForHashes) {
  const auto apex = [](std::size_t octets) {
    Bytes wire{static_cast<std::uint8_t>(octets - 2)};
    wire.insert(wire.end(), octets - 2, 'a');
    wire.push_back(0);
    return *dns::Name::from_wire(wire);
  };
  EXPECT_TRUE(can_have_nsec3(apex(64)));
  std::string text;
  for (int i = 0; i < 3; ++i) text += std::string(63, 'a') + ".";
  const dns::Name fits = *dns::Name::from_text(text + std::string(28, 'b') + ".");
  const dns::Name longer = *dns::Name::from_text(text + std::string(29, 'b') + ".");
  EXPECT_TRUE(can_have_nsec3(fits));
  EXPECT_FALSE(can_have_nsec3(longer));
  EXPECT_EQ(nsec3_owner({}, fits).size(), 255U);
}

TEST(Nsec3Signing, TheWayOfDenialIsRecognised) {
  const std::vector<SigningDenial> ways{{}, {true}, {true, true}, {true, false, 0, {1}}};
  for (const SigningDenial& served : ways) {
    ZoneSigningOptions options = usual();
    options.denial = served;
    const SignedZone zone{std::string(kHead), options};
    for (const SigningDenial& wanted : ways)
      EXPECT_EQ(is_denied_by(zone.zone(), wanted), wanted == served);
  }
}

}  // namespace nsec3_signing_test
}  // namespace pando::zone
