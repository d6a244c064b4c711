#include "tests/unit/manager/dnssec/two_zones.h"

namespace pando::manager {
namespace change_signing_test {

using namespace two_zones;
using ::testing::IsEmpty;

TEST(ChangeSigning, ANewNameCostsFourSignatures) {
  TwoZones zones(std::string(kHead) + "a 300 A 192.0.2.2\nz 300 A 192.0.2.3\n");
  zones.change(adding("m 300 A 192.0.2.4\n"));
  EXPECT_EQ(zones.signatures_made(), 4U);  // its A and NSEC, the NSEC before, the SOA
  zones.compare();
  zones.change(adding("m 300 A 192.0.2.5\n"));
  EXPECT_EQ(zones.signatures_made(), 2U);
  zones.compare();
  zones.change(removing("m 300 A 192.0.2.4\nm 300 A 192.0.2.5\n"));
  EXPECT_EQ(zones.signatures_made(), 2U);
  zones.compare();
}

TEST(ChangeSigning, NamesBelowADelegationOrDnameThatComesOrGoes) {
  TwoZones zones(std::string(kHead) +
                 "sub 300 A 192.0.2.2\nx.sub 300 A 192.0.2.3\ny.x.sub 300 TXT y\n"
                 "below.ent 300 TXT e\nzz 300 A 192.0.2.9\n");
  zones.change(adding("sub 300 NS ns.sub\n"));
  zones.compare("delegated");
  zones.change(
      adding("sub 300 DS 1 8 2 "
             "0123456789012345678901234567890123456789012345678901234567890123\n"));
  zones.compare("signed delegation");
  zones.change(adding("ns.sub 300 A 192.0.2.53\n"));
  EXPECT_EQ(zones.signatures_made(), 1U);
  zones.compare("glue");
  zones.change(removing("sub 300 NS ns.sub\n"));
  zones.compare("no delegation");
  zones.change(adding("ent 300 DNAME elsewhere.test.\n"));
  zones.compare("DNAME");
  zones.change(removing("ent 300 DNAME elsewhere.test.\n"));
  zones.compare("no DNAME");
}

TEST(ChangeSigning, ComesAndGoesInOneChange) {
  TwoZones zones(std::string(kHead) +
                 "b 300 NS ns.b\nns.b 300 A 192.0.2.2\n"
                 "d 300 A 192.0.2.3\n*.w 300 TXT w\n");
  zone::Changeset both = adding("c 300 NS ns.c\nns.c 300 A 192.0.2.4\n*.c2 300 A 192.0.2.8\n");
  both.removed = records("b 300 NS ns.b\n*.w 300 TXT w\nd 300 A 192.0.2.3\n");
  zones.change(std::move(both));
  zones.compare();
}

TEST(ChangeSigning, AnotherTtlIsSignedAnew) {
  TwoZones zones(std::string(kHead) + "a 300 A 192.0.2.2\na 300 A 192.0.2.3\na 300 TXT t\n");
  zone::Changeset changes = adding("a 60 A 192.0.2.2\na 60 A 192.0.2.3\n");
  changes.removed = records("a 300 A 192.0.2.2\na 300 A 192.0.2.3\n");
  zones.change(std::move(changes));
  EXPECT_EQ(zones.signatures_made(), 2U);
  for (const zone::Record& record : zones.last().added)
    if (record.type == RRType::kRRSIG && record.owner.view() == name("a").view())
      EXPECT_EQ(record.ttl.seconds, 60U);
  zones.compare();
}

TEST(ChangeSigning, DerivedRecordsOfAChangeAreLeftOut) {
  TwoZones zones(std::string(kHead) + "a 300 A 192.0.2.2\n");
  zones.change(
      adding("a 300 NSEC b A\n@ 300 DNSKEY 257 3 13 AQPSKmynfzW4kyBv015MUG2DeIQ3Cbl+\n"
             "_dsboot.a 300 CDS 0 0 0 00\n@ 300 ZONEMD 8 1 1 "
             "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
             "00112233445566778899aabbccddeeff\n"));
  EXPECT_TRUE(zones.signer().has_signed(zones.zone()));
  const zone::RecordView apex = zones.zone().apex_record();
  EXPECT_EQ(apex.find(RRType::kDNSKEY).count(), 1U);
  EXPECT_FALSE(apex.find(RRType::kZONEMD));
  EXPECT_THAT(zone::verify_zone(zones.zone(), {kNow, 0}).faults, IsEmpty());
  EXPECT_TRUE(zones.zone().record_at(name("_dsboot.a")).find(RRType::kCDS));
}

TEST(ChangeSigning, WithoutEffectIsEmpty) {
  TwoZones zones(std::string(kHead) + "a 300 A 192.0.2.2\n");
  const auto same =
      sign_change(zones.zone(), adding("a 300 A 192.0.2.2\n"), zones.signer(), {kNow});
  ASSERT_TRUE(same);
  EXPECT_TRUE((*same)->empty());
}

TEST(ChangeSigning, TooManyNamesAreLeftToAnotherThread) {
  std::string text(kHead);
  for (int i = 0; i < 50; ++i) text += fmt::format("n{}.sub 300 A 192.0.2.2\n", i);
  TwoZones zones(text);
  zone::Changeset changes = adding("sub 300 NS ns.sub\n");
  const zone::RRsetView soa = zones.source().soa();
  const ByteView rdata = soa.first_rdata();
  changes.removed.push_back(
      {name("example."), RRType::kSOA, soa.ttl(), Bytes(rdata.begin(), rdata.end())});
  changes.added.push_back(changes.removed.back());
  changes.added.back().rdata[rdata.size() - 17] ^= 1;
  const auto few = sign_change(zones.zone(), changes, zones.signer(), {kNow, 20});
  ASSERT_TRUE(few);
  EXPECT_FALSE(*few);
  const auto many = sign_change(zones.zone(), changes, zones.signer(), {kNow, 60});
  ASSERT_TRUE(many);
  EXPECT_TRUE(*many);
}

TEST(ChangeSigning, RenewsWhatEndsSoon) {
  TwoZones zones(std::string(kHead) + "a 300 A 192.0.2.2\nb 300 A 192.0.2.3\n");
  const std::vector<dns::Name> renewed{name("a")};
  zones.change({name("example."), {}, {}}, {kNow + 10, SIZE_MAX, renewed, kNow + 2 * 86400});
  std::set<std::string> owners;
  for (const zone::Record& record : zones.last().added)
    if (record.type == RRType::kRRSIG) owners.insert(dns::to_text(record.owner));
  EXPECT_THAT(owners, ::testing::ElementsAre("a.example.", "example."));
  EXPECT_EQ(zones.signatures_made(), 2U + 4U) << "of all sets of both names";
  zones.compare();
}

TEST(ChangeSigning, RandomChangesEqualSigningTheWholeZone) {
  for (unsigned seed = 1; seed <= 12; ++seed) {
    const bool has_zsk = seed % 3 == 0;
    change_at_random(
        seed, {}, has_zsk ? std::vector<std::uint16_t>{257, 256} : std::vector<std::uint16_t>{257});
    ASSERT_FALSE(::testing::Test::HasFailure());
  }
}

}  // namespace change_signing_test
}  // namespace pando::manager
