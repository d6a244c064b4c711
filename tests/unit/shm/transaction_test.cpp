#include <set>
#include <thread>
#include <vector>

#include "shm/layout.h"
#include "tests/unit/shm/support.h"

namespace pando::shm {
namespace transaction_test {

using namespace test;

class Transactions : public ::testing::Test {
 protected:
  void publish(Transaction&& transaction, Ref<> root = {}) {
    must(store_.publish(std::move(transaction), root, 0));
    must(store_.check());
  }

  Folder folder_;
  Store store_ = must(Store::create(options(folder_, 64 * kMiB)));
};

TEST_F(Transactions, BlocksAreAlignedAndDoNotOverlap) {
  Transaction transaction = store_.begin();
  std::set<std::uint64_t> starts;
  std::uint64_t total = 0;
  for (std::size_t bytes = 0; bytes < 3000; bytes += 7) {
    const Ref<> block = must(transaction.allocate(bytes));
    EXPECT_EQ(block.offset() % kUnit, 0U);
    const std::size_t size = block_bytes(std::max<std::size_t>(bytes, 1));
    const auto next = starts.lower_bound(block.offset());
    EXPECT_TRUE(next == starts.end() || block.offset() + size <= *next);
    starts.insert(block.offset());
    total += size;
  }
  EXPECT_EQ(transaction.allocated_bytes(), total);
}

TEST_F(Transactions, FreshMeansMadeInThisTransaction) {
  Transaction transaction = store_.begin();
  const Ref<> small = put(transaction, 100, 1);
  const Ref<> large = put(transaction, 200'000, 1);
  std::vector<Ref<>> many;
  for (int i = 0; i < 500; ++i) many.push_back(put(transaction, 5000, 1));
  EXPECT_TRUE(transaction.is_fresh(small));
  EXPECT_TRUE(transaction.is_fresh(large));
  for (const Ref<> block : many) EXPECT_TRUE(transaction.is_fresh(block));
  publish(std::move(transaction), small);

  Transaction next = store_.begin();
  const Ref<> beside = put(next, 100, 1);
  EXPECT_TRUE(next.is_fresh(beside));
  EXPECT_FALSE(next.is_fresh(small));
  EXPECT_FALSE(next.is_fresh(large));
  for (const Ref<> block : many) EXPECT_FALSE(next.is_fresh(block));
  EXPECT_FALSE(next.is_fresh(Ref<>{}));
  EXPECT_FALSE(next.is_fresh(Ref<>{UINT32_MAX}));
}

TEST_F(Transactions, ReleasingAFreshBlockBalances) {
  const std::uint64_t before = store_.stats().live_bytes;
  Transaction transaction = store_.begin();
  for (int i = 0; i < 100; ++i) transaction.release(put(transaction, 5000, 1), 5000);
  publish(std::move(transaction));
  EXPECT_LE(store_.stats().live_bytes, before + 200);  // a longer list in the root block
  store_.reclaim();
  EXPECT_LE(store_.stats().chunks_in_use, 2U);
}

TEST_F(Transactions, LiveOctetsAreTheBlocksOfTheVersion) {
  Transaction transaction = store_.begin();
  const Ref<> small = put(transaction, 1001, 1);
  const Ref<> large = put(transaction, 70'001, 1);
  publish(std::move(transaction), small);
  const std::uint64_t with_both = store_.stats().live_bytes;
  Transaction second = store_.begin();
  second.release(large, 70'001);
  publish(std::move(second), small);
  // The root blocks differ by at most a few list entries.
  EXPECT_NEAR(static_cast<double>(with_both - store_.stats().live_bytes), 70'008.0, 64.0);
}

TEST_F(Transactions, DoubleReleaseIsRefusedBeforeAnythingIsPublished) {
  Transaction transaction = store_.begin();
  const Ref<> block = put(transaction, 60'000, 1);
  put(transaction, 60'000, 1);
  publish(std::move(transaction), block);
  const std::uint64_t version = store_.current().number;
  Transaction twice = store_.begin();
  twice.release(block, 60'000);
  twice.release(block, 60'000);
  EXPECT_EQ(store_.publish(std::move(twice), Ref<>{}, 0).error().code, Errc::kCorrupt);
  EXPECT_EQ(store_.current().number, version);
  EXPECT_EQ(store_.publish(std::move(twice), Ref<>{}, 0).error().code, Errc::kCorrupt);
}

TEST_F(Transactions, ReleaseOfNoBlockIsRefused) {
  for (const Ref<> wrong : {Ref<>{}, Ref<>{1}, Ref<>{UINT32_MAX}}) {
    Transaction transaction = store_.begin();
    transaction.release(wrong, 100);
    EXPECT_EQ(store_.publish(std::move(transaction), Ref<>{}, 0).error().code, Errc::kCorrupt);
  }
  must(store_.check());
}

TEST_F(Transactions, SecondOpenTransactionWorksInChunksOfItsOwn) {
  Transaction first = store_.begin();
  const Ref<> a = put(first, 100, 1);
  Transaction second = store_.begin();
  const Ref<> b = put(second, 100, 2);
  EXPECT_NE(chunk_at(a.offset()), chunk_at(b.offset()));
  publish(std::move(second), b);
  publish(std::move(first), a);
  EXPECT_TRUE(filled(store_.window(), a, 100, 1));
  EXPECT_TRUE(filled(store_.window(), b, 100, 2));
}

TEST_F(Transactions, AbsorbedBlocksBecomePartOfTheVersion) {
  Transaction transaction = store_.begin();
  const Ref<> first = put(transaction, 100, 1);
  Transaction zone = store_.begin_private();
  const Ref<> second = put(zone, 200'000, 2);
  const Ref<> third = put(zone, 300, 3);
  transaction.absorb(std::move(zone));
  for (const Ref<> block : {first, second, third}) EXPECT_TRUE(transaction.is_fresh(block));
  publish(std::move(transaction), first);
  EXPECT_TRUE(filled(store_.window(), first, 100, 1));
  EXPECT_TRUE(filled(store_.window(), second, 200'000, 2));
  EXPECT_TRUE(filled(store_.window(), third, 300, 3));
}

TEST_F(Transactions, ManySmallPrivateTransactionsShareChunks) {
  for (int i = 0; i < 500; ++i) {
    Transaction zone = store_.begin_private();
    put(zone, 400, i);
    Transaction transaction = store_.begin();
    transaction.absorb(std::move(zone));
    publish(std::move(transaction));
  }
  EXPECT_LE(store_.stats().chunks_in_use, 8U);
}

TEST_F(Transactions, DroppedPrivateTransactionLeavesSharedChunksAsTheyWere) {
  Transaction zone = store_.begin_private();
  const Ref<> kept = put(zone, 400, 1);
  publish(std::move(zone), kept);
  const auto in_use = store_.stats().chunks_in_use;
  for (int i = 0; i < 10; ++i) {
    Transaction dropped = store_.begin_private();
    const Ref<> block = put(dropped, 400, 9);
    EXPECT_EQ(chunk_at(block.offset()), chunk_at(kept.offset()));
    EXPECT_FALSE(dropped.is_fresh(kept));
  }
  EXPECT_EQ(store_.stats().chunks_in_use, in_use);
  EXPECT_TRUE(filled(store_.window(), kept, 400, 1));
  must(store_.check());
}

TEST_F(Transactions, ChunkEmptiedWhileLentIsReusedOnceItComesBack) {
  Transaction zone = store_.begin_private();
  const Ref<> block = put(zone, 400, 1);
  publish(std::move(zone), block);
  {
    Transaction borrower = store_.begin_private();
    const Ref<> beside = put(borrower, 400, 1);
    EXPECT_EQ(chunk_at(block.offset()), chunk_at(beside.offset()));
    Transaction remover = store_.begin();
    remover.release(block, 400);
    publish(std::move(remover));
  }
  must(store_.check());
  EXPECT_EQ(store_.reclaim(), 1U);
  must(store_.check());
}

TEST_F(Transactions, PoolThreadsBuildWhileTheCommitThreadPublishes) {
  std::vector<std::thread> threads;
  std::vector<std::vector<Transaction>> built(4);
  for (std::size_t t = 0; t < built.size(); ++t)
    threads.emplace_back([this, &mine = built[t], t] {
      for (int i = 0; i < 20; ++i) {
        mine.push_back(store_.begin_private());
        for (int j = 0; j < 20; ++j) put(mine.back(), 3000, static_cast<int>(t));
        if (i % 3 == 0) mine.pop_back();
      }
    });
  Ref<> old;
  for (int i = 0; i < 300; ++i) {
    Transaction transaction = store_.begin();
    if (old) transaction.release(old, 9000);
    old = put(transaction, 9000, i);
    must(store_.publish(std::move(transaction), old, 0));
  }
  for (std::thread& thread : threads) thread.join();
  Transaction all = store_.begin();
  for (auto& mine : built)
    for (Transaction& one : mine) all.absorb(std::move(one));
  publish(std::move(all), old);
  EXPECT_TRUE(filled(store_.window(), old, 9000, 299));
}

TEST_F(Transactions, VictimsAreThinChunksAndVanishWhenEmptied) {
  Transaction transaction = store_.begin();
  std::vector<Ref<>> blocks;
  for (int i = 0; i < 640; ++i) blocks.push_back(put(transaction, 4096, i));
  const Ref<> run = put(transaction, 66'000, 1);
  publish(std::move(transaction), blocks[0]);
  Transaction thin = store_.begin();
  std::vector<Ref<>> left;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (i % 4 == 0)
      left.push_back(blocks[i]);
    else
      thin.release(blocks[i], 4096);
  }
  publish(std::move(thin), blocks[0]);
  EXPECT_GE(store_.choose_victims(50, 1000), 35U);
  Transaction mover = store_.begin();
  mover.use_reserve();
  EXPECT_FALSE(mover.in_victim(run));
  Ref<> moved_root;
  for (const Ref<> block : left) {
    if (!mover.in_victim(block)) continue;
    const Ref<> copy = must(mover.allocate(4096));
    std::memcpy(mover.writable(copy), mover.window().at(block, 4096), 4096);
    mover.release(block, 4096);
    if (block == blocks[0]) moved_root = copy;
  }
  ASSERT_TRUE(moved_root);
  publish(std::move(mover), moved_root);
  EXPECT_TRUE(filled(store_.window(), moved_root, 4096, 0));
  EXPECT_GE(store_.reclaim(), 35U);
  EXPECT_EQ(store_.choose_victims(50, 1000), 0U);
  EXPECT_LE(store_.stats().chunks_in_use, 16U);
}

TEST_F(Transactions, ForgottenVictimsAreNone) {
  Transaction transaction = store_.begin();
  const Ref<> block = put(transaction, 20'000, 1);
  put(transaction, 60'000, 1);
  publish(std::move(transaction), block);
  EXPECT_GE(store_.choose_victims(50, 10), 1U);
  EXPECT_TRUE(store_.begin().in_victim(block));
  store_.forget_victims();
  EXPECT_FALSE(store_.begin().in_victim(block));
}

TEST_F(Transactions, VersionWithThousandsOfChunksIsPublishedWhole) {
  Folder folder;
  Store large = must(Store::create(options(folder, 2048 * kMiB)));
  Transaction transaction = large.begin();
  Ref<> last;
  // A block per chunk makes the list of counts longer than one chunk.
  for (int i = 0; i < 20'000; ++i) last = must(transaction.allocate(kChunkBytes));
  must(large.publish(std::move(transaction), last, 0));
  must(large.check());
  Transaction small = large.begin();
  put(small, 100, 1);
  must(large.publish(std::move(small), last, 0));
  must(large.check());
  EXPECT_GE(large.reclaim(), 3U);  // the long list's own chunks
}

}  // namespace transaction_test
}  // namespace pando::shm
