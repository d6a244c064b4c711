#include "manager/dnssec/nsec3_signing.h"

#include "tests/unit/manager/dnssec/two_zones.h"
#include "zone/dnssec/signing_denial.h"

namespace pando::manager {
namespace nsec3_signing_test {

using namespace two_zones;

const zone::SigningDenial kNsec3{true};
const zone::SigningDenial kOptOut{true, true};
const std::string kDs =
    " 300 DS 1 8 2 0123456789012345678901234567890123456789012345678901234567890123\n";

dns::Name owner_of(const std::string& text) {
  dns::Nsec3Hash hash{};
  EXPECT_TRUE(dns::Nsec3Hasher().hash(name(text), 0, {}, hash));
  return zone::nsec3_owner(hash, name("example."));
}

bool has_record(const TwoZones& zones, const std::string& text) {
  return static_cast<bool>(zones.zone().nsec3_record_at(owner_of(text)));
}

TEST(Nsec3ChangeSigning, ANewNameCostsFourSignatures) {
  TwoZones zones(std::string(kHead) + "a 300 A 192.0.2.2\nz 300 A 192.0.2.3\n", {257}, kNsec3);
  zones.change(adding("m 300 A 192.0.2.4\n"));
  EXPECT_EQ(zones.signatures_made(), 4U);  // its A and NSEC3, the NSEC3 before, the SOA
  zones.compare();
  zones.change(adding("m 300 A 192.0.2.5\n"));
  EXPECT_EQ(zones.signatures_made(), 2U);
  zones.compare();
  zones.change(adding("m 300 TXT m\n"));
  EXPECT_EQ(zones.signatures_made(), 3U);  // the NSEC3 has another type
  zones.compare();
  zones.change(removing("m 300 A 192.0.2.4\nm 300 A 192.0.2.5\nm 300 TXT m\n"));
  EXPECT_EQ(zones.signatures_made(), 2U);
  zones.compare();
}

TEST(Nsec3ChangeSigning, EmptyNonTerminalsComeAndGo) {
  TwoZones zones(std::string(kHead), {257}, kNsec3);
  zones.change(adding("a.b.c 300 A 192.0.2.2\n"));
  EXPECT_TRUE(has_record(zones, "b.c") && has_record(zones, "c"));
  zones.compare("two came");
  zones.change(adding("x.c 300 A 192.0.2.2\n"));
  zones.change(removing("a.b.c 300 A 192.0.2.2\n"));
  EXPECT_TRUE(has_record(zones, "c") && !has_record(zones, "b.c"));
  zones.compare("one went");
  zones.change(adding("c 300 TXT c\n"));
  zones.compare("it has data");
  zones.change(removing("c 300 TXT c\n"));
  EXPECT_TRUE(has_record(zones, "c"));
  zones.compare("it is empty again");
  zones.change(removing("x.c 300 A 192.0.2.2\n"));
  EXPECT_FALSE(has_record(zones, "c"));
  zones.compare("none is left");
}

TEST(Nsec3ChangeSigning, NamesBelowADelegationOrDnameThatComesOrGoes) {
  for (const zone::SigningDenial& denial : {kNsec3, kOptOut}) {
    TwoZones zones(std::string(kHead) +
                       "sub 300 A 192.0.2.2\nx.sub 300 A 192.0.2.3\ny.x.sub 300 TXT y\n"
                       "q.r.sub 300 A 192.0.2.4\nbelow.ent 300 TXT e\n",
                   {257}, denial);
    zones.change(adding("sub 300 NS ns.sub\n"));
    zones.compare("delegated");
    zones.change(adding("sub" + kDs));
    zones.compare("signed delegation");
    zones.change(removing("sub" + kDs));
    EXPECT_EQ(has_record(zones, "sub"), !denial.is_opt_out);
    zones.compare("unsigned delegation");
    zones.change(removing("sub 300 NS ns.sub\n"));
    zones.compare("no delegation");
    zones.change(adding("ent 300 DNAME elsewhere.test.\n"));
    zones.compare("DNAME");
    zones.change(removing("ent 300 DNAME elsewhere.test.\n"));
    zones.compare("no DNAME");
  }
}

/// RFC 5155 §6. The zone is that of signing the source as a whole, so a record goes with the DS.
TEST(Nsec3ChangeSigning, OptOutFollowsTheDsOfDelegations) {
  TwoZones zones(std::string(kHead) + "a.tld 300 NS ns1\nb.tld 300 NS ns1\nc 300 NS ns1\n", {257},
                 kOptOut);
  EXPECT_FALSE(has_record(zones, "a.tld") || has_record(zones, "tld"));
  zones.change(adding("d.tld 300 NS ns1\n"));
  EXPECT_EQ(zones.signatures_made(), 1U) << "of the SOA";
  zones.compare("another one without DS");
  zones.change(adding("b.tld" + kDs));
  EXPECT_TRUE(has_record(zones, "b.tld") && has_record(zones, "tld"));
  EXPECT_FALSE(has_record(zones, "a.tld"));
  zones.compare("secure");
  zones.change(adding("d.tld" + kDs));
  zones.change(removing("b.tld" + kDs));
  EXPECT_TRUE(has_record(zones, "tld") && !has_record(zones, "b.tld"));
  zones.compare("one is secure still");
  zones.change(removing("d.tld" + kDs));
  EXPECT_FALSE(has_record(zones, "tld"));
  zones.compare("none is secure");
  zones.change(adding("tld 300 TXT tld\n"));
  zones.change(removing("tld 300 TXT tld\n"));
  EXPECT_FALSE(has_record(zones, "tld"));
  zones.compare("empty again");
}

TEST(Nsec3ChangeSigning, ManyInsecureDelegationsAreLeftToAnotherThread) {
  std::string text(kHead);
  for (int i = 0; i < 50; ++i) text += fmt::format("n{}.tld 300 NS ns1\n", i);
  TwoZones zones(text + "secure.tld 300 NS ns1\nsecure.tld" + kDs, {257}, kOptOut);
  const auto changes = zones.with_serial(removing("secure.tld" + kDs));
  const auto few = sign_change(zones.zone(), changes, zones.signer(), {kNow, 20});
  ASSERT_TRUE(few);
  EXPECT_FALSE(*few);
  const auto many = sign_change(zones.zone(), changes, zones.signer(), {kNow, 60});
  ASSERT_TRUE(many);
  EXPECT_TRUE(*many);
  // Other changes below the same name need no such search.
  const auto other = sign_change(zones.zone(), zones.with_serial(adding("more.tld 300 NS ns1\n")),
                                 zones.signer(), {kNow, 20});
  ASSERT_TRUE(other);
  EXPECT_TRUE(*other);
}

TEST(Nsec3ChangeSigning, ANameWhoseHashIsTakenIsRefused) {  // RFC 5155 §7.1
  TwoZones zones(std::string(kHead) + "a 300 A 192.0.2.2\n", {257}, kNsec3);
  zones.put_beside({owner_of("new"), RRType::kNSEC3, dns::Ttl{60},
                    zone::nsec3_rdata(kNsec3, {}, Bytes{0, 1, 0x40})});
  const auto refused = sign_change(zones.zone(), zones.with_serial(adding("new 300 A 192.0.2.4\n")),
                                   zones.signer(), {kNow});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::kInvalid);
  EXPECT_THAT(refused.error().text, ::testing::HasSubstr("same NSEC3 hash"));
  const auto below = sign_change(zones.zone(), zones.with_serial(adding("x.new 300 A 192.0.2.4\n")),
                                 zones.signer(), {kNow});
  EXPECT_FALSE(below) << "the empty non-terminal has the hash";
}

/// A name of the source may be that of an NSEC3 record (RFC 5155 §7.2.8).
TEST(Nsec3ChangeSigning, ANameCanBeAnOwnerOfTheChain) {
  TwoZones zones(std::string(kHead) + "a 300 A 192.0.2.2\n", {257}, kNsec3);
  const std::string owner = dns::to_text(owner_of("a"));
  zones.change(adding(owner + " 300 A 192.0.2.4\n"));
  zones.compare("it has data");
  zones.change(adding("a 300 TXT a\n"));
  zones.compare("its record changes");
  zones.change(removing("a 300 TXT a\na 300 A 192.0.2.2\n"));
  zones.compare("its record goes");
  zones.change(adding("a 300 A 192.0.2.2\n"));
  zones.change(removing(owner + " 300 A 192.0.2.4\n"));
  zones.compare("its data go");
}

TEST(Nsec3ChangeSigning, RenewsRecordsOfNamesAndOfTheChain) {
  TwoZones zones(std::string(kHead) + "a 300 A 192.0.2.2\nb 300 A 192.0.2.3\n", {257}, kNsec3);
  const std::vector<dns::Name> renewed{owner_of("b")};
  zones.change({name("example."), {}, {}}, {kNow + 10, SIZE_MAX, renewed, kNow + 2 * 86400});
  std::set<std::string> owners;
  for (const zone::Record& record : zones.last().added)
    if (record.type == RRType::kRRSIG) owners.insert(dns::to_text(record.owner));
  EXPECT_THAT(owners,
              ::testing::UnorderedElementsAre("example.", dns::to_text(owner_of("example.")),
                                              dns::to_text(renewed[0])));
  zones.compare();
}

TEST(Nsec3ChangeSigning, AnotherWayOfDenialIsNotThatOfTheZone) {
  TwoZones zones(std::string(kHead), {257}, kNsec3);
  EXPECT_TRUE(zones.signer().has_signed(zones.zone()));
  for (const zone::SigningDenial& other : {zone::SigningDenial{}, kOptOut}) {
    const ZoneSigner signer(name("example."), zones.signer().keys(), {.denial = other});
    EXPECT_FALSE(signer.has_signed(zones.zone()));
  }
}

TEST(Nsec3ChangeSigning, RandomChangesEqualSigningTheWholeZone) {
  for (const zone::SigningDenial& denial :
       {kNsec3, kOptOut, zone::SigningDenial{true, true, 2, Bytes{0xAB}}})
    for (unsigned seed = 1; seed <= 6; ++seed) {
      change_at_random(seed, denial);
      ASSERT_FALSE(::testing::Test::HasFailure());
    }
}

}  // namespace nsec3_signing_test
}  // namespace pando::manager
