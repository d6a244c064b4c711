#include "manager/support/heap_upkeep.h"

#include <gtest/gtest.h>

#include <asio/executor_work_guard.hpp>

namespace pando::manager {
namespace heap_upkeep_test {

using std::chrono::seconds;

class HeapUpkeepTest : public ::testing::Test {
 protected:
  asio::io_context io_;
  asio::executor_work_guard<asio::io_context::executor_type> guard_ = asio::make_work_guard(io_);
  asio::thread_pool pool_{1};
  std::size_t free_ = 0;
  int measured_ = 0;
  int released_ = 0;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  HeapUpkeep upkeep_{io_,
                     pool_,
                     {seconds(10), 1000,
                      [this] {
                        ++measured_;
                        return free_;
                      },
                      [this] { ++released_; }}};

  void check(int second) {
    upkeep_.check(start_ + seconds(second));
    while (upkeep_.busy()) io_.run_one_for(std::chrono::seconds(5));
  }
};

TEST_F(HeapUpkeepTest, GivesBackWhatIsMuch) {
  check(0);
  EXPECT_EQ(released_, 0);
  free_ = 1000;
  check(10);
  EXPECT_EQ(released_, 0);
  free_ = 1001;
  check(20);
  EXPECT_EQ(released_, 1);
  EXPECT_EQ(upkeep_.releases(), 1U);
  check(30);
  EXPECT_EQ(released_, 1) << "glibc goes on calling it free";
  free_ = 2001;
  check(40);
  EXPECT_EQ(released_, 1) << "1000 of it are new";
  free_ = 2002;
  check(50);
  EXPECT_EQ(released_, 2);
  free_ = 100;
  check(60);
  free_ = 1101;
  check(70);
  EXPECT_EQ(released_, 3) << "it was used in between";
}

TEST_F(HeapUpkeepTest, LooksOnceInAnInterval) {
  for (int second = 0; second < 35; ++second) check(second);
  EXPECT_EQ(measured_, 4);
}

TEST_F(HeapUpkeepTest, OneAtATime) {
  upkeep_.check(start_);
  EXPECT_TRUE(upkeep_.busy());
  upkeep_.check(start_ + seconds(100));
  while (upkeep_.busy()) io_.run_one_for(std::chrono::seconds(5));
  EXPECT_EQ(measured_, 1);
}

}  // namespace heap_upkeep_test
}  // namespace pando::manager
