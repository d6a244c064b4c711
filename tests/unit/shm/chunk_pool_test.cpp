#include "shm/chunk_pool.h"

#include <gtest/gtest.h>

#include "shm/layout.h"
#include "tests/unit/shm/support.h"

namespace pando::shm {
namespace chunk_pool_test {

/// A pool over a new store file that nobody reads.
class Pool : public ::testing::Test {
 protected:
  static constexpr std::uint32_t kQuota = 64;

  std::uint32_t take() { return test::must(pool_.take(1, Reserve::kAll)).chunk; }
  std::uint64_t free_chunks() {
    StoreStats stats;
    pool_.fill(stats);
    return stats.free_chunks;
  }

  test::Folder folder_;
  LiveFile file_ =
      test::must(LiveFile::create(test::options(folder_, std::uint64_t{kQuota} * kChunkBytes)));
  ChunkPool pool_{file_, kQuota};
};

TEST_F(Pool, LendsEmptyChunksFromTheFirstOn) {
  for (std::uint32_t number = 0; number < 3; ++number) {
    const Span span = test::must(pool_.take(100, Reserve::kKept));
    EXPECT_EQ(span.chunk, number);
    EXPECT_EQ(span.from, 0U);
  }
  EXPECT_TRUE(pool_.check());
}

TEST_F(Pool, AChunkThatIsGivenBackIsTakenAgainFirst) {
  for (int i = 0; i < 3; ++i) take();
  pool_.give_back({1, 0});
  EXPECT_GE(free_chunks(), 1U);
  EXPECT_EQ(take(), 1U);
  EXPECT_EQ(take(), 3U);
  EXPECT_TRUE(pool_.check());
}

TEST_F(Pool, ARunIsOfChunksInARow) {
  EXPECT_EQ(test::must(pool_.take_run(3, Reserve::kKept)), 0U);
  pool_.give_back({1, 0});
  EXPECT_EQ(test::must(pool_.take_run(2, Reserve::kKept)), 3U) << "one free chunk is no run";
  EXPECT_EQ(take(), 1U);
  EXPECT_TRUE(pool_.check());
}

/// Deletes and compaction need room in a full store.
TEST_F(Pool, AdditionsLeaveTheReserve) {
  std::uint32_t taken = 0;
  Result<Span> span = pool_.take(1, Reserve::kKept);
  for (; span; span = pool_.take(1, Reserve::kKept)) ++taken;
  EXPECT_EQ(span.error().code, Errc::kFull);
  EXPECT_EQ(taken, kQuota - reserve_chunks(kQuota));
  EXPECT_TRUE(pool_.space().low_space());
  for (; taken < kQuota; ++taken) take();
  EXPECT_FALSE(pool_.take(1, Reserve::kAll)) << "the quota holds for all";
  pool_.give_back({0, 0});
  EXPECT_EQ(take(), 0U);
}

/// As after a crash: the counts are all that is known of the chunks.
TEST_F(Pool, AdoptsTheChunksOfAStore) {
  for (int i = 0; i < 4; ++i) take();
  file_.counts()[0] = kChunkBytes;
  file_.counts()[2] = 10;
  ChunkPool pool(file_, kQuota);
  pool.adopt({3, 500}, 1);
  EXPECT_EQ(pool.reclaim(), 1U) << "the blocks of one are gone, and nobody reads";
  EXPECT_EQ(test::must(pool.take(1, Reserve::kKept)).chunk, 1U);
  EXPECT_EQ(test::must(pool.take(1, Reserve::kKept)).chunk, 4U);
  EXPECT_EQ(pool.space().in_use(), 5U);
}

}  // namespace chunk_pool_test
}  // namespace pando::shm
