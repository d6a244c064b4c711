#include "shm/slots.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "shm/epoch.h"
#include "tests/unit/shm/support.h"

namespace pando::shm {
namespace slots_test {

using namespace test;

class Slots : public ::testing::Test {
 protected:
  [[nodiscard]] SlotTable open_table() const {
    return must(SlotTable::open(folder_.slots(), folder_.store(), kLayout));
  }
  [[nodiscard]] Reader attach(const SlotTable& table, std::uint32_t slot) const {
    return must(Reader::attach(must(table.lend(slot)), kLayout, slot));
  }
  [[nodiscard]] Result<Reader> try_attach(const SlotTable& table, std::uint32_t slot) const {
    auto loan = table.lend(slot);
    if (!loan) return pass(loan);
    return Reader::attach(std::move(*loan), kLayout, slot);
  }

  Folder folder_;
  Store store_ = must(Store::create(options(folder_)));
};

TEST_F(Slots, FilesAndDirectoryAreTheManagersAlone) {
  SlotTable table = open_table();
  must(table.add(3));
  struct stat status{};
  ASSERT_EQ(::stat(folder_.slots().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700U);
  ASSERT_EQ(::stat((folder_.slots() + "/3.slot").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
}

TEST_F(Slots, DescriptorsCloseOnExec) {
  SlotTable table = open_table();
  must(table.add(0));
  const SlotLoan loan = must(table.lend(0));
  EXPECT_NE(::fcntl(loan.slot.get(), F_GETFD) & FD_CLOEXEC, 0);
  EXPECT_NE(::fcntl(loan.store.get(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST_F(Slots, SlotLivesAsLongAsItsReader) {
  SlotTable table = open_table();
  must(table.add(0));
  EXPECT_FALSE(table.alive(0));
  {
    const Reader reader = attach(table, 0);
    EXPECT_TRUE(table.alive(0));
    EXPECT_FALSE(table.alive(1));
  }
  EXPECT_FALSE(table.alive(0));
}

TEST_F(Slots, TakenSlotRefusesASecondReader) {
  SlotTable table = open_table();
  must(table.add(0));
  const Reader first = attach(table, 0);
  const auto second = try_attach(table, 0);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Errc::kExists);
}

TEST_F(Slots, AnAttachedProcessMayGetAnotherLoan) {
  SlotTable table = open_table();
  must(table.add(0));
  auto first = std::make_optional(must(table.lend(0)));
  EXPECT_EQ(table.lend(0).error().code, Errc::kExists);
  auto second = std::make_optional(must(table.lend(0, true)));
  first.reset();
  EXPECT_TRUE(table.alive(0));
  second.reset();
  EXPECT_FALSE(table.alive(0));
}

TEST_F(Slots, ALoanIsOfTheStoreWhoeverHasItsNameNow) {
  SlotTable table = open_table();
  must(table.add(0));
  std::filesystem::rename(folder_.store(), folder_.store() + ".moved");
  must(Store::create(options(folder_)));
  const SlotLoan loan = must(table.lend(0));
  struct stat lent{};
  struct stat moved{};
  ASSERT_EQ(::fstat(loan.store.get(), &lent), 0);
  ASSERT_EQ(::stat((folder_.store() + ".moved").c_str(), &moved), 0);
  EXPECT_EQ(lent.st_ino, moved.st_ino);
}

TEST_F(Slots, FileOfAnotherSlotIsRefused) {
  SlotTable table = open_table();
  must(table.add(0));
  const auto reader = Reader::attach(must(table.lend(0)), kLayout, 1);
  ASSERT_FALSE(reader);
  EXPECT_EQ(reader.error().code, Errc::kInvalid);
}

TEST_F(Slots, OldestPinnedSeesPinsAndLeases) {
  SlotTable table = open_table();
  must(table.add(0));
  Reader reader = attach(table, 0);
  EXPECT_EQ(table.oldest_pinned(), UINT64_MAX);
  EXPECT_EQ(reader.pin().version, 1U);
  EXPECT_EQ(table.oldest_pinned(), 1U);
  const std::size_t lease = must(reader.take_lease());
  reader.unpin();
  EXPECT_EQ(table.oldest_pinned(), 1U);
  reader.give_up_lease(lease);
  EXPECT_EQ(table.oldest_pinned(), UINT64_MAX);
}

TEST_F(Slots, PinsOfADeadReaderDoNotCount) {
  SlotTable table = open_table();
  SlotPage* page = must(table.add(0));
  ASSERT_EQ(in_child([&] {
              Reader reader = attach(table, 0);
              (void)reader.pin();
              (void)reader.take_lease();
              ::raise(SIGKILL);
              return 0;
            }),
            -SIGKILL);
  EXPECT_EQ(page->epoch.load(), 1U);
  EXPECT_EQ(table.oldest_pinned(), UINT64_MAX);
  table.clear(0);
  EXPECT_EQ(page->epoch.load(), 0U);
  EXPECT_EQ(page->leases[0].epoch.load(), 0U);
}

TEST_F(Slots, ClearLeavesALivingReaderAlone) {
  SlotTable table = open_table();
  must(table.add(0));
  Reader reader = attach(table, 0);
  (void)reader.pin();
  table.clear(0);
  EXPECT_EQ(table.oldest_pinned(), 1U);
}

TEST_F(Slots, SuccessorStartsWithoutItsPredecessorsPins) {
  SlotTable table = open_table();
  SlotPage* page = must(table.add(0));
  page->epoch.store(1);
  page->leases[5].epoch.store(1);
  const Reader reader = attach(table, 0);
  EXPECT_EQ(table.oldest_pinned(), UINT64_MAX);
}

TEST_F(Slots, NewTableTakesOverLivingSlots) {
  SlotTable table = open_table();
  must(table.add(7));
  Reader reader = attach(table, 7);
  (void)reader.pin();
  table = open_table();
  EXPECT_EQ(table.numbers(), std::vector<std::uint32_t>{7});
  EXPECT_EQ(table.oldest_pinned(), 1U);
}

TEST_F(Slots, AReplacedSlotHoldsNothingWhoeverHasTheOldDescriptors) {
  SlotTable table = open_table();
  must(table.add(0))->epoch = 5;
  const SlotLoan kept = must(table.lend(0));
  EXPECT_EQ(table.oldest_pinned(), 5U);
  EXPECT_FALSE(table.lend(0));
  must(table.replace(0));
  EXPECT_FALSE(table.alive(0)) << "although the lock on the store stays";
  EXPECT_EQ(table.oldest_pinned(), UINT64_MAX);
  EXPECT_EQ(must(table.add(0))->slot, 0U);
  {
    const Reader successor = attach(table, 0);
    EXPECT_TRUE(table.alive(0));
    must(table.add(0))->epoch = 7;
    EXPECT_EQ(table.oldest_pinned(), 7U);
  }
  EXPECT_FALSE(table.alive(0));
  EXPECT_EQ(table.oldest_pinned(), UINT64_MAX);
  table.remove(0);
  EXPECT_EQ(table.oldest_pinned(), UINT64_MAX) << "no unknown reader";
  must(table.add(0));
  EXPECT_FALSE(table.alive(0));
}

TEST_F(Slots, LivingReaderWithoutAPageHoldsEverything) {
  SlotTable table = open_table();
  must(table.add(1));
  const Reader reader = attach(table, 1);
  std::filesystem::remove(folder_.slots() + "/1.slot");
  SlotTable forgetful = open_table();
  must(forgetful.add(0));
  must(forgetful.add(2));
  EXPECT_EQ(forgetful.oldest_pinned(), 0U);
}

TEST_F(Slots, OwnPinsHoldUntilDroppedInAnyThread) {
  SlotTable table = open_table();
  SlotTable::OwnPin first = table.pin_own(4);
  {
    const SlotTable::OwnPin second = table.pin_own(2);
    EXPECT_EQ(table.oldest_pinned(), 2U);
  }
  EXPECT_EQ(table.oldest_pinned(), 4U);
  SlotTable::OwnPin moved = std::move(first);
  EXPECT_EQ(table.oldest_pinned(), 4U);
  moved = SlotTable::OwnPin();
  EXPECT_EQ(table.oldest_pinned(), UINT64_MAX);
}

TEST_F(Slots, RemovedSlotIsGone) {
  SlotTable table = open_table();
  must(table.add(0));
  table.remove(0);
  EXPECT_EQ(table.page(0), nullptr);
  EXPECT_FALSE(table.lend(0));
  EXPECT_FALSE(std::filesystem::exists(folder_.slots() + "/0.slot"));
}

TEST_F(Slots, NumbersAboveTheLimitAreRefused) {
  SlotTable table = open_table();
  EXPECT_EQ(table.add(kMaxSlots).error().code, Errc::kInvalid);
}

TEST_F(Slots, PageOfADeadWorkerWithAnotherLayoutIsMadeNew) {
  {
    SlotTable other = must(SlotTable::open(folder_.slots(), folder_.store(), kLayout + 1));
    must(other.add(0))->epoch.store(1);
  }
  SlotTable table = open_table();
  EXPECT_EQ(table.page(0)->epoch.load(), 0U);
  const Reader reader = attach(table, 0);
}

TEST_F(Slots, DirectoryOfAnotherUserIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to give a directory away";
  std::filesystem::create_directory(folder_.slots());
  ASSERT_EQ(::chown(folder_.slots().c_str(), 61001, 61001), 0);
  const auto table = SlotTable::open(folder_.slots(), folder_.store(), kLayout);
  ASSERT_FALSE(table);
  EXPECT_EQ(table.error().code, Errc::kDenied);
}

}  // namespace slots_test
}  // namespace pando::shm
