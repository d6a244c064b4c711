#include "manager/checkpoint/store_replay.h"

#include <gmock/gmock.h>

#include "manager/journal/record/journal_payload.h"
#include "tests/unit/manager/checkpoint/parts_steps.h"

namespace pando::manager {
namespace store_replay_test {

using ::testing::IsEmpty;
using testing::name;
using testing::Parts;
using ::testing::SizeIs;
using testing::soa_line;

class StoreReplayTest : public ::testing::Test {
 protected:
  StoreReplay replay(RecordReplay::Data data) {
    return {parts_.zone.store(), data, zone::DataLimits::none()};
  }
  /// An update of the zone, which has serial 10, that adds `owner`.
  JournalRecord update(std::uint32_t from, const std::string& owner) {
    const auto changes =
        parts_.changes({soa_line(from)}, {soa_line(from + 1), owner + " 60 A 192.0.2.1"});
    return {1, 1, RecordKind::kChangeset, name("@"), {from}, {from + 1}, zone::encode(changes)};
  }
  /// An update that was possible for other data only: a CNAME beside the zone's servers.
  JournalRecord unfitting() {
    const auto changes = parts_.changes({soa_line(10)}, {soa_line(11), "@ 60 CNAME www"});
    return {1, 1, RecordKind::kChangeset, name("@"), {10}, {11}, zone::encode(changes)};
  }
  ReplayStep take(StoreReplay& replay, const JournalRecord& record, bool may_lack = false) {
    auto step = replay.take(record, may_lack);
    EXPECT_TRUE(step.has_value());
    return step.value_or(ReplayStep::kNothing);
  }
  shm::VersionInfo current() { return parts_.zone.store().current(); }

  Parts parts_;
};

TEST_F(StoreReplayTest, NothingIsThereBeforeItIsPublished) {
  auto replay = this->replay(RecordReplay::Data::kLiveStore);
  const std::uint64_t version = current().number;
  EXPECT_EQ(take(replay, update(10, "a")), ReplayStep::kApply);
  EXPECT_EQ(take(replay, update(11, "b")), ReplayStep::kApply);
  EXPECT_EQ(replay.zone(name("@")).serial(), dns::Serial{12});
  EXPECT_EQ(current().number, version);
  ASSERT_TRUE(replay.publish(2).has_value());
  EXPECT_EQ(current().number, version + 1);
  EXPECT_EQ(current().journal_position, 2U);
  EXPECT_THAT(parts_.zone.at("b"), SizeIs(1));
}

TEST_F(StoreReplayTest, ADroppedVersionLeavesTheZoneAsItWas) {
  auto replay = this->replay(RecordReplay::Data::kImage);
  EXPECT_EQ(take(replay, update(10, "a")), ReplayStep::kApply);
  replay.drop();
  EXPECT_EQ(replay.zone(name("@")).serial(), dns::Serial{10});
  ASSERT_TRUE(replay.publish(1).has_value());
  EXPECT_THAT(parts_.zone.at("a"), IsEmpty());
}

TEST_F(StoreReplayTest, BehindAGapTheZoneTakesTheRecordsSerialAndItsOwnSoa) {
  auto replay = this->replay(RecordReplay::Data::kImage);
  EXPECT_EQ(take(replay, update(14, "a"), true), ReplayStep::kApplyBehindGap);
  ASSERT_TRUE(replay.publish(5).has_value());
  EXPECT_EQ(parts_.zone.zone().serial(), dns::Serial{15});
  EXPECT_THAT(parts_.zone.at("a"), SizeIs(1));
}

TEST_F(StoreReplayTest, RecordsThatDoNotFitTheDataUnloadAZoneOfAnImage) {
  auto live = this->replay(RecordReplay::Data::kLiveStore);
  EXPECT_FALSE(live.take(unfitting()).has_value());
  live.drop();
  auto image = this->replay(RecordReplay::Data::kImage);
  EXPECT_EQ(take(image, unfitting(), true), ReplayStep::kSkip);
  EXPECT_TRUE(image.zone(name("@")).loaded());
  EXPECT_EQ(take(image, unfitting()), ReplayStep::kReload);
  EXPECT_TRUE(image.zone(name("@")));
  EXPECT_FALSE(image.zone(name("@")).loaded());
}

TEST_F(StoreReplayTest, AZoneThatLeftGoesFromALiveStoreAndStaysWithoutDataInAnImage) {
  const JournalRecord gone{1, 1, RecordKind::kGone, name("@"), {10}, {10}, {}};
  auto image = this->replay(RecordReplay::Data::kImage);
  EXPECT_EQ(take(image, gone), ReplayStep::kForget);
  EXPECT_TRUE(image.zone(name("@")));
  EXPECT_FALSE(image.zone(name("@")).loaded());
  image.drop();
  auto live = this->replay(RecordReplay::Data::kLiveStore);
  EXPECT_EQ(take(live, gone), ReplayStep::kRemove);
  EXPECT_FALSE(live.zone(name("@")));
  EXPECT_EQ(take(live, gone), ReplayStep::kNothing);
}

}  // namespace store_replay_test
}  // namespace pando::manager
