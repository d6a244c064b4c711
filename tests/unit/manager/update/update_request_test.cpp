#include "manager/update/update_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "manager/support/soa.h"
#include "manager/update/update_policy.h"
#include "tests/unit/manager/update_builder.h"

namespace pando::manager {
namespace update_request_test {

using dns::Rcode;
using dns::RRClass;
using dns::RRType;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::name;
using testing::record;
using testing::UpdateBuilder;
using testing::ZoneStore;

class Update : public ::testing::Test {
 protected:
  UpdateOutcome compute(const UpdateBuilder& update) {
    auto message = parse_update(ParsedRequest(update.message()));
    if (!message) return {message.error().rcode, {}, message.error().reason};
    UpdateRules rules = rules_;
    rules.allow_update = &acl_;
    return compute_update(zone_.view(), *message, rules);
  }
  /// Computes and, when it is NOERROR with changes, applies.
  Rcode run(const UpdateBuilder& update) {
    UpdateOutcome outcome = compute(update);
    reason_ = outcome.reason;
    if (outcome.rcode == Rcode::kNoError && !outcome.changes.empty()) zone_.apply(outcome.changes);
    return outcome.rcode;
  }
  std::uint32_t serial() const { return zone_.zone().serial().value; }

  ZoneStore zone_;
  zone::Acl acl_{zone::AclRule{}};
  UpdateRules rules_;
  std::string reason_;
};

// Zone section (RFC 2136 §3.1) ------------------------------------------------------------------

TEST_F(Update, AZoneThatIsNotOursIsNotAuth) {
  UpdateBuilder update("other.test.");
  update.raw_update({name("x.other.test."), RRType::kA, RRClass::kIN, 5, {192, 0, 2, 1}});
  EXPECT_EQ(run(update), Rcode::kNotAuth);
}

TEST_F(Update, ANameBelowAZoneIsNotTheZone) {
  UpdateBuilder update("www");
  EXPECT_EQ(run(update), Rcode::kNotAuth);
}

TEST_F(Update, AZoneSectionOfAnotherTypeIsFormErr) {
  EXPECT_EQ(run(UpdateBuilder("@", RRType::kA)), Rcode::kFormErr);
}

TEST_F(Update, AZoneSectionOfAnotherClassIsNotAuth) {
  for (const RRClass rr_class : {RRClass::kCH, RRClass::kHS, RRClass::kANY, RRClass::kNONE})
    EXPECT_EQ(run(UpdateBuilder("@", RRType::kSOA, rr_class)), Rcode::kNotAuth);
}

TEST_F(Update, AMessageWithoutZoneSectionIsFormErr) {
  Bytes message = UpdateBuilder().message();
  message.resize(dns::kHeaderOctets);
  message[5] = 0;
  EXPECT_EQ(parse_update(ParsedRequest(message)).error().rcode, Rcode::kFormErr);
}

TEST_F(Update, EveryTruncationOfAMessageIsFormErr) {
  const Bytes whole =
      UpdateBuilder().yx("www", "A").has("www 0 A 192.0.2.10").add("new 60 A 192.0.2.9").message();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const auto parsed =
        parse_update(ParsedRequest(Bytes(whole.begin(), whole.begin() + static_cast<long>(size))));
    ASSERT_FALSE(parsed.has_value()) << size;
    EXPECT_EQ(parsed.error().rcode, Rcode::kFormErr) << size;
  }
}

TEST_F(Update, WithoutUpdatesIsNoErrorAndChangesNothing) {
  EXPECT_EQ(run(UpdateBuilder()), Rcode::kNoError);
  EXPECT_EQ(serial(), 10U);
}

// Prerequisites (RFC 2136 §3.2) -----------------------------------------------------------------

TEST_F(Update, RRsetExistsValueIndependent) {
  EXPECT_EQ(run(UpdateBuilder().yx("www", "A")), Rcode::kNoError);
  EXPECT_EQ(run(UpdateBuilder().yx("www", "MX")), Rcode::kNXRRSet);
  EXPECT_EQ(run(UpdateBuilder().yx("absent", "A")), Rcode::kNXRRSet);
}

TEST_F(Update, RRsetDoesNotExist) {
  EXPECT_EQ(run(UpdateBuilder().nx("www", "MX")), Rcode::kNoError);
  EXPECT_EQ(run(UpdateBuilder().nx("www", "A")), Rcode::kYXRRSet);
}

TEST_F(Update, NameIsInUse) {
  EXPECT_EQ(run(UpdateBuilder().yx("www", "ANY")), Rcode::kNoError);
  EXPECT_EQ(run(UpdateBuilder().yx("absent", "ANY")), Rcode::kNXDomain);
}

TEST_F(Update, NameIsNotInUse) {
  EXPECT_EQ(run(UpdateBuilder().nx("absent", "ANY")), Rcode::kNoError);
  EXPECT_EQ(run(UpdateBuilder().nx("www", "ANY")), Rcode::kYXDomain);
}

TEST_F(Update, AnEmptyNonTerminalIsNotInUse) {
  EXPECT_EQ(run(UpdateBuilder().nx("deep", "ANY")), Rcode::kNoError);
  EXPECT_EQ(run(UpdateBuilder().yx("deep", "ANY")), Rcode::kNXDomain);
}

TEST_F(Update, RRsetExistsValueDependentComparesWholeSetsInAnyOrder) {
  EXPECT_EQ(run(UpdateBuilder().has("www 0 A 192.0.2.11").has("www 0 A 192.0.2.10")),
            Rcode::kNoError);
  EXPECT_EQ(run(UpdateBuilder().has("www 0 A 192.0.2.11")), Rcode::kNXRRSet);
  EXPECT_EQ(run(UpdateBuilder()
                    .has("www 0 A 192.0.2.10")
                    .has("www 0 A 192.0.2.11")
                    .has("www 0 A 192.0.2.12")),
            Rcode::kNXRRSet);
}

TEST_F(Update, ValueDependentPrerequisitesCompareNamesWithoutCase) {
  EXPECT_EQ(run(UpdateBuilder().has("ALIAS 0 CNAME WWW.Example.")), Rcode::kNoError);
}

TEST_F(Update, APrerequisiteWithATtlIsFormErr) {
  EXPECT_EQ(run(UpdateBuilder().has("www 300 A 192.0.2.10")), Rcode::kFormErr);
}

TEST_F(Update, APrerequisiteOutsideTheZoneIsNotZone) {
  EXPECT_EQ(run(UpdateBuilder().yx("www.other.", "A")), Rcode::kNotZone);
}

TEST_F(Update, AValuelessPrerequisiteWithRdataIsFormErr) {
  for (const RRClass rr_class : {RRClass::kANY, RRClass::kNONE})
    EXPECT_EQ(run(UpdateBuilder().raw_prerequisite(
                  {name("www"), RRType::kA, rr_class, 0, {192, 0, 2, 10}})),
              Rcode::kFormErr);
}

TEST_F(Update, APrerequisiteOfAnotherClassIsFormErr) {
  EXPECT_EQ(run(UpdateBuilder().raw_prerequisite(
                {name("www"), RRType::kA, RRClass::kCH, 0, {192, 0, 2, 10}})),
            Rcode::kFormErr);
}

TEST_F(Update, AFailedPrerequisiteStopsTheWholeUpdate) {
  EXPECT_EQ(run(UpdateBuilder().nx("www", "A").add("new 60 A 192.0.2.9")), Rcode::kYXRRSet);
  EXPECT_THAT(zone_.at("new"), IsEmpty());
}

// Prescan (RFC 2136 §3.4.1) ---------------------------------------------------------------------

TEST_F(Update, AnUpdateOutsideTheZoneIsNotZoneAndNothingIsApplied) {
  EXPECT_EQ(run(UpdateBuilder().add("new 60 A 192.0.2.9").add("x.other. 60 A 192.0.2.9")),
            Rcode::kNotZone);
  EXPECT_THAT(zone_.at("new"), IsEmpty());
}

TEST_F(Update, MetaTypesAreFormErr) {
  for (const RRType type : {RRType::kANY, RRType::kAXFR, RRType::kIXFR, RRType::kMAILA,
                            RRType::kMAILB, RRType::kTSIG, RRType::kTKEY, RRType::kOPT})
    for (const RRClass rr_class : {RRClass::kIN, RRClass::kNONE})
      EXPECT_EQ(run(UpdateBuilder().raw_update({name("www"), type, rr_class, 0, {1}})),
                Rcode::kFormErr)
          << to_text(type);
  EXPECT_EQ(run(UpdateBuilder().raw_update({name("www"), RRType::kAXFR, RRClass::kANY, 0, {}})),
            Rcode::kFormErr);
}

TEST_F(Update, ADeletionWithATtlIsFormErr) {
  EXPECT_EQ(run(UpdateBuilder().raw_update({name("www"), RRType::kA, RRClass::kANY, 1, {}})),
            Rcode::kFormErr);
  EXPECT_EQ(run(UpdateBuilder().raw_update(
                {name("www"), RRType::kA, RRClass::kNONE, 1, {192, 0, 2, 10}})),
            Rcode::kFormErr);
}

TEST_F(Update, ADeletionOfASetWithRdataIsFormErr) {
  EXPECT_EQ(
      run(UpdateBuilder().raw_update({name("www"), RRType::kA, RRClass::kANY, 0, {192, 0, 2, 10}})),
      Rcode::kFormErr);
}

TEST_F(Update, AnUpdateOfAnotherClassIsFormErr) {
  EXPECT_EQ(
      run(UpdateBuilder().raw_update({name("www"), RRType::kA, RRClass::kCH, 0, {192, 0, 2, 10}})),
      Rcode::kFormErr);
}

TEST_F(Update, BrokenRdataIsFormErr) {
  EXPECT_EQ(run(UpdateBuilder().raw_update({name("www"), RRType::kA, RRClass::kIN, 5, {1, 2}})),
            Rcode::kFormErr);
  EXPECT_EQ(run(UpdateBuilder().raw_update({name("www"), RRType::kA, RRClass::kNONE, 0, {1}})),
            Rcode::kFormErr);
}

// Adding (RFC 2136 §3.4.2.2) --------------------------------------------------------------------

TEST_F(Update, AddsARecordToANewNameAndASet) {
  EXPECT_EQ(run(UpdateBuilder().add("new 60 A 192.0.2.9").add("www 300 A 192.0.2.12")),
            Rcode::kNoError);
  EXPECT_THAT(zone_.at("new"), ElementsAre("60 A 192.0.2.9"));
  EXPECT_THAT(zone_.at("www"), Contains("300 A 192.0.2.12"));
  EXPECT_EQ(serial(), 11U);
}

TEST_F(Update, AnAddedRecordsTtlIsThatOfItsWholeSet) {
  EXPECT_EQ(run(UpdateBuilder().add("www 77 A 192.0.2.12")), Rcode::kNoError);
  EXPECT_THAT(zone_.at("www"), ElementsAre("300 AAAA 2001:db8::10", "77 A 192.0.2.10",
                                           "77 A 192.0.2.11", "77 A 192.0.2.12"));
}

TEST_F(Update, AnotherTtlAloneIsAChangeOfTheWholeSet) {
  const UpdateOutcome outcome = compute(UpdateBuilder().add("www 77 A 192.0.2.10"));
  EXPECT_EQ(outcome.changes.removed.size(), 3U);  // SOA and both addresses
  EXPECT_EQ(outcome.changes.added.size(), 3U);
}

TEST_F(Update, ARecordThatIsThereChangesNothing) {
  EXPECT_EQ(run(UpdateBuilder().add("www 300 A 192.0.2.10")), Rcode::kNoError);
  EXPECT_EQ(serial(), 10U);
}

TEST_F(Update, ATtlWithTheTopBitIsZero) {
  EXPECT_EQ(run(UpdateBuilder().raw_update(
                {name("new"), RRType::kA, RRClass::kIN, 0x80000001U, {192, 0, 2, 9}})),
            Rcode::kNoError);
  EXPECT_THAT(zone_.at("new"), ElementsAre("0 A 192.0.2.9"));
}

TEST_F(Update, ACnameBesideOtherDataIsSilentlyIgnored) {
  EXPECT_EQ(run(UpdateBuilder().add("www 60 CNAME elsewhere")), Rcode::kNoError);
  EXPECT_EQ(serial(), 10U);
}

TEST_F(Update, OtherDataBesideACnameIsSilentlyIgnored) {
  EXPECT_EQ(run(UpdateBuilder().add("alias 60 A 192.0.2.9")), Rcode::kNoError);
  EXPECT_THAT(zone_.at("alias"), ElementsAre("300 CNAME www.example."));
}

TEST_F(Update, ACnameReplacesACname) {
  EXPECT_EQ(run(UpdateBuilder().add("alias 60 CNAME ns1")), Rcode::kNoError);
  EXPECT_THAT(zone_.at("alias"), ElementsAre("60 CNAME ns1.example."));
}

TEST_F(Update, DeletingACnameAndAddingDataInOneMessageWorks) {
  EXPECT_EQ(run(UpdateBuilder().remove_set("alias", "CNAME").add("alias 60 A 192.0.2.9")),
            Rcode::kNoError);
  EXPECT_THAT(zone_.at("alias"), ElementsAre("60 A 192.0.2.9"));
}

TEST_F(Update, ADnameReplacesADname) {
  EXPECT_EQ(run(UpdateBuilder().add("d 60 DNAME one.test.").add("d 60 DNAME two.test.")),
            Rcode::kNoError);
  EXPECT_THAT(zone_.at("d"), ElementsAre("60 DNAME two.test."));
}

TEST_F(Update, AWksReplacesTheOneOfItsAddressAndProtocol) {
  EXPECT_EQ(run(UpdateBuilder()
                    .add("w 60 WKS 192.0.2.1 6 25")
                    .add("w 60 WKS 192.0.2.1 6 80")
                    .add("w 60 WKS 192.0.2.1 17 53")),
            Rcode::kNoError);
  EXPECT_EQ(zone_.at("w").size(), 2U);
}

TEST_F(Update, AnUnknownTypeIsAdded) {
  EXPECT_EQ(run(UpdateBuilder().add("new 60 TYPE65280 \\# 3 010203")), Rcode::kNoError);
  EXPECT_THAT(zone_.at("new"), ElementsAre("60 TYPE65280 \\# 3 010203"));
}

// SOA and serial (RFC 2136 §3.4.2.2, §3.6) ------------------------------------------------------

TEST_F(Update, ASoaThatIsAheadReplacesAndIsNotBumped) {
  EXPECT_EQ(run(UpdateBuilder().add("@ 1800 SOA ns2 root 2000 1 2 3 4").add("new 60 A 192.0.2.9")),
            Rcode::kNoError);
  EXPECT_EQ(serial(), 2000U);
  EXPECT_THAT(zone_.at("@"), Contains("1800 SOA ns2.example. root.example. 2000 1 2 3 4"));
}

TEST_F(Update, ASoaThatIsNotAheadIsIgnored) {
  for (const char* old : {"10", "9", "2147483658"})
    EXPECT_EQ(run(UpdateBuilder().add(fmt::format("@ 1800 SOA ns2 root {} 1 2 3 4", old))),
              Rcode::kNoError);
  EXPECT_EQ(serial(), 10U);
}

TEST_F(Update, ASoaElsewhereIsIgnored) {
  EXPECT_EQ(run(UpdateBuilder().add("www 60 SOA ns1 root 99 1 2 3 4")), Rcode::kNoError);
  EXPECT_EQ(serial(), 10U);
}

TEST_F(Update, TheSoaCannotBeDeleted) {
  EXPECT_EQ(run(UpdateBuilder().remove_set("@", "SOA")), Rcode::kNoError);
  EXPECT_EQ(run(UpdateBuilder().remove("@ SOA ns1 admin 10 3600 600 86400 300")), Rcode::kNoError);
  EXPECT_EQ(serial(), 10U);
}

TEST_F(Update, WhatIsUndoneInTheSameMessageChangesNothing) {
  EXPECT_EQ(run(UpdateBuilder().add("new 60 A 192.0.2.9").remove_name("new")), Rcode::kNoError);
  EXPECT_EQ(serial(), 10U);
}

TEST_F(Update, SerialPoliciesFollowTheClockWhileItIsAhead) {
  constexpr std::uint64_t k2026August4 = 1785801600;
  const dns::Serial ten{10};
  EXPECT_EQ(next_serial(ten, config::SerialPolicy::kIncrement, k2026August4).value, 11U);
  EXPECT_EQ(next_serial(ten, config::SerialPolicy::kUnixtime, k2026August4).value, k2026August4);
  EXPECT_EQ(next_serial(ten, config::SerialPolicy::kDate, k2026August4).value, 2026080400U);
  EXPECT_EQ(next_serial(dns::Serial{2026080400}, config::SerialPolicy::kDate, k2026August4).value,
            2026080401U);
}

TEST_F(Update, TheSerialAfterTheLastIsOneNeverZero) {
  EXPECT_EQ(next_serial(dns::Serial{0xFFFFFFFF}, config::SerialPolicy::kIncrement, 0).value, 1U);
}

// Deleting (RFC 2136 §3.4.2.3, §3.4.2.4) --------------------------------------------------------

TEST_F(Update, DeletesASet) {
  EXPECT_EQ(run(UpdateBuilder().remove_set("www", "A")), Rcode::kNoError);
  EXPECT_THAT(zone_.at("www"), ElementsAre("300 AAAA 2001:db8::10"));
}

TEST_F(Update, DeletesAName) {
  EXPECT_EQ(run(UpdateBuilder().remove_name("WWW")), Rcode::kNoError);
  EXPECT_THAT(zone_.at("www"), IsEmpty());
  EXPECT_EQ(serial(), 11U);
}

TEST_F(Update, DeletesARecordWithoutRdataByValue) {
  const UpdateBuilder::Raw empty{name("www"), static_cast<RRType>(65280), RRClass::kNONE, 0, {}};
  EXPECT_EQ(run(UpdateBuilder().raw_update({empty.owner, empty.type, RRClass::kIN, 300, {}})),
            Rcode::kNoError);
  EXPECT_EQ(run(UpdateBuilder().yx("www", "TYPE65280").raw_update(empty)), Rcode::kNoError);
  EXPECT_EQ(run(UpdateBuilder().nx("www", "TYPE65280").add("late 300 A 192.0.2.1")),
            Rcode::kNoError);
  EXPECT_EQ(run(UpdateBuilder().raw_update({name("www"), RRType::kA, RRClass::kNONE, 0, {}})),
            Rcode::kFormErr);
}

TEST_F(Update, DeletesOneRecord) {
  EXPECT_EQ(run(UpdateBuilder().remove("www A 192.0.2.10")), Rcode::kNoError);
  EXPECT_THAT(zone_.at("www"), ElementsAre("300 A 192.0.2.11", "300 AAAA 2001:db8::10"));
}

TEST_F(Update, DeletingWhatIsNotThereIsNoErrorAndNoChange) {
  EXPECT_EQ(run(UpdateBuilder()
                    .remove("www A 192.0.2.99")
                    .remove("absent A 192.0.2.99")
                    .remove_set("www", "MX")
                    .remove_name("absent")),
            Rcode::kNoError);
  EXPECT_EQ(serial(), 10U);
}

TEST_F(Update, DeletingTheApexKeepsItsSoaAndNs) {
  EXPECT_EQ(run(UpdateBuilder().add("@ 60 TXT x")), Rcode::kNoError);
  EXPECT_EQ(run(UpdateBuilder().remove_name("@")), Rcode::kNoError);
  EXPECT_THAT(zone_.at("@"),
              ElementsAre("3600 NS ns1.example.", "3600 NS ns2.example.",
                          "3600 SOA ns1.example. admin.example. 12 3600 600 86400 300"));
}

TEST_F(Update, TheNsSetOfTheApexIsNotDeleted) {
  EXPECT_EQ(run(UpdateBuilder().remove_set("@", "NS")), Rcode::kNoError);
  EXPECT_EQ(serial(), 10U);
}

TEST_F(Update, TheLastNsOfTheApexStays) {
  EXPECT_EQ(run(UpdateBuilder().remove("@ NS ns1").remove("@ NS ns2")), Rcode::kNoError);
  EXPECT_THAT(zone_.at("@"), Contains("3600 NS ns2.example."));
}

TEST_F(Update, ANewNsMakesRoomForDeletingTheOldOnes) {
  EXPECT_EQ(run(UpdateBuilder().add("@ 60 NS ns3").remove("@ NS ns1").remove("@ NS ns2")),
            Rcode::kNoError);
  EXPECT_THAT(zone_.at("@"), Contains("60 NS ns3.example."));
  EXPECT_EQ(zone_.at("@").size(), 2U);
}

TEST_F(Update, NsBelowTheApexIsOrdinaryData) {
  EXPECT_EQ(run(UpdateBuilder().add("sub 60 NS ns1")), Rcode::kNoError);
  EXPECT_EQ(run(UpdateBuilder().remove("sub NS ns1")), Rcode::kNoError);
  EXPECT_THAT(zone_.at("sub"), IsEmpty());
}

// Permission (RFC 2136 §3.3) --------------------------------------------------------------------

TEST_F(Update, AnEmptyListRefuses) {
  acl_.clear();
  EXPECT_EQ(run(UpdateBuilder().add("new 60 A 192.0.2.9")), Rcode::kRefused);
}

TEST_F(Update, PermissionComesBeforePrerequisites) {
  acl_.clear();
  EXPECT_EQ(run(UpdateBuilder().nx("www", "A")), Rcode::kRefused);
}

TEST_F(Update, ARuleWithAKeyWantsThatKey) {
  const dns::Name ours = name("update-key."), other = name("other.");
  acl_[0].key = ours;
  EXPECT_EQ(run(UpdateBuilder().add("new 60 A 192.0.2.9")), Rcode::kRefused);
  rules_.requester.key = &other;
  EXPECT_EQ(run(UpdateBuilder().add("new 60 A 192.0.2.9")), Rcode::kRefused);
  rules_.requester.key = &ours;
  EXPECT_EQ(run(UpdateBuilder().add("new 60 A 192.0.2.9")), Rcode::kNoError);
}

TEST_F(Update, NamesAndTypesNarrowARule) {
  acl_[0].names = {name("*.dyn")};
  acl_[0].types = {RRType::kA, RRType::kTXT};
  EXPECT_EQ(run(UpdateBuilder().add("x.dyn 60 A 192.0.2.9")), Rcode::kNoError);
  EXPECT_EQ(run(UpdateBuilder().add("y.x.dyn 60 TXT t")), Rcode::kNoError);
  EXPECT_EQ(run(UpdateBuilder().add("dyn 60 A 192.0.2.9")), Rcode::kRefused);
  EXPECT_EQ(run(UpdateBuilder().add("x.dyn 60 MX 10 www")), Rcode::kRefused);
  EXPECT_EQ(run(UpdateBuilder().add("x.dyn 60 A 192.0.2.8").add("www 60 A 192.0.2.9")),
            Rcode::kRefused);
}

TEST_F(Update, AStarAnywhereInAPatternStandsForOneOrMoreLabels) {
  const auto matches = [](std::string_view owner, std::string_view pattern) {
    return matches_pattern(name(owner), name(pattern), nullptr);
  };
  EXPECT_TRUE(matches("_acme-challenge.www", "_acme-challenge.*"));
  EXPECT_TRUE(matches("_ACME-challenge.a.b.c", "_acme-challenge.*"));
  EXPECT_FALSE(matches("_acme-challenge", "_acme-challenge.*"));
  EXPECT_FALSE(matches("x._acme-challenge.www", "_acme-challenge.*"));
  EXPECT_TRUE(matches("x._acme-challenge.www", "*._acme-challenge.*"));
  EXPECT_TRUE(matches("a.b.a.b.c", "*.a.b.c"));
  EXPECT_TRUE(matches("x.a.y.a.z", "*.a.*.z"));
  EXPECT_FALSE(matches("x.a.z", "*.a.*.z"));
  EXPECT_FALSE(matches("www", "*.www"));
  EXPECT_TRUE(matches("www", "www"));
  EXPECT_FALSE(matches("w", "www"));
  EXPECT_FALSE(matches("*.www", "a.www")) << "a star in the owner is a label like others";
}

TEST_F(Update, SelfStandsForTheNameOfTheKey) {
  const dns::Name host = name("host"), stranger = name("host.elsewhere.");
  acl_[0].names = {dns::Name::from_text("self.").value(),
                   dns::Name::from_text("_acme-challenge.self.").value()};
  EXPECT_EQ(run(UpdateBuilder().add("host 60 A 192.0.2.9")), Rcode::kRefused) << "nobody signed";
  EXPECT_EQ(run(UpdateBuilder().yx("nowhere", "ANY")), Rcode::kRefused)
      << "strangers learn nothing by prerequisites";
  rules_.requester.key = &host;
  EXPECT_EQ(run(UpdateBuilder().add("HOST 60 A 192.0.2.9")), Rcode::kNoError);
  EXPECT_EQ(run(UpdateBuilder().add("_acme-challenge.host 60 TXT t")), Rcode::kNoError);
  EXPECT_EQ(run(UpdateBuilder().remove_name("host")), Rcode::kNoError);
  for (const char* line :
       {"www 60 A 192.0.2.9", "x.host 60 A 192.0.2.9", "x._acme-challenge.host 60 TXT t",
        "_acme-challenge.www 60 TXT t", "_acme-challenge 60 TXT t", "@ 60 A 192.0.2.9"})
    EXPECT_EQ(run(UpdateBuilder().add(line)), Rcode::kRefused) << line;
  rules_.requester.key = &stranger;
  EXPECT_EQ(run(UpdateBuilder().add("host 60 A 192.0.2.9")), Rcode::kRefused);
}

TEST_F(Update, DeletingANameNeedsPermissionForEachTypeThere) {
  acl_[0].types = {RRType::kA};
  EXPECT_EQ(run(UpdateBuilder().remove_name("www")), Rcode::kRefused);
  acl_[0].types = {RRType::kA, RRType::kAAAA};
  EXPECT_EQ(run(UpdateBuilder().remove_name("www")), Rcode::kNoError);
}

TEST_F(Update, TheFirstMatchingRuleDecides) {
  zone::AclRule deny;
  deny.deny = true;
  deny.names = {name("www")};
  acl_.insert(acl_.begin(), deny);
  EXPECT_EQ(run(UpdateBuilder().add("www 60 A 192.0.2.9")), Rcode::kRefused);
  EXPECT_EQ(run(UpdateBuilder().add("other 60 A 192.0.2.9")), Rcode::kNoError);
}

TEST_F(Update, TheAddressOfARuleIsTheClients) {
  acl_[0].address = IpPrefix::from_text("192.0.2.0/24").value();
  rules_.requester.address = IpAddress::from_text("198.51.100.1").value();
  EXPECT_EQ(run(UpdateBuilder().add("new 60 A 192.0.2.9")), Rcode::kRefused);
  rules_.requester.address = IpAddress::from_text("192.0.2.77").value();
  EXPECT_EQ(run(UpdateBuilder().add("new 60 A 192.0.2.9")), Rcode::kNoError);
}

// Signed zones and limits -----------------------------------------------------------------------

TEST_F(Update, RecordsOfASignerAreRefused) {
  EXPECT_EQ(run(UpdateBuilder().add(
                "www 60 RRSIG A 8 2 60 20300101000000 20200101000000 1 example. AAAA")),
            Rcode::kRefused);
  EXPECT_EQ(run(UpdateBuilder().add("www 60 NSEC x.example. A")), Rcode::kRefused);
  EXPECT_EQ(run(UpdateBuilder().add("@ 60 DNSKEY 256 3 8 AAAA")), Rcode::kRefused);
}

TEST_F(Update, ASignedZoneIsRefused) {
  zone::Changeset changes{name("@"), {}, {record("@ 60 DNSKEY 256 3 8 AAAA")}};
  zone_.apply(changes);
  EXPECT_EQ(run(UpdateBuilder().add("new 60 A 192.0.2.9")), Rcode::kRefused);
  EXPECT_THAT(reason_, HasSubstr("signed"));
  EXPECT_EQ(run(UpdateBuilder().remove_set("@", "DNSKEY")), Rcode::kRefused);
}

TEST_F(Update, AboveTheRecordsOfASetIsRefusedWithAReason) {
  rules_.limits.rrset_records = 3;
  EXPECT_EQ(run(UpdateBuilder().add("www 300 A 192.0.2.12")), Rcode::kNoError);
  EXPECT_EQ(run(UpdateBuilder().add("www 300 A 192.0.2.13")), Rcode::kRefused);
  EXPECT_THAT(reason_, HasSubstr("rrset-records"));
  EXPECT_EQ(run(UpdateBuilder().remove("www A 192.0.2.10").add("www 300 A 192.0.2.13")),
            Rcode::kNoError);
}

TEST_F(Update, AboveTheTypesOfANameIsRefusedWithAReason) {
  rules_.limits.name_types = 2;
  EXPECT_EQ(run(UpdateBuilder().add("www 300 TXT x")), Rcode::kRefused);
  EXPECT_THAT(reason_, HasSubstr("name-types"));
}

TEST_F(Update, ASetAboveTheLimitMayStillShrink) {
  rules_.limits.rrset_records = 1;
  EXPECT_EQ(run(UpdateBuilder().add("ns1 3600 TXT x").remove("www AAAA 2001:db8::10")),
            Rcode::kNoError);
}

TEST_F(Update, AboveTheRecordsOfAZoneIsRefused) {
  rules_.limits.zone_records = zone_.zone().record_count() + 1;
  EXPECT_EQ(run(UpdateBuilder().add("n1 300 A 192.0.2.1")), Rcode::kNoError);
  EXPECT_EQ(run(UpdateBuilder().add("n2 300 A 192.0.2.1")), Rcode::kRefused);
  EXPECT_THAT(reason_, HasSubstr("zone-records"));
}

// Size ------------------------------------------------------------------------------------------

TEST_F(Update, ConcernsWhatItNamesAndWhatIsWhereItDeletes) {
  const auto concerned = [&](const UpdateBuilder& update) {
    const auto message = parse_update(ParsedRequest(update.message()));
    std::uint64_t count = 0;
    while (message && concerns_more_than(count, zone_.zone(), *message)) ++count;
    return count;
  };
  using Builder = UpdateBuilder;
  EXPECT_EQ(concerned(Builder()), 0U);
  EXPECT_EQ(concerned(Builder().yx("www", "A").add("new 60 A 192.0.2.9")), 2U);
  EXPECT_EQ(concerned(Builder().remove("www A 192.0.2.10")), 1U);
  EXPECT_EQ(concerned(Builder().remove_name("www")), 1U + 3U);
  EXPECT_EQ(concerned(Builder().remove_name("www").remove_name("ns1")), 2U + 4U);
  EXPECT_EQ(concerned(Builder().remove_set("www", "A")), 1U + 2U);
  EXPECT_EQ(concerned(Builder().remove_name("absent").remove_set("absent", "A")), 2U);
  EXPECT_EQ(concerned(Builder().add("www 300 A 192.0.2.12")), 1U);
  EXPECT_EQ(concerned(Builder().add("www 301 A 192.0.2.12")), 1U + 4U) << "the set goes and comes";
  EXPECT_EQ(concerned(Builder("elsewhere.").remove_name("www.elsewhere.")), 1U);
}

}  // namespace update_request_test
}  // namespace pando::manager
