#include "manager/commit/next_version.h"

#include <gtest/gtest.h>

#include "shm/map/reserve.h"
#include "tests/unit/manager/zone_support.h"

namespace pando::manager {
namespace next_version_test {

using testing::name;
using testing::ZoneStore;

class Versions : public ::testing::Test {
 protected:
  Status remove(NextVersion& next) { return next.draft().remove_zone(name("@")); }
  [[nodiscard]] shm::Store& store() { return zone_.store(); }

  ZoneStore zone_{testing::kBasicZone};
};

TEST_F(Versions, FollowTheCurrentOneWithTheirJournalPosition) {
  const shm::VersionInfo before = store().current();
  NextVersion next(store(), NextVersion::Step::kCommit);
  EXPECT_EQ(next.base().number, before.number);
  EXPECT_FALSE(next.is_changed());
  ASSERT_TRUE(remove(next));
  EXPECT_TRUE(next.is_changed());
  EXPECT_EQ(store().current().number, before.number) << "nothing is seen before publish()";
  const auto version = next.publish(77);
  ASSERT_TRUE(version);
  EXPECT_EQ(*version, before.number + 1);
  EXPECT_EQ(store().current().number, *version);
  EXPECT_EQ(store().current().journal_position, 77U);
}

TEST_F(Versions, LeaveTheStoreAsItIsWhenTheyAreDropped) {
  const shm::StoreStats before = store().stats();
  {
    NextVersion next(store(), NextVersion::Step::kRecovery);
    ASSERT_TRUE(remove(next));
  }
  EXPECT_EQ(store().stats().chunks_in_use, before.chunks_in_use);
  EXPECT_TRUE(store().check());
}

TEST_F(Versions, OfRecoveryAloneUseTheWholeReserve) {
  using Step = NextVersion::Step;
  const auto use_of = [this](Step step) {
    return NextVersion(store(), step).transaction().reserve_use();
  };
  EXPECT_EQ(use_of(Step::kRecovery), shm::Reserve::kAll);
  EXPECT_EQ(use_of(Step::kCommit), shm::Reserve::kKept);
  EXPECT_EQ(use_of(Step::kDump), shm::Reserve::kKept);
}

TEST_F(Versions, OfADumpDoNotTakeTheOpenChunk) {
  NextVersion dump(store(), NextVersion::Step::kDump);
  NextVersion commit(store(), NextVersion::Step::kCommit);
  const auto theirs = dump.transaction().allocate(64);
  const auto ours = commit.transaction().allocate(64);
  ASSERT_TRUE(theirs && ours);
  EXPECT_NE(theirs->offset() / shm::kChunkBytes, ours->offset() / shm::kChunkBytes);
}

TEST_F(Versions, WithAnotherPositionAloneHaveTheSameData) {
  const shm::VersionInfo before = store().current();
  ASSERT_TRUE(recover_position(store(), 5));
  EXPECT_EQ(store().current().number, before.number + 1);
  EXPECT_EQ(store().current().root, before.root);
  EXPECT_EQ(store().current().journal_position, 5U);
}

}  // namespace next_version_test
}  // namespace pando::manager
