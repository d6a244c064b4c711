#include <filesystem>
#include <fstream>
#include <vector>

#include "shm/layout.h"
#include "shm/map/chunk_memory.h"
#include "tests/unit/shm/support.h"

namespace pando::shm {
namespace memory_test {

using namespace test;

constexpr std::size_t kBlock = 30'000;

/// Publishes versions that add a block each until one fails; returns the blocks.
std::vector<Ref<>> fill_up(Store& store, Errc& reason) {
  std::vector<Ref<>> blocks;
  for (;;) {
    Transaction transaction = store.begin();
    const auto block = transaction.allocate(kBlock);
    if (!block) {
      reason = block.error().code;
      return blocks;
    }
    std::memset(transaction.writable(*block), 1, kBlock);
    must(store.publish(std::move(transaction), *block, 0));
    blocks.push_back(*block);
  }
}

/// Deletes all blocks but the last, one version each, with the reserve.
bool delete_all(Store& store, const std::vector<Ref<>>& blocks) {
  for (std::size_t i = 0; i + 1 < blocks.size(); ++i) {
    Transaction transaction = store.begin();
    transaction.use_reserve();
    if (!transaction.allocate(2000)) return false;
    transaction.release(blocks[i], kBlock);
    if (!store.publish(std::move(transaction), blocks.back(), 0)) return false;
  }
  return true;
}

TEST(Memory, FullStoreIsAnErrorAndTheOldVersionServes) {
  const Folder folder;
  Store store = must(Store::create(options(folder, 4 * kMiB)));
  Errc reason{};
  const auto blocks = fill_up(store, reason);
  EXPECT_EQ(reason, Errc::kFull);
  EXPECT_GT(blocks.size(), 100U);
  EXPECT_TRUE(filled(store.window(), store.current().root, kBlock, 1));
  EXPECT_LE(store.stats().chunks_in_use, 64U);
  must(store.check());
}

TEST(Memory, ReserveLetsDeletesThroughWhenTheStoreIsFull) {
  const Folder folder;
  Store store = must(Store::create(options(folder, 4 * kMiB)));
  Errc reason{};
  const auto blocks = fill_up(store, reason);
  EXPECT_TRUE(delete_all(store, blocks));
  must(store.check());
  Errc again{};
  EXPECT_GT(fill_up(store, again).size(), 50U);
}

/// Nothing has to be given up for it. Only what there is room for now is to be written.
TEST(Memory, AStoreThatIsTightForWhatWaitsAloneDoesNotStayTight) {
  const Folder folder;
  Store store = must(Store::create(options(folder, 64 * kMiB)));
  SlotTable slots = must(SlotTable::open(folder.slots(), folder.store(), kLayout));
  store.set_slots(&slots);
  std::vector<Ref<>> blocks;
  Transaction taking = store.begin();
  for (int i = 0; i < 200; ++i) blocks.push_back(must(taking.allocate(kChunkBytes)));
  must(store.publish(std::move(taking), {}, 0));
  SlotTable::OwnPin image = slots.pin_own(store.current().number);
  Transaction giving = store.begin();
  for (const Ref<> block : blocks) giving.release(block, kChunkBytes);
  must(store.publish(std::move(giving), {}, 0));
  Transaction filler = store.begin_private();
  while (!store.low_space()) must(filler.allocate(kChunkBytes));
  EXPECT_FALSE(store.low_space_without_pins());
  Transaction update = store.begin();
  const auto chunks = [](std::uint64_t number) { return number * kChunkBytes; };
  EXPECT_TRUE(update.can_afford(chunks(20)));
  EXPECT_FALSE(update.can_afford(chunks(25)));
  while (filler.allocate(kChunkBytes)) continue;
  EXPECT_FALSE(store.low_space_without_pins());
  EXPECT_FALSE(update.can_afford(0)) << "it would be refused soon";
  update.use_reserve(Reserve::kHalf);
  EXPECT_TRUE(update.can_afford(0)) << "as a delete it would not";
  image = {};
  store.reclaim();
  EXPECT_FALSE(store.low_space());
  EXPECT_TRUE(update.can_afford(kReach));
  while (!store.low_space()) must(filler.allocate(kChunkBytes));
  EXPECT_TRUE(store.low_space_without_pins());
  EXPECT_FALSE(update.can_afford(0));
  store.set_slots(nullptr);
}

TEST(Memory, RunsAboveTheLimitAreRefused) {
  const Folder folder;
  Store store = must(Store::create(options(folder, 4 * kMiB)));
  Transaction transaction = store.begin();
  EXPECT_EQ(transaction.allocate(5 * kMiB).error().code, Errc::kFull);
  EXPECT_EQ(transaction.allocate(SIZE_MAX).error().code, Errc::kFull);
  must(transaction.allocate(3 * kMiB));
}

TEST(Memory, FullMachineIsAnErrorAndNeverABusError) {
  const Folder folder;
  const int status = with_small_tmpfs(folder, "size=4m", [&] {
    Store store = must(Store::create(options(folder, 1024 * kMiB)));
    Errc reason{};
    const auto blocks = fill_up(store, reason);
    if (reason != Errc::kFull || blocks.size() < 80) return 1;
    if (!filled(store.window(), store.current().root, kBlock, 1)) return 2;
    if (!store.check()) return 3;
    return delete_all(store, blocks) && store.check() ? 0 : 4;
  });
  if (status == kNoMount) GTEST_SKIP() << "needs a mount namespace (root)";
  EXPECT_EQ(status, 0);
}

/// Deletes leave compaction its part of the reserve there, as in a store that is at its limit.
bool delete_one(Store& store, Ref<> block, Ref<> root) {
  Transaction transaction = store.begin();
  transaction.use_reserve(Reserve::kHalf);
  if (!transaction.allocate(2000)) return false;
  transaction.release(block, kBlock);
  return store.publish(std::move(transaction), root, 0).has_value();
}

TEST(Memory, FullMachineIsAFullStore) {
  const Folder folder;
  const int status = with_small_tmpfs(folder, "size=4m", [&] {
    Store store = must(Store::create(options(folder, 1024 * kMiB)));
    if (store.stats().limit_bytes > 4 * kMiB || store.stats().size_limit != 1024 * kMiB) return 1;
    Errc reason{};
    const auto blocks = fill_up(store, reason);
    if (reason != Errc::kFull || blocks.size() < 80) return 2;
    if (!store.low_space()) return 3;
    for (std::size_t i = 0; i < 20; ++i)
      if (!delete_one(store, blocks[i], blocks.back())) return 4;
    store.reclaim();
    store.look_at_machine();
    return fill_up(store, reason).size() >= 10 && store.check() ? 0 : 5;
  });
  if (status == kNoMount) GTEST_SKIP() << "needs a mount namespace (root)";
  EXPECT_EQ(status, 0);
}

TEST(Memory, TheLimitFollowsTheRoomOfTheFileSystem) {
  const Folder folder;
  const int status = with_small_tmpfs(folder, "size=8m", [&] {
    Store store = must(Store::create(options(folder, 1024 * kMiB)));
    const std::string other = folder.path() + "/other";
    const std::uint64_t before = store.stats().limit_bytes;
    std::ofstream(other) << std::string(4 * kMiB, 'x');
    store.look_at_machine();
    const std::uint64_t less = store.stats().limit_bytes;
    if (less > before - 4 * kMiB) return 1;
    Errc reason{};
    fill_up(store, reason);
    std::filesystem::remove(other);
    store.look_at_machine();
    if (store.stats().limit_bytes + kChunkBytes < before || store.stats().memory_refused) return 2;
    return fill_up(store, reason).size() > 80 ? 0 : 3;
  });
  if (status == kNoMount) GTEST_SKIP() << "needs a mount namespace (root)";
  EXPECT_EQ(status, 0);
}

TEST(Memory, FullMachineRefusesSideEntries) {
  const Folder folder;
  const int status = with_small_tmpfs(folder, "size=1m", [&] {
    Store store = must(Store::create(options(folder, 1024 * kMiB)));
    std::uint32_t index = 0;
    while (store.side(index) != nullptr) index += kSidePerGranule;
    return index > 0 && index < 64 * kSidePerGranule ? 0 : 1;
  });
  if (status == kNoMount) GTEST_SKIP() << "needs a mount namespace (root)";
  EXPECT_EQ(status, 0);
}

TEST(Memory, FullMachineRefusesANewStore) {
  const Folder folder;
  const int status = with_small_tmpfs(folder, "size=4k,nr_inodes=10", [&] {
    const auto store = Store::create(options(folder));
    return !store && store.error().code == Errc::kFull ? 0 : 1;
  });
  if (status == kNoMount) GTEST_SKIP() << "needs a mount namespace (root)";
  EXPECT_EQ(status, 0);
}

std::uint64_t memory_of(const Folder& folder) {
  struct stat status{};
  ::stat(folder.store().c_str(), &status);
  return static_cast<std::uint64_t>(status.st_blocks) * 512;
}

TEST(Memory, SmallStoreIsSmall) {
  const Folder folder;
  Store store = must(Store::create(options(folder, kReach)));
  Transaction transaction = store.begin();
  const Ref<> block = put(transaction, 10'000, 1);
  must(store.publish(std::move(transaction), block, 0));
  EXPECT_LE(memory_of(folder), 4 * kChunkBytes);
}

constexpr std::uint64_t kTrimmed = ChunkMemory::kMaxTrimmed * kChunkBytes;  // at a time

TEST(Memory, EmptiedChunksGoBackToTheMachine) {
  const Folder folder;
  Store store = must(Store::create(options(folder, 64 * kMiB)));
  Transaction transaction = store.begin();
  std::vector<Ref<>> blocks;
  for (int i = 0; i < 1000; ++i) blocks.push_back(put(transaction, kBlock, 1));
  must(store.publish(std::move(transaction), blocks[0], 0));
  const std::uint64_t full = memory_of(folder);
  EXPECT_GE(full, 1000 * kBlock);
  Transaction second = store.begin();
  for (const Ref<> block : blocks) second.release(block, kBlock);
  must(store.publish(std::move(second), Ref<>{}, 0));
  store.reclaim();
  for (std::uint64_t part = 0; part < full; part += kTrimmed) store.look_at_machine();
  EXPECT_LE(memory_of(folder), full / 10);
  must(store.check());
  Errc reason{};
  EXPECT_GT(fill_up(store, reason).size(), 1500U);  // and they are backed again when needed
}

TEST(Memory, ADroppedTransactionGivesItsMemoryBackInParts) {
  const Folder folder;
  Store store = must(Store::create(options(folder, 1024 * kMiB)));
  {
    Transaction transaction = store.begin_private();
    for (int i = 0; i < 3200; ++i) must(transaction.allocate(kChunkBytes));
  }
  const std::uint64_t before = memory_of(folder);
  ASSERT_GT(before, 200 * kMiB);
  store.look_at_machine();
  EXPECT_GE(memory_of(folder) + kTrimmed, before) << "no long pause";
  for (std::uint64_t part = 0; part < before; part += kTrimmed) store.look_at_machine();
  EXPECT_LT(memory_of(folder), 8 * kMiB);
  must(store.check());
}

TEST(Memory, FullRegionsBecomeHugePagesAndKeepTheirContents) {
  const Folder folder;
  Store store = must(Store::create(options(folder, 64 * kMiB)));
  Transaction transaction = store.begin();
  std::vector<Ref<>> blocks;
  for (int i = 0; i < 300; ++i) blocks.push_back(put(transaction, kBlock, i));
  must(store.publish(std::move(transaction), blocks[0], 0));
  const std::size_t done = store.collapse(100);
  for (std::size_t i = 0; i < blocks.size(); ++i)
    ASSERT_TRUE(filled(store.window(), blocks[i], kBlock, static_cast<int>(i)));
  must(store.check());
  EXPECT_EQ(store.collapse(100), 0U) << "regions are picked once";
  if (done == 0) GTEST_SKIP() << "this kernel has no MADV_COLLAPSE for shared memory";
  EXPECT_GE(done, 4U);
}

TEST(Memory, WhatAPrivateTransactionFillsHasHugePagesBeforeItIsPublished) {
  const Folder folder;
  Store store = must(Store::create(options(folder, 64 * kMiB)));
  Transaction transaction = store.begin_private();
  std::vector<Ref<>> blocks;
  for (int i = 0; i < 300; ++i) blocks.push_back(put(transaction, kBlock, i));
  const std::uint64_t done = store.stats().huge_pages;
  for (std::size_t i = 0; i < blocks.size(); ++i)
    ASSERT_TRUE(filled(store.window(), blocks[i], kBlock, static_cast<int>(i)));
  must(store.publish(std::move(transaction), blocks[0], 0));
  must(store.check());
  if (done == 0) GTEST_SKIP() << "this kernel has no MADV_COLLAPSE for shared memory";
  EXPECT_GE(done, 3U);
  EXPECT_LE(store.collapse(100), 2U)
      << "the first region has the store's own, the last is not full";
}

TEST(Memory, AttachingPunchesWhatTheLastWriterLeft) {
  const Folder folder;
  {
    Store store = must(Store::create(options(folder, 64 * kMiB)));
    Transaction lost = store.begin_private();
    for (int i = 0; i < 1000; ++i) put(lost, kBlock, 1);
    EXPECT_GE(memory_of(folder), 1000 * kBlock);
  }
  Store store = must(Store::attach(options(folder, 64 * kMiB)));
  store.set_slots(nullptr);
  store.reclaim();
  EXPECT_LE(memory_of(folder), kMiB);
  must(store.check());
}

}  // namespace memory_test
}  // namespace pando::shm
