// Which chunks compaction is told to empty, and who may take the last ones.

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "shm/map/reserve.h"
#include "tests/unit/shm/support.h"

namespace pando::shm {
namespace victims_test {

using namespace test;

constexpr std::size_t kBlock = 4096;
constexpr int kBlocksPerChunk = static_cast<int>(kChunkBytes / kBlock);
constexpr std::uint64_t kLimit = 64;  // chunks

class Victims : public ::testing::Test {
 protected:
  /// Chunks with one to fifteen blocks left in them, in no order.
  void make_thin(int chunks) {
    Transaction transaction = store_->begin_private();
    std::vector<Ref<>> gone;
    for (int chunk = 0; chunk < chunks; ++chunk) {
      const int kept = 1 + chunk * 7 % 15;
      for (int i = 0; i < kBlocksPerChunk; ++i) {
        const Ref<> block = put(transaction, kBlock, 1);
        if (i == 0) first_.push_back(block);
        if (i >= kept) gone.push_back(block);
      }
      kept_.push_back(kept);
    }
    must(store_->publish(std::move(transaction), first_[0], 0));
    Transaction thin = store_->begin();
    for (const Ref<> block : gone) thin.release(block, kBlock);
    must(store_->publish(std::move(thin), first_[0], 0));
  }
  [[nodiscard]] std::uint64_t left() const { return kLimit - store_->stats().chunks_in_use; }
  /// Takes chunks until so many are left.
  void take_until(Transaction& transaction, std::uint64_t rest) {
    while (left() > rest) must(transaction.allocate(kChunkBytes));
  }
  /// How many blocks the victims have, and that all others have no fewer than any of them.
  std::vector<int> expect_emptiest() {
    std::vector<int> victims;
    std::vector<int> others;
    const Transaction transaction = store_->begin_private();
    for (std::size_t i = 0; i < first_.size(); ++i)
      (transaction.in_victim(first_[i]) ? victims : others).push_back(kept_[i]);
    std::sort(victims.begin(), victims.end());
    std::sort(others.begin(), others.end());
    if (!victims.empty() && !others.empty()) {
      EXPECT_LE(victims.back(), others.front());
    }
    return victims;
  }
  static std::uint64_t bytes(const std::vector<int>& blocks) {
    std::uint64_t sum = 0;
    for (const int count : blocks) sum += static_cast<std::uint64_t>(count) * kBlock;
    return sum;
  }

  Folder folder_;
  std::optional<Store> store_{must(Store::create(options(folder_, kLimit* kChunkBytes)))};
  std::vector<Ref<>> first_;  // block of each chunk
  std::vector<int> kept_;     // blocks that are left in it
};

TEST_F(Victims, AreTheEmptiestThatThereIsRoomToCopy) {
  make_thin(45);
  const std::size_t chosen = store_->choose_victims(99, 1000);
  const std::vector<int> victims = expect_emptiest();
  EXPECT_EQ(victims.size(), chosen);
  EXPECT_GT(chosen, 10U);
  EXPECT_LT(chosen, 45U);
  const std::uint64_t room = left() * kChunkBytes;
  EXPECT_LE(bytes(victims), room / 2);
  EXPECT_GT(bytes(victims) + kBlocksPerChunk * kBlock, room / 2 - kChunkBytes / 2)
      << "as many as that";
}

TEST_F(Victims, AreNoMoreThanWasAskedFor) {
  make_thin(45);
  EXPECT_EQ(store_->choose_victims(99, 5), 5U);
  EXPECT_EQ(expect_emptiest().size(), 5U);
}

/// Paths may take more than the half of the room that is theirs.
TEST_F(Victims, AreNarrowedDownWhenTheRoomForThemGoes) {
  make_thin(40);
  const std::size_t chosen = store_->choose_victims(99, 1000);
  EXPECT_TRUE(store_->narrow_victims());
  EXPECT_EQ(expect_emptiest().size(), chosen) << "all of the room is there";
  Transaction others = store_->begin_private();
  others.use_reserve();
  take_until(others, left() / 3);
  EXPECT_TRUE(store_->narrow_victims());
  const std::vector<int> fewer = expect_emptiest();
  EXPECT_LT(fewer.size(), chosen);
  EXPECT_GT(fewer.size(), 0U);
  EXPECT_LE(bytes(fewer), left() * kChunkBytes / 2);
  take_until(others, 0);
  EXPECT_FALSE(store_->narrow_victims());
  EXPECT_TRUE(expect_emptiest().empty());
}

TEST_F(Victims, CopiesOfThemDoNotTakeTheLastChunk) {
  Transaction transaction = store_->begin_private();
  transaction.use_reserve(Reserve::kAllButLast);
  while (transaction.allocate(kChunkBytes)) {
  }
  EXPECT_EQ(left(), kLastChunks);
  transaction.use_reserve(Reserve::kAll);
  EXPECT_TRUE(transaction.allocate(kChunkBytes).has_value());
  EXPECT_EQ(left(), 0U);
}

TEST_F(Victims, EachTakesOfTheReserveWhatIsIts) {
  Transaction transaction = store_->begin_private();
  while (transaction.allocate(kChunkBytes)) {
  }
  EXPECT_EQ(left(), reserve_chunks(kLimit));
  EXPECT_TRUE(store_->leaves_reserve(Reserve::kKept));
  transaction.use_reserve(Reserve::kHalf);
  must(transaction.allocate(kChunkBytes));
  EXPECT_FALSE(store_->leaves_reserve(Reserve::kKept));
  while (transaction.allocate(kChunkBytes)) {
  }
  EXPECT_EQ(left(), compaction_chunks(kLimit));
  EXPECT_TRUE(store_->leaves_reserve(Reserve::kHalf));
  transaction.use_reserve();
  must(transaction.allocate(kChunkBytes));
  EXPECT_FALSE(store_->leaves_reserve(Reserve::kHalf));
  EXPECT_TRUE(store_->leaves_reserve(Reserve::kAllButLast));
}

/// A store whose limit was lowered below what it has.
class LoweredLimit : public Victims {
 protected:
  static constexpr std::uint64_t kLowered = 32;
  static constexpr std::uint64_t kBeyond = 16;

  LoweredLimit() { make_thin(45); }
  void lower() {
    store_.reset();
    store_.emplace(must(Store::attach(options(folder_, kLowered * kChunkBytes))));
    store_->set_slots(nullptr);
    store_->reclaim();
    in_use_ = store_->stats().chunks_in_use;
  }
  std::uint64_t in_use_ = 0;
};

TEST_F(LoweredLimit, LetsDeletesAndCompactionGoOnAndNothingElse) {
  lower();
  ASSERT_GT(in_use_, kLowered);
  EXPECT_FALSE(store_->leaves_reserve(Reserve::kKept));
  EXPECT_TRUE(store_->leaves_reserve(Reserve::kHalf));
  {
    Transaction adds = store_->begin_private();
    EXPECT_EQ(adds.allocate(kChunkBytes).error().code, Errc::kFull);
    adds.use_reserve(Reserve::kHalf);
    must(adds.allocate(kChunkBytes));
    adds.use_reserve();
    while (adds.allocate(kChunkBytes)) {
    }
    EXPECT_EQ(store_->stats().chunks_in_use, in_use_ + kBeyond);
  }
  EXPECT_GT(store_->choose_victims(99, 1000), 0U);
  must(store_->check());
}

TEST_F(LoweredLimit, IsNearerTheLessIsInUse) {
  lower();
  const auto most = [&] {
    Transaction all = store_->begin_private();
    all.use_reserve();
    while (all.allocate(kChunkBytes)) {
    }
    return store_->stats().chunks_in_use;
  };
  for (std::size_t chunk = 1; chunk < first_.size(); ++chunk) {
    Transaction transaction = store_->begin();
    transaction.use_reserve(Reserve::kHalf);
    for (int i = 0; i < kept_[chunk]; ++i)
      transaction.release(
          Ref<>{first_[chunk].units + static_cast<std::uint32_t>(i * kBlock / kUnit)}, kBlock);
    must(store_->publish(std::move(transaction), first_[0], 0));
    store_->reclaim();
    const std::uint64_t used = store_->stats().chunks_in_use;
    EXPECT_EQ(most(), std::max(kLowered, used + kBeyond));
    must(store_->check());
  }
  Transaction adds = store_->begin_private();
  EXPECT_TRUE(adds.allocate(kChunkBytes).has_value());
}

/// Each restart of a full store would give it more.
TEST_F(LoweredLimit, IsNoneWhereDeletesHaveTheirRoom) {
  Transaction transaction = store_->begin();
  transaction.use_reserve();
  take_until(transaction, compaction_chunks(kLimit) + 1);
  must(store_->publish(std::move(transaction), first_[0], 0));
  store_.reset();
  store_.emplace(must(Store::attach(options(folder_, kLimit * kChunkBytes))));
  store_->set_slots(nullptr);
  Transaction all = store_->begin_private();
  all.use_reserve();
  while (all.allocate(kChunkBytes)) {
  }
  EXPECT_EQ(left(), 0U);
}

TEST_F(LoweredLimit, IsTheLimitOfAStoreThatHasLess) {
  Transaction transaction = store_->begin();
  for (std::size_t chunk = 20; chunk < first_.size(); ++chunk)
    for (int i = 0; i < kept_[chunk]; ++i)
      transaction.release(
          Ref<>{first_[chunk].units + static_cast<std::uint32_t>(i * kBlock / kUnit)}, kBlock);
  must(store_->publish(std::move(transaction), first_[0], 0));
  lower();
  ASSERT_LT(in_use_, kLowered);
  Transaction all = store_->begin_private();
  all.use_reserve();
  while (all.allocate(kChunkBytes)) {
  }
  EXPECT_EQ(store_->stats().chunks_in_use, kLowered);
}

}  // namespace victims_test
}  // namespace pando::shm
