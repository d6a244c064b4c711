#include "manager/change/received_source.h"

#include "tests/unit/manager/dnssec/two_zones.h"

namespace pando::manager {
namespace received_source_test {

using namespace two_zones;

constexpr dns::Serial kPrimary{40};

std::string soa(unsigned serial, const std::string& rest = "admin") {
  return fmt::format("@ 600 SOA ns1 {} {} 3600 600 86400 60\n", rest, serial);
}

/// A zone with serial 7 here and 40 at its primary.
class ReceivedSourceTest : public ::testing::Test {
 protected:
  void SetUp() override { zones_.set_primary_serial(kPrimary); }

  zone::Changeset changes(const std::string& removed, const std::string& added) const {
    return {name("example."), records(removed), records(added)};
  }
  ChangeSigner keys(bool has_signer = true) const {
    const std::shared_ptr<const ZoneSigner> signer(std::shared_ptr<void>(), &zones_.signer());
    return {has_signer ? signer : nullptr, kNow};
  }
  Result<ReceivedSource> take(const zone::Changeset& received, bool checks_digest = false) const {
    return received_source(zones_.zone(), received, keys(), checks_digest);
  }
  Errc error(const zone::Changeset& received, bool checks_digest = false) const {
    const auto taken = take(received, checks_digest);
    EXPECT_FALSE(taken);
    return taken ? Errc{} : taken.error().code;
  }

  TwoZones zones_{std::string(kHead) + "www 300 A 192.0.2.2\n"};
};

unsigned serial_of(const std::vector<zone::Record>& records) {
  for (const zone::Record& record : records)
    if (record.type == RRType::kSOA)
      return load_be32(record.rdata.data() + record.rdata.size() - 20);
  ADD_FAILURE() << "no SOA";
  return 0;
}

TEST_F(ReceivedSourceTest, LeadsFromOurSerialToOurNextOne) {
  zones_.set_primary_serial({5});
  const auto taken = take(changes(soa(5) + "www 300 A 192.0.2.2\n", soa(6) + "www 300 A 192.0.2.3\n"));
  ASSERT_TRUE(taken) << taken.error().text;
  EXPECT_EQ(serial_of(taken->changes.removed), 7U);
  EXPECT_EQ(serial_of(taken->changes.added), 8U) << "6 would go back";
  EXPECT_EQ(taken->primary_serial, dns::Serial{6});
  EXPECT_EQ(taken->changes.removed.size(), 2U);
  EXPECT_EQ(taken->changes.added.size(), 2U);
  EXPECT_EQ(taken->left_out, 0U);
}

TEST_F(ReceivedSourceTest, TakesASerialOfThePrimaryThatIsAheadOfOurs) {
  const auto taken = take(changes(soa(40), soa(50)));
  ASSERT_TRUE(taken) << taken.error().text;
  EXPECT_EQ(serial_of(taken->changes.added), 50U);
  EXPECT_EQ(taken->primary_serial, dns::Serial{50});
}

TEST_F(ReceivedSourceTest, BeginsAtTheVersionThatTheZoneHas) {
  EXPECT_EQ(error(changes(soa(39), soa(41))), Errc::kInvalid);
  EXPECT_EQ(error(changes(soa(7), soa(41))), Errc::kInvalid) << "our serial is not the primary's";
  EXPECT_EQ(error(changes(soa(40, "other"), soa(41))), Errc::kInvalid) << "another SOA record";
  EXPECT_EQ(error(changes("", soa(41))), Errc::kInvalid);
  EXPECT_EQ(error(changes(soa(40), "")), Errc::kInvalid);
}

TEST_F(ReceivedSourceTest, FitsTheSource) {
  EXPECT_EQ(error(changes(soa(40) + "www 300 A 192.0.2.9\n", soa(41))), Errc::kInvalid);
  EXPECT_EQ(error(changes(soa(40), soa(41) + "www 300 A 192.0.2.2\n")), Errc::kInvalid);
  EXPECT_EQ(error(changes(soa(40), soa(41) + "WWW 300 A 192.0.2.2\n")), Errc::kInvalid);
  // A record that goes and comes has another TTL.
  EXPECT_TRUE(take(changes(soa(40) + "www 300 A 192.0.2.2\n", soa(41) + "www 60 A 192.0.2.2\n")));
}

TEST_F(ReceivedSourceTest, HasNoRecordsOfASigner) {
  const std::string derived =
      "www 300 NSEC zzz A\n@ 60 CDS 0 0 0 00\n@ 300 ZONEMD 8 1 1 "
      "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
      "00112233445566778899aabbccddeeff\n";
  const auto taken = take(changes(soa(40), soa(41) + derived + "_dsboot.x 60 CDS 0 0 0 00\n"));
  ASSERT_TRUE(taken) << taken.error().text;
  EXPECT_EQ(taken->left_out, 3U);
  EXPECT_EQ(taken->changes.added.size(), 2U) << "below the apex CDS is source (RFC 9615)";
  EXPECT_TRUE(take(changes(soa(40) + derived, soa(41)))) << "what was left out need not be there";
  EXPECT_EQ(error(changes(soa(40), soa(41) + derived), true), Errc::kInvalid)
      << "a digest is to be verified, which takes the whole zone";
}

TEST_F(ReceivedSourceTest, SignaturesStayWhereThePolicyIsGone) {
  const auto taken = received_source(zones_.zone(), changes(soa(40), soa(41)), keys(false), false);
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code, Errc::kUnsupported);
}

TEST_F(ReceivedSourceTest, OwnSerialIsNeverBehind) {
  const auto own = [](std::uint32_t primary, std::uint32_t served) {
    return own_serial({primary}, {served}, config::SerialPolicy::kIncrement, kNow).value;
  };
  EXPECT_EQ(own(10, 9), 10U);
  EXPECT_EQ(own(10, 10), 11U);
  EXPECT_EQ(own(9, 10), 11U);
  EXPECT_EQ(own(3, 0xFFFFFFFF), 3U) << "RFC 1982";
  EXPECT_EQ(own(0xFFFFFFFF, 3), 4U);
}

TEST_F(ReceivedSourceTest, AWholeZoneIsComparedWithTheSource) {
  zones_.put_beside(records("extra 300 A 192.0.2.7\n").front());
  const zone::ZoneView received = zones_.source();
  const auto found = received_difference(zones_.zone(), received, keys(), UINT64_MAX);
  ASSERT_TRUE(found && *found);
  const zone::Changeset& difference = (*found)->made.front();
  EXPECT_EQ(difference.removed.size(), 2U) << "the record and the SOA, no signature";
  EXPECT_EQ(difference.added.size(), 1U);
  EXPECT_EQ(serial_of(difference.added), 8U);
  EXPECT_EQ((*found)->primary_serial, received.serial());
  const auto limited = received_difference(zones_.zone(), received, keys(), 0);
  EXPECT_TRUE(limited && !*limited) << "too much";
}

}  // namespace received_source_test
}  // namespace pando::manager
