#include "manager/server/previous_store.h"

#include <gtest/gtest.h>

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
