#include "shm/map/waiting_chunks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace pando::shm {
namespace waiting_chunks_test {

using Chunks = std::vector<std::uint32_t>;

Holds holds(std::vector<std::uint64_t> exact, std::uint64_t oldest_batch = UINT64_MAX) {
  return Holds{oldest_batch, std::move(exact)};
}

TEST(WaitingChunks, AreFreeWithoutReaders) {
  WaitingChunks waiting;
  waiting.add({1, 0, 5});
  waiting.add({2, 4, 6});
  EXPECT_TRUE(waiting.has_unsorted());
  EXPECT_EQ(waiting.release(holds({})), (Chunks{1, 2}));
  EXPECT_FALSE(waiting.has_unsorted());
  EXPECT_EQ(waiting.release(holds({})), Chunks{});
}

TEST(WaitingChunks, WaitForTheOldestBatch) {
  WaitingChunks waiting;
  waiting.add({1, 0, 5});
  waiting.add({2, 0, 6});
  waiting.add({3, 0, 7});
  EXPECT_EQ(waiting.release(holds({}, 6)), (Chunks{1, 2})) << "freed at its version or before";
  EXPECT_TRUE(waiting.has_unsorted());
  EXPECT_EQ(waiting.release(holds({}, 7)), Chunks{3});
}

TEST(WaitingChunks, ExactVersionHoldsOnlyTheChunksThatItRefersTo) {
  WaitingChunks waiting;
  waiting.add({1, 3, 5});  // of 3 and 4
  waiting.add({2, 6, 7});  // of 6
  waiting.add({3, 0, 6});  // of all up to 5
  waiting.add({4, 5, 9});  // of 5 to 8
  EXPECT_EQ(waiting.release(holds({5})), (Chunks{1, 2}));
  EXPECT_EQ(waiting.held_by(5), 2U);
  EXPECT_EQ(waiting.held(), 2U);
  EXPECT_FALSE(waiting.has_unsorted()) << "the version is known";
  EXPECT_EQ(waiting.release(holds({5})), Chunks{});
  EXPECT_EQ(waiting.release(holds({})), (Chunks{3, 4}));
  EXPECT_EQ(waiting.held(), 0U);
}

TEST(WaitingChunks, PassToTheNextVersionThatHoldsThem) {
  WaitingChunks waiting;
  waiting.add({1, 2, 9});
  EXPECT_EQ(waiting.release(holds({3, 6})), Chunks{});
  EXPECT_EQ(waiting.held_by(3), 1U);
  EXPECT_EQ(waiting.release(holds({6})), Chunks{});
  EXPECT_EQ(waiting.held_by(3), 0U);
  EXPECT_EQ(waiting.held_by(6), 1U);
  EXPECT_EQ(waiting.release(holds({9})), Chunks{1}) << "9 does not refer to it";
}

/// Against a model that looks at every chunk and every held version.
TEST(WaitingChunks, FreeNeitherMoreNorLessThanReadersAllow) {
  std::mt19937 random(1);
  WaitingChunks waiting;
  std::vector<WaitingChunks::Chunk> model;
  std::vector<std::uint64_t> held;
  std::uint64_t version = 1;
  for (std::uint32_t number = 0; number < 20'000; ++number) {
    version += random() % 2;
    const WaitingChunks::Chunk chunk{
        number, version - random() % std::min<std::uint64_t>(version, 40), version};
    waiting.add(chunk);
    model.push_back(chunk);
    if (random() % 4 == 0) held.push_back(version - random() % 2);
    if (random() % 4 == 0 && !held.empty())
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(random() % held.size()));
    std::sort(held.begin(), held.end());
    Chunks expected;
    std::erase_if(model, [&](const WaitingChunks::Chunk& one) {
      const bool kept = std::any_of(held.begin(), held.end(), [&](std::uint64_t reader) {
        return one.born <= reader && reader < one.freed_at;
      });
      if (!kept) expected.push_back(one.number);
      return !kept;
    });
    Chunks freed = waiting.release(holds(held));
    std::sort(freed.begin(), freed.end());
    ASSERT_EQ(freed, expected) << version;
    ASSERT_EQ(waiting.held(), model.size());
  }
}

}  // namespace waiting_chunks_test
}  // namespace pando::shm
