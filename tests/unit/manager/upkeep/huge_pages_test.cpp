#include "manager/upkeep/huge_pages.h"

#include <gtest/gtest.h>
#include <asio/executor_work_guard.hpp>

#include "tests/unit/worker/zone_store.h"

namespace pando::manager {
namespace huge_pages_test {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

class HugePagesTest : public ::testing::Test {
 protected:
  HugePagesTest() : pages_(io_, pool_, zones_.store(), {8 * kMiB, 2}) {}

  void grow(std::uint64_t bytes) {
    auto& store = zones_.store();
    auto transaction = store.begin();
    for (std::uint64_t got = 0; got < bytes; got += kBlock)
      ASSERT_TRUE(transaction.allocate(kBlock));
    ASSERT_TRUE(store.publish(std::move(transaction), store.current().root, 0));
  }
  /// One tick, and all that comes of it.
  void tick() {
    pages_.check();
    while (pages_.busy()) io_.run_one();
  }

  static constexpr std::uint32_t kBlock = 32 << 10;
  pando::testing::ZoneStore zones_{std::vector<pando::testing::TestZone>{}};
  asio::io_context io_;
  asio::executor_work_guard<asio::io_context::executor_type> guard_ = asio::make_work_guard(io_);
  asio::thread_pool pool_{1};
  HugePages pages_;
};

TEST_F(HugePagesTest, ASmallStoreIsLeftAlone) {
  pages_.check();
  EXPECT_FALSE(pages_.busy());
}

TEST_F(HugePagesTest, AStoreThatGrowsWaitsUntilItRests) {
  for (int i = 0; i < 3; ++i) {
    grow(12 * kMiB);
    pages_.check();
    EXPECT_FALSE(pages_.busy()) << "its pages are in use by what makes it grow";
  }
  grow(kMiB);
  pages_.check();
  EXPECT_TRUE(pages_.busy()) << "updates alone do not keep it from its huge pages";
  while (pages_.busy()) io_.run_one();
}

TEST_F(HugePagesTest, FollowTheStoresGrowthInSteps) {
  grow(12 * kMiB);
  tick();
  EXPECT_EQ(pages_.regions(), 0U) << "it has just grown";
  tick();
  if (pages_.regions() == 0) GTEST_SKIP() << "this kernel has no MADV_COLLAPSE for shared memory";
  EXPECT_EQ(pages_.regions(), 2U) << "as many as a step may take";
  for (int i = 0; i < 5; ++i) tick();
  const std::uint64_t first = pages_.regions();
  EXPECT_GE(first, 5U);
  EXPECT_LE(first, 7U);
  grow(16 * kMiB);
  for (int i = 0; i < 10; ++i) tick();
  EXPECT_GE(pages_.regions(), first + 7);
}

TEST_F(HugePagesTest, NothingIsLookedAtWithoutGrowth) {
  grow(12 * kMiB);
  for (int i = 0; i < 8; ++i) tick();
  pages_.check();
  EXPECT_FALSE(pages_.busy());
}

}  // namespace huge_pages_test
}  // namespace pando::manager
