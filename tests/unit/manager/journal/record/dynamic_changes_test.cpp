#include "manager/journal/record/dynamic_changes.h"

#include <gtest/gtest.h>

#include "manager/journal/record/journal_payload.h"
#include "tests/unit/manager/zone_support.h"

namespace pando::manager {
namespace dynamic_changes_test {

using testing::name;
using testing::record;
using Lines = std::vector<std::string>;

zone::Changeset changes(const Lines& removed, const Lines& added) {
  zone::Changeset list{name("@"), {}, {}};
  for (const std::string& line : removed) list.removed.push_back(record(line));
  for (const std::string& line : added) list.added.push_back(record(line));
  return list;
}
RecordChanges by_record(const Lines& removed, const Lines& added) {
  return record_changes_of(changes(removed, added));
}

/// Entries as "owner TYPE rdata: file → live".
Lines shown(const DynamicChanges& dynamic_changes) {
  const auto ttl = [](std::optional<dns::Ttl> value) {
    return value ? std::to_string(value->seconds) : std::string("-");
  };
  Lines all;
  for (const auto& [key, entry] : dynamic_changes.entries())
    all.push_back(fmt::format("{} {} {}: {} {}", to_text(key.owner()), to_text(key.type()),
                              dns::rdata_to_text(key.type(), key.rdata()), ttl(entry.before),
                              ttl(entry.after)));
  return all;
}

TEST(DynamicChanges, AnUpdateThatAddsRemovesOrRetimesIsAnEntry) {
  DynamicChanges dynamic_changes;
  dynamic_changes.updated(by_record({"old 60 A 192.0.2.1", "slow 60 A 192.0.2.1"},
                                    {"new 60 A 192.0.2.1", "slow 90 A 192.0.2.1"}));
  EXPECT_EQ(shown(dynamic_changes),
            (Lines{"new.example. A 192.0.2.1: - 60", "old.example. A 192.0.2.1: 60 -",
                   "slow.example. A 192.0.2.1: 60 90"}));
  EXPECT_FALSE(dynamic_changes.empty());
}

TEST(DynamicChanges, WhatIsTakenBackLeavesNoEntry) {
  DynamicChanges dynamic_changes;
  dynamic_changes.updated(by_record({"old 60 A 192.0.2.1"}, {"new 60 A 192.0.2.1"}));
  dynamic_changes.updated(by_record({"NEW 60 A 192.0.2.1"}, {"OLD 60 A 192.0.2.1"}));
  EXPECT_TRUE(dynamic_changes.empty()) << "names are compared without case";
}

TEST(DynamicChanges, ADeletedRecordThatReturnsWithAnotherTtlIsRetimed) {
  DynamicChanges dynamic_changes;
  dynamic_changes.updated(by_record({"old 60 A 192.0.2.1"}, {}));
  dynamic_changes.updated(by_record({}, {"old 90 A 192.0.2.1"}));
  EXPECT_EQ(shown(dynamic_changes), (Lines{"old.example. A 192.0.2.1: 60 90"}));
}

TEST(DynamicChanges, SerialsAreNoUpdateButOtherFieldsOfTheSoaAre) {
  DynamicChanges dynamic_changes;
  dynamic_changes.updated(by_record({"@ 60 SOA ns1 admin 10 3600 600 86400 300"},
                                    {"@ 60 SOA ns1 admin 11 3600 600 86400 300"}));
  EXPECT_TRUE(dynamic_changes.empty());
  dynamic_changes.updated(by_record({"@ 60 SOA ns1 admin 11 3600 600 86400 300"},
                                    {"@ 60 SOA ns1 admin 12 7200 600 86400 300"}));
  EXPECT_EQ(dynamic_changes.entries().size(), 2U);
}

TEST(DynamicChanges, AnEditThatTheZoneFollowedLeavesNoEntry) {
  DynamicChanges dynamic_changes;
  dynamic_changes.edited(by_record({"out 60 A 192.0.2.1"}, {"in 60 A 192.0.2.1"}), {});
  EXPECT_TRUE(dynamic_changes.empty());
}

TEST(DynamicChanges, AnEditThatTheZoneDidNotFollowMovesTheFileAlone) {
  DynamicChanges dynamic_changes;
  dynamic_changes.updated(by_record({"gone 60 A 192.0.2.1"}, {"dyn 60 A 192.0.2.1"}));
  dynamic_changes.edited({}, by_record({"gone 60 A 192.0.2.1"}, {"dyn 60 A 192.0.2.1"}));
  EXPECT_TRUE(dynamic_changes.empty()) << "the file agrees with the updates now";
  dynamic_changes.updated(by_record({"dyn 60 A 192.0.2.1"}, {}));
  EXPECT_EQ(shown(dynamic_changes), (Lines{"dyn.example. A 192.0.2.1: 60 -"}));
}

/// An update came between the comparison and the commit: the order in the journal is what counts.
TEST(DynamicChanges, AnUpdateBetweenComparisonAndMergeIsNotLost) {
  DynamicChanges dynamic_changes;
  dynamic_changes.updated(by_record({}, {"dyn 60 A 192.0.2.1"}));
  dynamic_changes.updated(by_record({"dyn 60 A 192.0.2.1"}, {}));
  dynamic_changes.edited(
      {}, by_record({}, {"dyn 60 A 192.0.2.1"}));  // the file had taken it over meanwhile
  EXPECT_EQ(shown(dynamic_changes), (Lines{"dyn.example. A 192.0.2.1: 60 -"}));
}

TEST(DynamicChanges, AnAdditionThatTookTheSetsTtlKeepsBothTtls) {
  DynamicChanges dynamic_changes;
  dynamic_changes.edited(by_record({}, {"set 90 A 192.0.2.1"}),
                         by_record({}, {"set 60 A 192.0.2.1"}));
  EXPECT_EQ(shown(dynamic_changes), (Lines{"set.example. A 192.0.2.1: 60 90"}));
}

TEST(DynamicChanges, BeyondItsLimitsItIsNotKnownUntilTheFileIsTheZone) {
  for (const DynamicChanges::Limits limits :
       {DynamicChanges::Limits{2, 1000}, DynamicChanges::Limits{1000, 30}}) {
    DynamicChanges dynamic_changes(limits);
    dynamic_changes.updated(by_record({}, {"a 60 A 192.0.2.1"}));
    EXPECT_TRUE(dynamic_changes.known());
    dynamic_changes.updated(by_record({}, {"b 60 A 192.0.2.1", "c 60 A 192.0.2.1"}));
    EXPECT_FALSE(dynamic_changes.known());
    EXPECT_FALSE(dynamic_changes.empty());
    dynamic_changes.updated(by_record({"b 60 A 192.0.2.1", "c 60 A 192.0.2.1"}, {}));
    EXPECT_FALSE(dynamic_changes.known()) << "what was forgotten does not come back";
    dynamic_changes.reset();
    EXPECT_TRUE(dynamic_changes.empty());
  }
}

TEST(MergeBase, IsStoredAndReadBack) {
  DynamicChanges dynamic_changes;
  dynamic_changes.updated(by_record({"gone 60 A 192.0.2.1", "slow 60 A 192.0.2.1"},
                                    {"dyn 60 A 192.0.2.1", "slow 90 A 192.0.2.1"}));
  MergeBase state;
  ASSERT_TRUE(state
                  .take({1,
                         1,
                         RecordKind::kDynamicChanges,
                         name("@"),
                         {5},
                         {9},
                         encode(name("@"), dynamic_changes)})
                  .has_value());
  EXPECT_EQ(shown(state.dynamic_changes), shown(dynamic_changes));
  EXPECT_EQ(state.file_serial, dns::Serial{5});
  EXPECT_EQ(state.serial, dns::Serial{9});
  dynamic_changes.lose();
  ASSERT_TRUE(state
                  .take({1,
                         1,
                         RecordKind::kDynamicChanges,
                         name("@"),
                         {5},
                         {9},
                         encode(name("@"), dynamic_changes)})
                  .has_value());
  EXPECT_FALSE(state.dynamic_changes.known());
}

TEST(MergeBase, KnowsTheFilesSerialFromWhereTheFirstUpdateBegan) {
  MergeBase state;
  const Bytes payload = zone::encode(changes({}, {"dyn 60 A 192.0.2.1"}));
  ASSERT_TRUE(
      state.take({7, 7, RecordKind::kChangeset, name("@"), {10}, {11}, payload}).has_value());
  ASSERT_TRUE(state
                  .take({8,
                         8,
                         RecordKind::kChangeset,
                         name("@"),
                         {11},
                         {12},
                         zone::encode(changes({}, {"two 60 A 192.0.2.1"}))})
                  .has_value());
  EXPECT_EQ(state.file_serial, dns::Serial{10});
  EXPECT_EQ(state.serial, dns::Serial{12});
  const Bytes edit = encode_file_edit({50}, changes({}, {"f 60 A 192.0.2.1"}),
                                      changes({}, {"two 60 A 192.0.2.1"}));
  ASSERT_TRUE(state.take({9, 9, RecordKind::kFileEdit, name("@"), {12}, {50}, edit}).has_value());
  EXPECT_EQ(state.file_serial, dns::Serial{50});
  EXPECT_EQ(shown(state.dynamic_changes), (Lines{"dyn.example. A 192.0.2.1: - 60"}));
  ASSERT_TRUE(state.take({10, 10, RecordKind::kBase, name("@"), {51}, {52}, {}}).has_value());
  EXPECT_EQ(state.file_serial, dns::Serial{51});
  EXPECT_TRUE(state.dynamic_changes.empty());
}

TEST(MergeBase, RecordsOfASignerAreNoDynamicChanges) {
  const auto take_signed = [](MergeBase& state, JournalEntry entry) {
    wrap_signed(entry);
    ASSERT_EQ(entry.kind, RecordKind::kSigned);
    ASSERT_TRUE(state.take({1, 1, entry.kind, entry.zone, entry.from, entry.to, entry.payload}));
  };
  MergeBase state;
  take_signed(state, {name("@"), {10}, {11},
                      zone::encode(changes({"@ 60 NSEC b A"}, {"dyn 60 A 192.0.2.1",
                                           "dyn 60 NSEC @ A NSEC", "@ 60 NSEC dyn A",
                                           "sub.dyn 60 CDS 0 0 0 00", "@ 60 CDS 0 0 0 00"})),
                      RecordKind::kChangeset});
  const Lines dynamic{"dyn.example. A 192.0.2.1: - 60", "sub.dyn.example. CDS 0 0 0 00: - 60"};
  EXPECT_EQ(shown(state.dynamic_changes), dynamic);
  take_signed(state, {name("@"), {11}, {50},
                      encode_file_edit({50}, changes({}, {"f 60 A 192.0.2.1", "f 60 NSEC @ A"}),
                                       changes({}, {})),
                      RecordKind::kFileEdit});
  EXPECT_EQ(state.file_serial, dns::Serial{50});
  EXPECT_EQ(shown(state.dynamic_changes), dynamic);
  // All of the zone is signed: the source is the same under another serial.
  const Bytes whole = zone::encode(changes({"@ 60 SOA a b 50 1 1 1 1"}, {"@ 60 SOA a b 51 1 1 1 1"}));
  Bytes payload{0};
  append(payload, whole);
  ASSERT_TRUE(state.take({2, 2, RecordKind::kSigned, name("@"), {50}, {51}, payload}));
  EXPECT_EQ(state.serial, dns::Serial{51});
  EXPECT_EQ(shown(state.dynamic_changes), dynamic);
  EXPECT_FALSE(state.take({3, 3, RecordKind::kSigned, name("@"), {51}, {52}, {}}));
  EXPECT_FALSE(state.take({3, 3, RecordKind::kSigned, name("@"), {51}, {52}, {7, 0}}));
}

TEST(MergeBase, AMissingChangesetMakesDynamicChangesUnknown) {
  const Bytes delta = zone::encode(changes({}, {"dyn 60 A 192.0.2.1"}));
  const Bytes edit = encode_file_edit({50}, changes({}, {"f 60 A 192.0.2.1"}), changes({}, {}));
  for (const auto& [kind, payload] :
       {std::pair(RecordKind::kChangeset, delta), {RecordKind::kFileEdit, edit}}) {
    MergeBase state;
    ASSERT_TRUE(
        state.take({1, 1, RecordKind::kChangeset, name("@"), {10}, {11}, delta}).has_value());
    ASSERT_TRUE(state.take({3, 3, kind, name("@"), {12}, {13}, payload}).has_value());
    EXPECT_FALSE(state.dynamic_changes.known());
    EXPECT_EQ(state.serial, dns::Serial{13});
    ASSERT_TRUE(state.take({4, 4, RecordKind::kBase, name("@"), {20}, {20}, {}}).has_value());
    EXPECT_TRUE(state.dynamic_changes.empty())
        << "the file's serial is that of the zone from there on";
  }
}

TEST(MergeBase, KnowsWhichFileWasMergedUntilAnotherIs) {
  const zone::ZoneFileInfo source{-5, 123};
  const JournalRecord file{1, 1, RecordKind::kSource, name("@"), {10}, {10}, encode(source)};
  const Bytes edit = encode_file_edit({50}, changes({}, {"f 60 A 192.0.2.1"}), changes({}, {}));
  MergeBase state;
  EXPECT_FALSE(state.is_merged({10}, source));
  ASSERT_TRUE(state.take(file).has_value());
  EXPECT_TRUE(state.is_merged({10}, source));
  EXPECT_FALSE(state.is_merged({11}, source));
  EXPECT_FALSE(state.is_merged({10}, {-4, 123}));
  EXPECT_FALSE(state.is_merged({10}, {-5, 124}));
  const Bytes delta = zone::encode(changes({}, {"dyn 60 A 192.0.2.1"}));
  ASSERT_TRUE(state.take({2, 2, RecordKind::kChangeset, name("@"), {10}, {11}, delta}).has_value());
  EXPECT_TRUE(state.is_merged({10}, source));
  ASSERT_TRUE(state.take({3, 3, RecordKind::kFileEdit, name("@"), {11}, {50}, edit}).has_value());
  EXPECT_FALSE(state.source.has_value());
  EXPECT_TRUE(state.dynamic_changes.known());
}

TEST(MergeBase, KnowsTheMergedFileByItsHashWhateverItsTime) {
  MergeBase state;
  const auto take = [&](Bytes payload) {
    return state.take({1, 1, RecordKind::kSource, name("@"), {10}, {10}, std::move(payload)});
  };
  ASSERT_TRUE(take(encode(zone::ZoneFileInfo{5, 123, 77})).has_value());
  EXPECT_TRUE(state.is_merged({10}, {5, 123, 77}));
  EXPECT_TRUE(state.is_merged({10}, {6, 123, 77})) << "touched";
  EXPECT_FALSE(state.is_merged({10}, {5, 123, 78})) << "edited, and its time put back";
  EXPECT_FALSE(state.is_merged({10}, {5, 124, 77}));
  EXPECT_TRUE(state.is_merged({10}, {5, 123})) << "nobody looked into it";
  ASSERT_TRUE(take(encode(zone::ZoneFileInfo{5, 123})).has_value());
  EXPECT_TRUE(state.is_merged({10}, {5, 123, 78})) << "the file was never read";
  EXPECT_FALSE(state.is_merged({10}, {6, 123, 77}));
  // As dumps have it.
  ASSERT_TRUE(take(encode_stamped(zone::ZoneFileInfo{5, 123, 77, 99})).has_value());
  EXPECT_EQ(state.source, (zone::ZoneFileInfo{5, 123, 77, 99}));
}

/// A record of a zone at serial `from` that adds "NAME 60 A 192.0.2.1".
JournalRecord adding(RecordKind kind, const std::string& owner, std::uint32_t from) {
  const Bytes payload = zone::encode(changes({}, {owner + " 60 A 192.0.2.1"}));
  return {from, from, kind, name("@"), {from}, {from + 1}, payload};
}

TEST(MergeBase, AfterATransferAnotherFileIsBesideLaterUpdatesOnly) {
  const zone::ZoneFileInfo copy{5, 6};
  for (const bool with_base_file : {false, true}) {
    MergeBase state;
    ASSERT_TRUE(state.take(adding(RecordKind::kChangeset, "before", 10)).has_value());
    ASSERT_TRUE(
        state.take({1, 1, RecordKind::kSource, name("@"), {11}, {11}, encode(copy)}).has_value());
    EXPECT_FALSE(state.own.has_value());
    ASSERT_TRUE(state.take(adding(RecordKind::kTransfer, "sent", 11)).has_value());
    ASSERT_TRUE(state.take(adding(RecordKind::kChangeset, "after", 12)).has_value());
    EXPECT_TRUE(state.is_base_file({10}, copy));
    EXPECT_FALSE(state.is_base_file({11}, copy))
        << "the dynamic changes begin before what that copy has";
    EXPECT_FALSE(state.is_base_file({10}, {5, 7}));
    ASSERT_TRUE(state.own.has_value());
    const JournalEntry entry = primary_entry(name("@"), {13}, with_base_file);
    ASSERT_TRUE(state.take({2, 2, entry.kind, entry.zone, entry.from, entry.to, entry.payload})
                    .has_value());
    EXPECT_FALSE(state.own.has_value());
    EXPECT_EQ(state.is_base_file({10}, copy), with_base_file);
    EXPECT_EQ(state.is_merged({10}, copy), with_base_file);
    const Lines all{"after.example. A 192.0.2.1: - 60", "before.example. A 192.0.2.1: - 60",
                    "sent.example. A 192.0.2.1: - 60"};
    EXPECT_EQ(shown(state.dynamic_changes), with_base_file ? all : Lines{all.front()});
  }
}

TEST(MergeBase, ATransferThatFollowsNothingLeavesNoNotedFile) {
  MergeBase state;
  ASSERT_TRUE(state.take(adding(RecordKind::kChangeset, "before", 10)).has_value());
  ASSERT_TRUE(
      state
          .take(
              {1, 1, RecordKind::kSource, name("@"), {11}, {11}, encode(zone::ZoneFileInfo{5, 6})})
          .has_value());
  ASSERT_TRUE(state.take(adding(RecordKind::kTransfer, "sent", 20)).has_value());
  EXPECT_FALSE(state.source.has_value());
  EXPECT_FALSE(state.dynamic_changes.known());
  ASSERT_TRUE(state.own.has_value());
  EXPECT_TRUE(state.own->empty()) << "the primary's word is whole without what is missing";
  ASSERT_TRUE(state.take(adding(RecordKind::kChangeset, "after", 30)).has_value());
  EXPECT_FALSE(state.own->known()) << "an update may be missing";
}

TEST(MergeBase, WhatIsTheZonesOwnAfterATransferIsStoredAndReadBack) {
  DynamicChanges dynamic_changes, own;
  dynamic_changes.updated(by_record({}, {"sent 60 A 192.0.2.1", "dyn 60 A 192.0.2.1"}));
  own.updated(by_record({}, {"dyn 60 A 192.0.2.1"}));
  MergeBase state;
  for (const bool is_own : {false, true}) {
    const JournalEntry entry =
        dynamic_changes_entry(name("@"), {5}, {9}, is_own ? own : dynamic_changes, is_own);
    ASSERT_TRUE(state.take({1, 1, entry.kind, entry.zone, entry.from, entry.to, entry.payload})
                    .has_value());
    EXPECT_EQ(state.own.has_value(), is_own);
    EXPECT_EQ(shown(state.dynamic_changes), shown(dynamic_changes));
  }
  EXPECT_EQ(shown(*state.own), shown(own));
  state.lose();
  EXPECT_FALSE(state.dynamic_changes.known() || state.own->known());
}

TEST(MergeBase, ASnapshotsZoneAloneSaysNothingOfUpdates) {
  MergeBase state;
  state.take_whole({9});
  EXPECT_FALSE(state.dynamic_changes.known());
}

TEST(MergeBase, DamagedPayloadsAreErrors) {
  MergeBase state;
  DynamicChanges dynamic_changes;
  dynamic_changes.updated(by_record({}, {"dyn 60 A 192.0.2.1"}));
  const zone::Changeset edits_zone = changes({}, {"f 60 A 192.0.2.1"});
  const Bytes edit = encode_file_edit({50}, edits_zone, changes({}, {}));
  for (const auto& [kind, whole] :
       {std::pair(RecordKind::kDynamicChanges, encode(name("@"), dynamic_changes)),
        {RecordKind::kFileEdit, edit},
        {RecordKind::kTransfer, zone::encode(edits_zone)},
        {RecordKind::kPrimary, Bytes{1}},
        {RecordKind::kSource, encode(zone::ZoneFileInfo{1, 2})}})
    for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
      const Bytes part(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(bytes));
      EXPECT_FALSE(state.take({1, 1, kind, name("@"), {5}, {9}, part}).has_value()) << bytes;
    }
}

}  // namespace dynamic_changes_test
}  // namespace pando::manager
