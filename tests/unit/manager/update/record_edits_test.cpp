#include "manager/update/record_edits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/manager/zone_support.h"

namespace pando::manager {
namespace record_edits_test {

using dns::RRType;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::name;
using testing::record;
using testing::ZoneStore;

class Edits : public ::testing::Test {
 protected:
  /// `line`: OWNER TTL TYPE RDATA.
  Status set(const std::string& line, bool with_ttl = true) {
    const zone::Record one = record(line);
    return edits_.set(one.owner, one.type, with_ttl ? std::optional(one.ttl) : std::nullopt,
                      one.rdata);
  }
  Status unset(const std::string& line) {
    const zone::Record one = record(line);
    return edits_.unset(store_.zone(), one.owner, one.type, ByteView(one.rdata));
  }
  Status unset(std::string_view owner, std::optional<RRType> type) {
    return edits_.unset(store_.zone(), name(owner), type, std::nullopt);
  }
  Result<zone::Changeset> changes() {
    return edits_.changes(store_.zone(), config::SerialPolicy::kIncrement, 0);
  }
  void commit() { store_.apply(shm::test::must(changes())); }
  std::string error() {
    auto result = changes();
    return result ? "" : result.error().text;
  }

  ZoneStore store_;
  RecordEdits edits_{name("@")};
};

TEST_F(Edits, ARecordIsAddedUnderTheNextSerial) {
  ASSERT_TRUE(set("www 300 A 192.0.2.12").has_value());
  commit();
  EXPECT_THAT(store_.at("www"), ElementsAre("300 A 192.0.2.10", "300 A 192.0.2.11",
                                            "300 A 192.0.2.12", "300 AAAA 2001:db8::10"));
  EXPECT_EQ(store_.zone().serial(), dns::Serial{11});
}

TEST_F(Edits, WithoutTtlASetKeepsItsOwnAndANewSetHasTheSoas) {
  ASSERT_TRUE(set("www 1 A 192.0.2.12", false).has_value());
  ASSERT_TRUE(set("new 1 A 192.0.2.12", false).has_value());
  commit();
  EXPECT_EQ(store_.at("www").front(), "300 A 192.0.2.10");
  EXPECT_THAT(store_.at("new"), ElementsAre("3600 A 192.0.2.12"));
}

TEST_F(Edits, ATtlIsThatOfTheWholeSet) {
  ASSERT_TRUE(set("www 60 A 192.0.2.10").has_value());
  commit();
  EXPECT_THAT(store_.at("www"),
              ElementsAre("300 AAAA 2001:db8::10", "60 A 192.0.2.10", "60 A 192.0.2.11"));
}

TEST_F(Edits, TheOnlyRecordOfAnAliasIsReplaced) {
  ASSERT_TRUE(set("alias 300 CNAME ns1").has_value());
  ASSERT_TRUE(set("alias 300 CNAME ns2").has_value());
  commit();
  EXPECT_THAT(store_.at("alias"), ElementsAre("300 CNAME ns2.example."));
}

TEST_F(Edits, ARecordASetOrANameIsRemoved) {
  ASSERT_TRUE(unset("www 300 A 192.0.2.10").has_value());
  ASSERT_TRUE(unset("www", RRType::kAAAA).has_value());
  ASSERT_TRUE(unset("alias", std::nullopt).has_value());
  commit();
  EXPECT_THAT(store_.at("www"), ElementsAre("300 A 192.0.2.11"));
  EXPECT_THAT(store_.at("alias"), ElementsAre());
}

TEST_F(Edits, TheApexKeepsItsSoaAndNsWhenAllIsRemoved) {
  ASSERT_TRUE(set("@ 300 TXT gone").has_value());
  ASSERT_TRUE(unset("@", std::nullopt).has_value());
  EXPECT_TRUE(shm::test::must(changes()).empty());
}

TEST_F(Edits, LaterEditsReplaceEarlierOnesAndTakeNoMoreRoom) {
  ASSERT_TRUE(set("x 300 A 192.0.2.1").has_value());
  const std::size_t bytes = edits_.bytes();
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(unset("x 300 A 192.0.2.1").has_value());
    ASSERT_TRUE(set("x 300 A 192.0.2.1").has_value());
  }
  EXPECT_EQ(edits_.size(), 1U);
  EXPECT_EQ(edits_.bytes(), bytes);
  ASSERT_TRUE(unset("x", RRType::kA).has_value());
  EXPECT_TRUE(shm::test::must(changes()).empty()) << "the zone had no such name";
  ASSERT_TRUE(set("x 300 A 192.0.2.2").has_value());
  commit();
  EXPECT_THAT(store_.at("x"), ElementsAre("300 A 192.0.2.2"));
}

TEST_F(Edits, ARemovedSetThatIsSetAgainHasTheNewRecordsAlone) {
  ASSERT_TRUE(unset("www", RRType::kA).has_value());
  ASSERT_TRUE(set("www 300 A 192.0.2.99").has_value());
  commit();
  EXPECT_THAT(store_.at("www"), ElementsAre("300 A 192.0.2.99", "300 AAAA 2001:db8::10"));
}

TEST_F(Edits, OnlyRecordsThatAreThereCanBeRemoved) {
  EXPECT_EQ(unset("www 300 A 192.0.2.77").error().text,
            "www.example. has no record A 192.0.2.77");
  EXPECT_EQ(unset("www", RRType::kMX).error().text, "www.example. has no MX record");
  EXPECT_EQ(unset("deep", std::nullopt).error().text, "deep.example. has no records");
  ASSERT_TRUE(unset("www", RRType::kA).has_value());
  EXPECT_EQ(unset("www 300 A 192.0.2.10").error().code, Errc::kNotFound) << "removed before";
  EXPECT_EQ(edits_.size(), 1U);
}

TEST_F(Edits, RecordsThatUpdatesRemovedMeanwhileAreNoError) {
  ASSERT_TRUE(unset("www 300 A 192.0.2.10").has_value());
  store_.apply({name("@"),
                {record("@ 3600 SOA ns1 admin 10 3600 600 86400 300"),
                 record("www 300 A 192.0.2.10")},
                {record("@ 3600 SOA ns1 admin 11 3600 600 86400 300")}});
  EXPECT_TRUE(shm::test::must(changes()).empty());
}

TEST_F(Edits, NoZoneCanHaveSomeRecords) {
  EXPECT_EQ(set("www.example.com. 1 A 192.0.2.1").error().code, Errc::kInvalid);
  EXPECT_EQ(set("www 1 SOA a b 1 2 3 4 5").error().code, Errc::kInvalid);
  EXPECT_EQ(edits_.set(name("x"), RRType::kANY, std::nullopt, {}).error().code, Errc::kInvalid);
  EXPECT_EQ(edits_.set(name("x"), RRType::kTXT, std::nullopt, Bytes(65'000)).error().code,
            Errc::kInvalid);
  EXPECT_EQ(unset("@", RRType::kSOA).error().code, Errc::kInvalid);
  EXPECT_EQ(edits_.size(), 0U);
}

TEST_F(Edits, ASoaMovesTheSerialAheadAndNeverBack) {
  ASSERT_TRUE(set("@ 3600 SOA ns2 admin 9 3600 600 86400 300").has_value());
  EXPECT_THAT(error(), HasSubstr("serial 9 is not ahead of 10"));
  ASSERT_TRUE(set("@ 3600 SOA ns2 admin 10 3600 600 86400 300").has_value());
  EXPECT_EQ(shm::test::must(changes()).added.size(), 1U);
  ASSERT_TRUE(set("@ 3600 SOA ns2 admin 50 3600 600 86400 300").has_value());
  commit();
  EXPECT_EQ(store_.zone().serial(), dns::Serial{50});
}

TEST_F(Edits, AnUnsignedZoneTakesNoRecordsOfASigner) {
  ASSERT_TRUE(set("x 300 NSEC y A NSEC").has_value());
  EXPECT_THAT(error(), HasSubstr("NSEC in an unsigned zone needs a signer"));
}

TEST_F(Edits, TheEstimateCoversRemovedNamesAndNewTtls) {
  ASSERT_TRUE(unset("www", std::nullopt).has_value());
  EXPECT_GE(edits_.records(store_.zone()), shm::test::must(changes()).removed.size() - 1);
  RecordEdits other{name("@")};
  ASSERT_TRUE(other.set(name("www"), RRType::kA, dns::Ttl{1}, Bytes{192, 0, 2, 10}).has_value());
  EXPECT_GE(other.records(store_.zone()), 4U) << "two records out, two in";
}

}  // namespace record_edits_test
}  // namespace pando::manager
