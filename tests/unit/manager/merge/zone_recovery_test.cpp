#include "manager/merge/zone_recovery.h"

#include <gtest/gtest.h>

#include "manager/support/soa.h"
#include "tests/unit/manager/zone_support.h"

namespace pando::manager {
namespace zone_recovery_test {

using testing::name;
using testing::record;
using Lines = std::vector<std::string>;

constexpr const char* kSoa = "@ 60 SOA ns1 admin 10 3600 600 86400 300";

DynamicChanges changes_of_update(const Lines& removed, const Lines& added) {
  zone::Changeset changes{name("@"), {}, {}};
  for (const std::string& line : removed) changes.removed.push_back(record(line));
  for (const std::string& line : added) changes.added.push_back(record(line));
  DynamicChanges updated;
  updated.updated(record_changes_of(changes));
  return updated;
}

std::string shown(const zone::Record& one) {
  return fmt::format("{} {} {} {}", to_text(one.owner), one.ttl.seconds, to_text(one.type),
                     dns::rdata_to_text(one.type, one.rdata));
}

/// The zone that comes of a file with `lines` and an changes; what was kept back stands first.
Lines recovered(const DynamicChanges& changes, const Lines& lines) {
  ZoneRecovery recovery(changes.entries());
  Lines rest;
  for (const std::string& line : lines) {
    const zone::Record one = record(line);
    if (!recovery.take(one.owner, one.type, one.ttl, one.rdata)) rest.push_back(shown(one));
  }
  auto outcome = std::move(recovery).result();
  Lines all;
  if (outcome.soa) all.push_back(shown(*outcome.soa));
  for (const zone::Record& one : outcome.records) all.push_back(shown(one));
  std::sort(all.begin(), all.end());
  all.insert(all.end(), rest.begin(), rest.end());
  return all;
}

// How an edit meets updates, set by set, is in file_merge_test: the outcome is the same.
// -----------

TEST(ZoneRecovery, SetsThatNoUpdateTouchedAreNotKept) {
  const DynamicChanges changes = changes_of_update({}, {"dyn 60 A 192.0.2.1"});
  ZoneRecovery recovery(changes.entries());
  const zone::Record other = record("www 60 A 192.0.2.1");
  EXPECT_FALSE(recovery.take(other.owner, other.type, other.ttl, other.rdata));
  const zone::Record type = record("dyn 60 TXT x");
  EXPECT_FALSE(recovery.take(type.owner, type.type, type.ttl, type.rdata));
  const zone::Record same = record("DYN 60 A 192.0.2.2");
  EXPECT_TRUE(recovery.take(same.owner, same.type, same.ttl, same.rdata)) << "names have no case";
}

TEST(ZoneRecovery, ASetTakesTheFilesFirstTtlUnlessAnUpdateGaveOne) {
  EXPECT_EQ(recovered(changes_of_update({"a 60 A 192.0.2.1"}, {}),
                      {"a 70 A 192.0.2.3", "a 90 A 192.0.2.2", "a 60 A 192.0.2.1"}),
            (Lines{"a.example. 70 A 192.0.2.2", "a.example. 70 A 192.0.2.3"}));
  EXPECT_EQ(recovered(changes_of_update({}, {"a 60 A 192.0.2.1"}), {"a 70 A 192.0.2.3"}),
            (Lines{"a.example. 60 A 192.0.2.1", "a.example. 60 A 192.0.2.3"}));
}

TEST(ZoneRecovery, TheSoaIsTheUpdatesWithTheFilesSerial) {
  const DynamicChanges changes =
      changes_of_update({kSoa}, {"@ 90 SOA ns2 admin 11 3600 600 86400 300"});
  const Lines expected = {"example. 90 SOA ns2.example. admin.example. 44 3600 600 86400 300"};
  EXPECT_EQ(recovered(changes, {"@ 60 SOA ns1 admin 44 3600 600 86400 300"}), expected);
  EXPECT_EQ(recovered(changes, {"@ 60 SOA ns9 admin 44 3600 600 86400 300"}), expected);
  EXPECT_EQ(recovered(changes, {"@ 90 SOA ns2 admin 44 3600 600 86400 300"}), expected);
  EXPECT_EQ(recovered({}, {kSoa}),
            (Lines{"example. 60 SOA ns1.example. admin.example. 10 3600 600 86400 300"}));
  EXPECT_EQ(recovered(changes, {}), Lines());
}

TEST(ZoneRecovery, ASecondSoaIsLeftToTheBuilder) {
  EXPECT_EQ(recovered({}, {kSoa, "@ 60 SOA ns2 admin 10 3600 600 86400 300"}).size(), 2U);
}

TEST(ZoneRecovery, TheFileDecidesAboutASignersRecordsThatItChanged) {
  const std::string sig = "a 60 RRSIG A 13 2 60 20300101000000 20200101000000 1 example. ";
  const DynamicChanges changes = changes_of_update({sig + "AAAA"}, {sig + "BBBB"});
  EXPECT_EQ(recovered(changes, {sig + "AAAA"}).size(), 1U);
  EXPECT_EQ(recovered(changes, {sig + "AAAA"}), recovered(changes, {}))
      << "the new one stands in either case, the old one in neither";
  EXPECT_EQ(recovered(changes, {sig + "CCCC"}).size(), 2U);
}

TEST(RecoveredSerial, IsTheLastServedOneWhenTheFileIsAsItWas) {
  const MergeBase state{{}, dns::Serial{10}, zone::ZoneFileInfo{5, 6}, dns::Serial{20}};
  EXPECT_EQ(recovered_serial(state, {10}, {5, 6}, {false}), dns::Serial{20});
  EXPECT_EQ(recovered_serial(state, {10}, {5, 6}, {true}), dns::Serial{20});
  MergeBase old = state;
  old.source.reset();
  EXPECT_EQ(recovered_serial(old, {10}, {7, 7}, {false}), dns::Serial{20}) << "as far as is known";
}

TEST(RecoveredSerial, IsAheadOfTheLastServedOneWhenTheFileIsAnother) {
  const MergeBase state{{}, dns::Serial{10}, zone::ZoneFileInfo{5, 6}, dns::Serial{20}};
  for (const bool as_file : {false, true}) {
    EXPECT_EQ(recovered_serial(state, {10}, {9, 6}, {as_file}), dns::Serial{21}) << "same serial";
    EXPECT_EQ(recovered_serial(state, {10}, {5, 9}, {as_file}), dns::Serial{21}) << "same time";
    EXPECT_EQ(recovered_serial(state, {9}, {5, 6}, {as_file}), dns::Serial{21}) << "behind";
    EXPECT_EQ(recovered_serial(state, {20}, {9, 6}, {as_file}), dns::Serial{21}) << "as served";
    EXPECT_EQ(recovered_serial(state, {20 + 0x80000000U}, {9, 6}, {as_file}), dns::Serial{21})
        << "neither is ahead";
  }
  EXPECT_EQ(recovered_serial(state, {30}, {9, 6}, {true}), dns::Serial{30});
  EXPECT_EQ(recovered_serial(state, {30}, {9, 6}, {false}), dns::Serial{31});
  const MergeBase wraps{{}, dns::Serial{10}, zone::ZoneFileInfo{5, 6}, dns::Serial{0xFFFFFFFF}};
  EXPECT_EQ(recovered_serial(wraps, {0xFFFFFFF0}, {9, 6}, {false}), dns::Serial{1});
  EXPECT_EQ(recovered_serial(wraps, {5}, {9, 6}, {false}), dns::Serial{6}) << "RFC 1982";
}

TEST(RecoveredSerial, OfASignedSoaIsOneThatWasSigned) {
  const MergeBase state{{}, dns::Serial{10}, zone::ZoneFileInfo{5, 6}, dns::Serial{20}};
  for (const bool as_file : {false, true}) {
    const RecoveredZone zone{as_file, true};
    EXPECT_EQ(recovered_serial(state, {10}, {5, 6}, zone), dns::Serial{20}) << "as it was";
    EXPECT_EQ(recovered_serial(state, {10}, {9, 6}, zone), dns::Serial{20}) << "touched";
    EXPECT_EQ(recovered_serial(state, {15}, {9, 6}, zone), dns::Serial{20}) << "behind";
    EXPECT_EQ(recovered_serial(state, {30}, {9, 6}, zone), dns::Serial{30}) << "ahead";
  }
}

}  // namespace zone_recovery_test
}  // namespace pando::manager
