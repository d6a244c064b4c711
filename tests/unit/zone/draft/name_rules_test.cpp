#include "zone/draft/name_rules.h"

#include <gmock/gmock.h>

#include <deque>

#include "tests/unit/zone/draft/zone_fixture.h"

namespace pando::zone {
namespace name_rules_test {

using dns::RRType;
using ::testing::HasSubstr;
using testing::name;
using testing::record;

/// A name of "example." with the records of these lines, which all have one owner.
class Names : public ::testing::Test {
 protected:
  NameDraft draft(const std::vector<std::string>& lines) {
    NameDraft made;
    for (const std::string& line : lines) {
      const Record& one = records_.emplace_back(record(line));
      const auto owner = one.owner.view().bytes();
      made.labels = owner.first(owner.size() - apex_.size());
      const Placed placed = place(one.type, one.rdata);
      RRsetDraft& set = made.at(placed.set);
      (placed.is_signature ? set.signatures : set.rdatas).push_back(placed.octets);
    }
    return made;
  }
  std::string fault(const std::vector<std::string>& lines) {
    return text(check_name(draft(lines), apex_));
  }
  static std::string text(const Status& status) { return status ? "" : status.error().text; }

  dns::Name apex_ = name("example.");
  std::deque<Record> records_;
};

const std::string kSoa = "example. 60 SOA ns.example. admin.example. 1 2 3 4 5";
const std::string kNs = "example. 60 NS ns.example.";
const std::string kCname = "www.example. 60 CNAME other.example.";

/// RFC 1034 §3.6.2, RFC 4034 §3: DNSSEC records alone may stand beside a CNAME.
TEST_F(Names, ACnameHasOnlyDnssecRecordsBesideIt) {
  EXPECT_EQ(fault({kCname}), "");
  EXPECT_EQ(fault({kCname, "www.example. 60 NSEC x.example. CNAME RRSIG NSEC"}), "");
  EXPECT_EQ(fault({kCname, "www.example. 60 A 192.0.2.1"}), "www.example.: CNAME and other data");
  EXPECT_EQ(fault({kCname, "www.example. 60 CNAME third.example."}),
            "www.example.: more than one CNAME record");
}

/// RFC 6672 §2.4: one DNAME; other data may stand beside it.
TEST_F(Names, ADnameIsOneButNotAlone) {
  EXPECT_EQ(fault({"d.example. 60 DNAME x.test.", "d.example. 60 A 192.0.2.1"}), "");
  EXPECT_EQ(fault({"d.example. 60 DNAME x.test.", "d.example. 60 DNAME y.test."}),
            "d.example.: more than one DNAME record");
}

TEST_F(Names, TheApexNeedsOneSoaAndServers) {
  EXPECT_EQ(fault({kSoa, kNs}), "");
  EXPECT_EQ(fault({kNs}), "example.: 0 SOA records, one is needed");
  EXPECT_EQ(fault({kSoa}), "example.: no NS records at the apex");
  EXPECT_EQ(fault({kSoa, "example. 60 SOA ns.example. admin.example. 2 2 3 4 5", kNs}),
            "example.: 2 SOA records, one is needed");
  EXPECT_EQ(fault({"www.example. 60 SOA ns.example. admin.example. 1 2 3 4 5"}),
            "www.example.: SOA below the apex");
}

/// Records that arrive later may bring the missing servers, but never repair a second SOA.
TEST_F(Names, WhatLaterRecordsRepairIsNoFaultYet) {
  EXPECT_TRUE(check_together(draft({kSoa}), apex_));
  EXPECT_TRUE(check_together(draft({kNs}), apex_));
  EXPECT_FALSE(check_together(draft({kCname, "www.example. 60 A 192.0.2.1"}), apex_));
}

TEST_F(Names, ARecordBelongsIntoTheZoneAndHasAType) {
  const Bytes address = {192, 0, 2, 1};
  EXPECT_TRUE(check_record(apex_, apex_, RRType::kA, address));
  EXPECT_EQ(text(check_record(apex_, name("www.example.org."), RRType::kA, address)),
            "www.example.org. is outside the zone example.");
  EXPECT_THAT(text(check_record(apex_, apex_, RRType::kANY, {})), HasSubstr("cannot be in a zone"));
}

TEST_F(Names, ALimitCountsTheRecordsOfASetAndTheTypesOfAName) {
  const NameDraft none;
  const NameDraft two = draft({"www.example. 60 A 192.0.2.1", "www.example. 60 A 192.0.2.2"});
  const NameDraft types = draft({"x.example. 60 A 192.0.2.1", "x.example. 60 TXT t"});
  EXPECT_TRUE(check_limits(none, two, {2, 1}, apex_));
  EXPECT_EQ(text(check_limits(none, two, {1, 1}, apex_)),
            "www.example.: more than 1 A records (limits.rrset-records)");
  EXPECT_TRUE(check_limits(none, types, {1, 2}, apex_));
  EXPECT_EQ(text(check_limits(none, types, {1, 1}, apex_)),
            "x.example.: more than 1 types (limits.name-types)");
  EXPECT_TRUE(check_limits(none, types, DataLimits::none(), apex_));
}

/// A limit that was lowered refuses growth alone, so that deletes stay possible.
TEST_F(Names, ANameBeyondALimitMayStayAndShrink) {
  const NameDraft two = draft({"www.example. 60 A 192.0.2.1", "www.example. 60 A 192.0.2.2"});
  const NameDraft three = draft({"www.example. 60 A 192.0.2.1", "www.example. 60 A 192.0.2.2",
                                 "www.example. 60 A 192.0.2.3"});
  EXPECT_TRUE(check_limits(two, two, {1, 1}, apex_));
  EXPECT_TRUE(check_limits(three, two, {1, 1}, apex_));
  EXPECT_EQ(check_limits(two, three, {1, 1}, apex_).error().code, Errc::kFull);
}

TEST_F(Names, ASignatureIsPlacedBesideTheSetThatItCovers) {
  const Bytes of_nsec3 = {0, 50, 8, 2};
  const Placed placed = place(RRType::kRRSIG, of_nsec3);
  EXPECT_EQ(placed.set, RRType::kNSEC3);
  EXPECT_TRUE(placed.is_signature);
  EXPECT_EQ(placed.octets.size(), 2U) << "the covered type is the set's";
  EXPECT_TRUE(belongs_to_nsec3(RRType::kRRSIG, of_nsec3));
  EXPECT_FALSE(belongs_to_nsec3(RRType::kRRSIG, Bytes{0, 1, 8, 2}));
  EXPECT_FALSE(place(RRType::kRRSIG, Bytes{0}).is_signature) << "cut off";
}

}  // namespace name_rules_test
}  // namespace pando::zone
