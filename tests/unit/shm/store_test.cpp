#include "shm/store.h"

#include "tests/unit/shm/support.h"

namespace pando::shm {
namespace store_test {

using namespace test;

TEST(Store, StartsWithAnEmptyFirstVersion) {
  const Folder folder;
  const Store store = must(Store::create(options(folder)));
  EXPECT_EQ(store.current().number, 1U);
  EXPECT_FALSE(store.current().root);
  must(store.check());
}

TEST(Store, PublishesBlocksAndJournalPosition) {
  const Folder folder;
  Store store = must(Store::create(options(folder)));
  Transaction transaction = store.begin();
  const Ref<> block = put(transaction, 100, 42);
  EXPECT_EQ(must(store.publish(std::move(transaction), block, 77)), 2U);
  EXPECT_EQ(store.current().root, block);
  EXPECT_EQ(store.current().journal_position, 77U);
  EXPECT_TRUE(filled(store.window(), block, 100, 42));
  must(store.check());
}

TEST(Store, ContinuesInTheSameChunkForSmallVersions) {
  const Folder folder;
  Store store = must(Store::create(options(folder)));
  for (int i = 0; i < 100; ++i) {
    Transaction transaction = store.begin();
    const Ref<> old = store.current().root;
    if (old) transaction.release(old, 64);
    const Ref<> block = put(transaction, 64, i);
    must(store.publish(std::move(transaction), block, 0));
  }
  EXPECT_EQ(store.stats().chunks_in_use, 1U);
  must(store.check());
}

TEST(Store, ReusesMemoryWhenNobodyReads) {
  const Folder folder;
  Store store = must(Store::create(options(folder, kMiB)));
  for (int i = 0; i < 100'000; ++i) {
    Transaction transaction = store.begin();
    const Ref<> old = store.current().root;
    if (old) transaction.release(old, 1000);
    const Ref<> block = put(transaction, 1000, i);
    must(store.publish(std::move(transaction), block, 0));
  }
  EXPECT_LE(store.stats().chunks_in_use, 14U);
  must(store.check());
}

TEST(Store, DroppedTransactionLeavesNothing) {
  const Folder folder;
  Store store = must(Store::create(options(folder)));
  const StoreStats before = store.stats();
  {
    Transaction transaction = store.begin();
    for (int i = 0; i < 1000; ++i) put(transaction, 1000, i);
  }
  EXPECT_EQ(store.stats().chunks_in_use, before.chunks_in_use);
  EXPECT_EQ(store.stats().live_bytes, before.live_bytes);
  must(store.check());
}

TEST(Store, AttachFindsTheLastVersion) {
  const Folder folder;
  Ref<> block;
  {
    Store store = must(Store::create(options(folder)));
    Transaction transaction = store.begin();
    block = put(transaction, 3000, 5);
    must(store.publish(std::move(transaction), block, 9));
  }
  Store store = must(Store::attach(options(folder)));
  EXPECT_EQ(store.current().root, block);
  EXPECT_EQ(store.current().journal_position, 9U);
  EXPECT_TRUE(filled(store.window(), block, 3000, 5));
  must(store.check());
}

TEST(Store, BlocksAboveAChunkAreWholeAndComeBack) {
  const Folder folder;
  Store store = must(Store::create(options(folder, 4 * kMiB)));
  for (int i = 0; i < 100; ++i) {
    Transaction transaction = store.begin();
    const Ref<> old = store.current().root;
    if (old) transaction.release(old, 200'000);
    const Ref<> block = put(transaction, 200'000, i);
    must(store.publish(std::move(transaction), block, 0));
    ASSERT_TRUE(filled(store.window(), block, 200'000, i));
  }
  must(store.check());
}

}  // namespace store_test
}  // namespace pando::shm
