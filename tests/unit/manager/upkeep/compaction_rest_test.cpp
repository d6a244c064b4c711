#include "manager/upkeep/compaction_rest.h"

#include <gtest/gtest.h>

namespace pando::manager {
namespace compaction_rest_test {

constexpr std::uint64_t kLimit = 1600;  // chunks

shm::StoreStats stats(std::uint64_t in_use, std::uint64_t live_chunks) {
  shm::StoreStats result;
  result.chunks_in_use = in_use;
  result.live_bytes = live_chunks * shm::kChunkBytes;
  result.limit_bytes = kLimit * shm::kChunkBytes;
  return result;
}

TEST(StoreGarbage, IsWhatTheChunksInUseHaveBesideLiveBlocks) {
  const StoreGarbage garbage = StoreGarbage::of(stats(1000, 750));
  EXPECT_EQ(garbage.used, 1000U);
  EXPECT_EQ(garbage.chunks, 250U);
  EXPECT_EQ(garbage.percent, 25U);
  EXPECT_EQ(garbage.bytes, 250 * shm::kChunkBytes);
  EXPECT_EQ(garbage.free, 600U);
  EXPECT_EQ(garbage.slack, (600 - shm::reserve_chunks(kLimit)) / 16);
}

TEST(StoreGarbage, IsNotInChunksThatWaitOrAreLent) {
  shm::StoreStats now = stats(1000, 750);
  now.waiting_chunks = 100;
  now.lent_chunks = 100;
  EXPECT_EQ(StoreGarbage::of(now).used, 800U);
  EXPECT_EQ(StoreGarbage::of(now).chunks, 50U);
  now.lent_chunks = 200;
  EXPECT_EQ(StoreGarbage::of(now).bytes, 0U) << "all that is left is alive";
  now.lent_chunks = 2000;
  EXPECT_EQ(StoreGarbage::of(now).used, 0U);
}

TEST(StoreGarbage, InsideTheReserveEachChunkCounts) {
  EXPECT_EQ(StoreGarbage::of(stats(kLimit - shm::reserve_chunks(kLimit), 1)).slack, 1U);
  EXPECT_EQ(StoreGarbage::of(stats(kLimit + 5, 1)).slack, 1U);
  EXPECT_EQ(StoreGarbage::of(stats(kLimit + 5, 1)).free, 0U);
}

TEST(CompactionRest, BeginsAfterManyWalksThatFreedNoChunk) {
  const StoreGarbage now = StoreGarbage::of(stats(1590, 1500));
  CompactionRest rest;
  for (int walk = 1; walk < 32; ++walk) {
    rest.begin_walk(now);
    EXPECT_FALSE(rest.end_walk(now));
    EXPECT_FALSE(rest.goes_on(now)) << walk;
  }
  rest.begin_walk(now);
  EXPECT_FALSE(rest.end_walk(now));
  EXPECT_TRUE(rest.goes_on(now));
}

TEST(CompactionRest, IsPutOffByOneWalkThatFreedAChunk) {
  const StoreGarbage before = StoreGarbage::of(stats(1590, 1500));
  const StoreGarbage after = StoreGarbage::of(stats(1589, 1500));
  CompactionRest rest;
  for (int walk = 1; walk < 64; ++walk) {
    rest.begin_walk(before);
    const bool gains = walk % 31 == 0;
    EXPECT_EQ(rest.end_walk(gains ? after : before), gains);
    EXPECT_FALSE(rest.goes_on(before)) << walk;
  }
}

TEST(CompactionRest, EndsWithAnyChangeThatAWalkCouldGainFrom) {
  const StoreGarbage then = StoreGarbage::of(stats(1200, 1100));
  ASSERT_GT(then.slack, 1U);
  CompactionRest rest;
  EXPECT_FALSE(rest.goes_on(then));
  rest.begin(then);
  EXPECT_TRUE(rest.goes_on(then));
  const auto changed = [&](auto change) {
    StoreGarbage now = then;
    change(now);
    return !rest.goes_on(now);
  };
  EXPECT_TRUE(changed([](StoreGarbage& now) { now.used -= now.slack; }));
  EXPECT_TRUE(changed([](StoreGarbage& now) { now.free += now.slack; }));
  EXPECT_TRUE(changed([](StoreGarbage& now) { now.bytes += now.slack * shm::kChunkBytes; }));
  EXPECT_FALSE(changed([](StoreGarbage& now) {
    now.used -= now.slack - 1;
    now.free += now.slack - 1;
    now.bytes += now.slack * shm::kChunkBytes - 1;
  }));
}

}  // namespace compaction_rest_test
}  // namespace pando::manager
