#include "shm/inspect/observer.h"

#include <gtest/gtest.h>

#include <thread>

#include "shm/inspect/slot_pages.h"
#include "shm/slot_guard.h"
#include "tests/unit/shm/support.h"

namespace pando::shm {
namespace observer_test {

using namespace test;

class ObserverOfAStore : public ::testing::Test {
 protected:
  void publish(int value) {
    Transaction transaction = store_.begin();
    const Ref<> fresh = put(transaction, kBytes, value);
    if (block_) transaction.release(block_, kBytes);
    block_ = fresh;
    must(store_.publish(std::move(transaction), fresh, 0));
    must(store_.check());
  }

  static constexpr std::size_t kBytes = 4096;
  Folder folder_;
  Store store_ = must(Store::create(options(folder_)));
  SlotTable slots_ = must(SlotTable::open(folder_.slots(), folder_.store(), kLayout));
  Ref<> block_;
};

TEST_F(ObserverOfAStore, SeesTheCurrentVersion) {
  const Observer observer = must(Observer::open(folder_.store(), kLayout));
  publish(1);
  const auto look = must(observer.look());
  EXPECT_EQ(look.version, store_.current().number);
  EXPECT_EQ(observer.version(), look.version);
  EXPECT_TRUE(filled(look.window, look.root, kBytes, 1));
  EXPECT_TRUE(observer.holds(look));
  EXPECT_GT(observer.memory_bytes(), kBytes);
}

TEST_F(ObserverOfAStore, KnowsThatAVersionIsOver) {
  const Observer observer = must(Observer::open(folder_.store(), kLayout));
  publish(1);
  const auto look = must(observer.look());
  publish(2);
  EXPECT_FALSE(observer.holds(look));
  EXPECT_TRUE(observer.holds(must(observer.look())));
}

/// The writer reuses memory below an observer, which must never take the new content for the old.
TEST_F(ObserverOfAStore, NeverTakesReusedMemoryForItsVersion) {
  store_.set_slots(&slots_);
  publish(0);
  std::atomic<bool> done{false};
  const pid_t reader = start_child([this] {
    const Observer observer = must(Observer::open(folder_.store(), kLayout));
    int held = 0;
    for (int i = 0; i < 200'000 || held < 100; ++i) {
      const auto look = must(observer.look());
      const std::byte* block = look.window.at(look.root, kBytes);
      bool whole = block != nullptr;
      for (std::size_t at = 0; whole && at < kBytes; ++at) whole = block[at] == block[0];
      if (!observer.holds(look)) continue;
      ++held;
      if (!whole) return 1;
    }
    return 0;
  });
  std::atomic<int> result{-1};
  std::thread waiter([&] {
    result = end_of(reader);
    done = true;
  });
  for (int value = 1; !done; value = (value + 1) % 256) publish(value);
  waiter.join();
  EXPECT_EQ(result, 0);
  store_.set_slots(nullptr);
}

TEST_F(ObserverOfAStore, HoldsNothingBack) {
  store_.set_slots(&slots_);
  const Observer observer = must(Observer::open(folder_.store(), kLayout));
  [[maybe_unused]] const auto look = must(observer.look());
  for (int i = 0; i < 1000; ++i) publish(i % 256);
  EXPECT_LT(store_.stats().chunks_in_use, 10U) << "1,000 blocks of 4 KiB are 62 chunks";
  store_.set_slots(nullptr);
}

TEST_F(ObserverOfAStore, RefusesOtherLayoutsAndNoticesANewFile) {
  EXPECT_EQ(Observer::open(folder_.store(), kLayout + 1).error().code, Errc::kLayout);
  EXPECT_EQ(Observer::open(folder_.store() + "x", kLayout).error().code, Errc::kNotFound);
  const Observer observer = must(Observer::open(folder_.store(), kLayout));
  EXPECT_TRUE(observer.is_at(folder_.store()));
  std::filesystem::remove(folder_.store());
  EXPECT_FALSE(observer.is_at(folder_.store()));
}

TEST_F(ObserverOfAStore, CopiesTheWorkersPages) {
  must(install_slot_guard());
  must(slots_.add(2));
  must(slots_.add(0))->counters[5] = 17;
  Reader reader = must(Reader::attach(must(slots_.lend(0)), kLayout, 0));
  publish(1);
  [[maybe_unused]] const auto view = reader.pin();
  must(reader.take_lease());
  const Observer observer = must(Observer::open(folder_.store(), kLayout));
  const auto copies = must(copy_slots(folder_.slots(), observer.fd(), kLayout));
  ASSERT_EQ(copies.size(), 2U);
  EXPECT_EQ(copies[0].number, 0U);
  EXPECT_EQ(copies[0].counters[5], 17U);
  EXPECT_EQ(copies[0].pinned, store_.current().number);
  EXPECT_EQ(copies[0].oldest_lease, store_.current().number);
  EXPECT_EQ(copies[0].leases, 1U);
  EXPECT_EQ(copies[1].number, 2U);
  EXPECT_FALSE(copies[1].alive);
  EXPECT_TRUE(must(copy_slots(folder_.slots(), observer.fd(), kLayout + 1)).empty());
  reader.unpin();
}

TEST_F(ObserverOfAStore, PassesOverAPageThatItsWorkerCutOff) {
  must(install_slot_guard());
  must(slots_.add(0));
  must(slots_.add(1));
  std::filesystem::resize_file(slot_path(folder_.slots(), 0), 100);
  const auto copies = must(copy_slots(folder_.slots(), -1, kLayout));
  ASSERT_EQ(copies.size(), 1U);
  EXPECT_EQ(copies[0].number, 1U);
}

/// As root: any group can be given.
TEST_F(ObserverOfAStore, SlotsAreSharedWithAGroup) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root may give files to any group";
  constexpr gid_t kGroup = 54321;
  must(slots_.add(0));
  must(slots_.share_with(kGroup, folder_.store()));
  must(slots_.add(1));
  const auto mode_of = [&](const std::string& path) {
    struct stat status{};
    EXPECT_EQ(::stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_gid, kGroup) << path;
    return status.st_mode & 0777U;
  };
  EXPECT_EQ(mode_of(folder_.slots()), 0750U);
  EXPECT_EQ(mode_of(folder_.store()), 0640U);
  EXPECT_EQ(mode_of(slot_path(folder_.slots(), 0)), 0640U);
  EXPECT_EQ(mode_of(slot_path(folder_.slots(), 1)), 0640U) << "later slots, too";
  // The next manager shares anew, or not.
  const SlotTable next = must(SlotTable::open(folder_.slots(), folder_.store(), kLayout));
  EXPECT_EQ(mode_of(folder_.slots()), 0700U);
}

}  // namespace observer_test
}  // namespace pando::shm
