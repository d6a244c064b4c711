#include "manager/secondary/transfer/difference_sequences.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/manager/zone_support.h"

namespace pando::manager {
namespace difference_sequences_test {

using testing::name;
using testing::record;
using ::testing::SizeIs;

zone::Record soa(int serial) {
  return record("@ 300 SOA ns1 admin " + std::to_string(serial) + " 7200 3600 1209600 300");
}

/// Gives a response that leads from `current` to `newest`, without its opening SOA. Returns "done",
/// "more" or the error.
std::string feed(DifferenceSequences& sequences, std::uint32_t current, std::uint32_t newest,
                 std::vector<zone::Record> records) {
  for (std::size_t i = 0; i < records.size(); ++i) {
    if (i == 0) {
      const auto begun = sequences.begin(std::move(records[0]), {current}, {newest});
      if (!begun) return begun.error().text;
      continue;
    }
    const auto done = sequences.take(std::move(records[i]));
    if (!done) return done.error().text;
    if (*done) return i + 1 == records.size() ? "done" : "done too early";
  }
  return "more";
}

TEST(DifferenceSequences, BecomeChangesetsOldestFirst) {
  DifferenceSequences sequences(name("@"), {});
  EXPECT_TRUE(sequences.empty());
  EXPECT_EQ(feed(sequences, 7, 9,
                 {soa(7), record("a 300 A 192.0.2.1"), soa(8), record("a 300 A 192.0.2.2"),
                  record("b 300 A 192.0.2.3"), soa(8), soa(9), soa(9)}),
            "done");
  EXPECT_FALSE(sequences.empty());
  ASSERT_THAT(sequences.changesets(), SizeIs(2));
  const zone::Changeset& first = sequences.changesets()[0];
  EXPECT_EQ(first.zone, name("@"));
  EXPECT_THAT(first.removed, SizeIs(2)) << "the old SOA and one record";
  EXPECT_THAT(first.added, SizeIs(3)) << "the new SOA and two records";
  EXPECT_THAT(sequences.changesets()[1].removed, SizeIs(1));
  EXPECT_THAT(sequences.changesets()[1].added, SizeIs(1));
}

TEST(DifferenceSequences, EndOnlyAtTheNewestSerial) {
  DifferenceSequences sequences(name("@"), {});
  EXPECT_EQ(feed(sequences, 7, 9, {soa(7), soa(8), soa(8)}), "more");
}

TEST(DifferenceSequences, MustFollowOneAnother) {
  const auto error = [](std::vector<zone::Record> records) {
    DifferenceSequences sequences(name("@"), {});
    return feed(sequences, 7, 9, std::move(records));
  };
  EXPECT_EQ(error({soa(6)}), "difference from serial 6 where 7 is needed");
  EXPECT_EQ(error({soa(7), soa(8), soa(7)}), "difference from serial 7 where 8 is needed");
  EXPECT_EQ(error({soa(7), soa(7)}), "difference to serial 7, which is not ahead");
}

TEST(DifferenceSequences, StayInTheZone) {
  DifferenceSequences sequences(name("@"), {});
  EXPECT_EQ(feed(sequences, 7, 9, {soa(7), record("other.test. 300 A 192.0.2.1")}),
            "other.test. is outside the zone");
}

TEST(DifferenceSequences, CountTheOpeningSoaForTheirLimit) {
  for (const std::uint64_t limit : {3, 4}) {
    DifferenceSequences sequences(name("@"), {.records = limit});
    EXPECT_EQ(feed(sequences, 7, 8, {soa(7), record("a 300 A 192.0.2.1"), soa(8), soa(8)}),
              limit == 4 ? "done" : "changesets of more than 3 records");
  }
}

TEST(DifferenceSequences, HaveALimitOfMemory) {
  DifferenceSequences sequences(name("@"),
                                {.bytes = sizeof(zone::Changeset) + sizeof(zone::Record)});
  EXPECT_THAT(feed(sequences, 7, 8, {soa(7)}), ::testing::StartsWith("changesets of more than"));
}

}  // namespace difference_sequences_test
}  // namespace pando::manager
