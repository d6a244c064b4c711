#include "manager/server/previous_store.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/unit/manager/run_until.h"
#include "tests/unit/shm/support.h"

namespace pando::manager {
namespace previous_store_test {

using shm::test::must;
using std::chrono::milliseconds;
using testing::run_until;

class KeptStore : public ::testing::Test {
 protected:
  PreviousStore make(milliseconds patience) {
    return {io_,
            store_,
            {[this] {
               ++looks_;
               return progresses_ ? ++loaded_ : loaded_;
             },
             [this] { ++left_; }, [this] { ++loads_; }},
            {patience, milliseconds(1)}};
  }

  asio::io_context io_;
  shm::test::Folder folder_;
  shm::Store store_ = must(shm::Store::create(shm::test::options(folder_)));
  bool progresses_ = false;
  std::uint64_t loaded_ = 0;
  int looks_ = 0, left_ = 0, loads_ = 0;
};

TEST_F(KeptStore, IsLeftOnce) {
  PreviousStore kept = make(std::chrono::hours(1));
  kept.leave("not kept yet");
  EXPECT_EQ(left_, 0);
  kept.keep();
  kept.keep();
  kept.leave("all zones are loaded");
  kept.leave("again");
  EXPECT_EQ(left_, 1);
}

TEST_F(KeptStore, IsLeftWhenLoadingMakesNoProgress) {
  PreviousStore kept = make(milliseconds(5));
  kept.keep();
  EXPECT_EQ(left_, 0);
  EXPECT_TRUE(run_until(io_, [&] { return left_ == 1; }));
}

/// However slow each step is: the patience begins anew with each.
TEST_F(KeptStore, IsNotLeftWhileZonesAreLoaded) {
  progresses_ = true;
  PreviousStore kept = make(milliseconds(0));
  kept.keep();
  EXPECT_TRUE(run_until(io_, [&] { return looks_ > 20; }));
  EXPECT_EQ(left_, 0);
  progresses_ = false;
  EXPECT_TRUE(run_until(io_, [&] { return left_ == 1; }));
}

/// Neither was there a store that could have taken the memory, nor does the machine bound this one.
TEST_F(KeptStore, ZonesThatFailAreLoadedOnceMoreOnlyIfMemoryMayHaveLacked) {
  PreviousStore kept = make(std::chrono::hours(1));
  kept.loaded(1);
  kept.keep();
  kept.loaded(1);
  EXPECT_EQ(left_, 1);
  io_.run();
  EXPECT_EQ(loads_, 0);
}

/// A store that takes memory until little is left: by its limit, or of the machine.
class FilledStore {
 public:
  explicit FilledStore(const shm::StoreOptions& options)
      : store_(must(shm::Store::create(options))) {}

  void keep() { kept_.keep(); }
  bool run_until_looks(int looks) {
    return run_until(io_, [&, end = looks_ + looks] { return looks_ > end; });
  }
  bool run_until_left() {
    return run_until(io_, [&] { return left_ == 1; });
  }
  void fill() {
    while (!store_.low_space()) must(filler_.allocate(shm::kChunkBytes));
  }
  /// All zones were looked at, and some found no memory.
  void fail_a_zone() { kept_.loaded(1); }
  /// How often it looks for memory before these zones are loaded again.
  std::size_t looks_until_loaded_again() {
    std::size_t looks = 0;
    for (io_.restart(); loads_ == 0; ++looks)
      if (io_.run_one() == 0) return SIZE_MAX;
    return looks;
  }
  [[nodiscard]] int left() const { return left_; }
  shm::Store& store() { return store_; }

 private:
  asio::io_context io_;
  shm::Store store_;
  shm::Transaction filler_ = store_.begin_private();
  int looks_ = 0, left_ = 0, loads_ = 0;
  PreviousStore kept_{io_,
                      store_,
                      {[this] {
                         ++looks_;
                         return std::uint64_t{0};
                       },
                       [this] { ++left_; }, [this] { ++loads_; }},
                      {std::chrono::hours(1), milliseconds(1)}};
};

/// Nothing is gained by the other store's end.
TEST(PreviousStoreInLowSpace, StaysBesideAStoreThatIsFullByItsOwnLimit) {
  const shm::test::Folder folder;
  FilledStore filled(shm::test::options(folder, 4 * shm::test::kMiB));
  filled.fill();
  filled.keep();
  EXPECT_TRUE(filled.run_until_looks(20));
  EXPECT_EQ(filled.left(), 0);
}

TEST(PreviousStoreInLowSpace, IsLeftWhenTheMachineHasLittleMemoryLeft) {
  const shm::test::Folder folder;
  const int status = shm::test::with_small_tmpfs(folder, "size=8m", [&] {
    FilledStore filled(shm::test::options(folder, 1024 * shm::test::kMiB));
    filled.keep();
    if (!filled.run_until_looks(20) || filled.left() != 0) return 1;
    filled.fill();
    if (!filled.run_until_left()) return 2;
    filled.fail_a_zone();
    const std::size_t looks = filled.looks_until_loaded_again();
    return looks > 1 && looks != SIZE_MAX ? 0 : 3;  // no memory comes: they are tried all the same
  });
  if (status == shm::test::kNoMount) GTEST_SKIP() << "needs a mount namespace (root)";
  EXPECT_EQ(status, 0);
}

TEST(PreviousStoreInLowSpace, ZonesAreLoadedAgainAsSoonAsTheOtherStoresMemoryIsFree) {
  const shm::test::Folder folder;
  const int status = shm::test::with_small_tmpfs(folder, "size=12m", [&] {
    const std::string other = folder.path() + "/other";
    std::ofstream(other) << std::string(4 * shm::test::kMiB, 'x');
    FilledStore filled(shm::test::options(folder, 1024 * shm::test::kMiB));
    filled.keep();
    filled.fill();
    if (!filled.run_until_left()) return 1;
    filled.fail_a_zone();
    std::filesystem::remove(other);
    filled.store().look_at_machine();
    return filled.looks_until_loaded_again() == 1 ? 0 : 2;
  });
  if (status == shm::test::kNoMount) GTEST_SKIP() << "needs a mount namespace (root)";
  EXPECT_EQ(status, 0);
}

TEST_F(KeptStore, IsForgottenByAProcessThatEnds) {
  PreviousStore kept = make(milliseconds(0));
  progresses_ = true;
  kept.keep();
  kept.stop();
  progresses_ = false;
  const int looks = looks_;
  io_.run();
  EXPECT_EQ(looks_, looks);
  EXPECT_EQ(left_, 0);
}

}  // namespace previous_store_test
}  // namespace pando::manager
