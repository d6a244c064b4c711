#include "manager/support/load_threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>

#include "tests/unit/manager/run_until.h"

namespace pando::manager {
namespace load_threads_test {

using testing::run_until;

class Threads : public ::testing::Test {
 protected:
  asio::io_context io_;
  LoadThreads threads_{LoopMailbox::of(io_), 2};
};

TEST_F(Threads, WorkRunsBesideAndItsEndInTheLoopsThread) {
  std::thread::id worked, ended;
  threads_.run([&] { worked = std::this_thread::get_id(); },
               [&, mine = std::make_unique<int>(1)] { ended = std::this_thread::get_id(); });
  EXPECT_TRUE(run_until(io_, [&] { return ended != std::thread::id(); }));
  EXPECT_EQ(ended, std::this_thread::get_id());
  EXPECT_NE(worked, ended);
}

/// Whatever else is short: nothing waits behind long work while a thread is free.
TEST_F(Threads, LongWorkHoldsNothingUpThatHasAThread) {
  std::atomic<bool> may_end{false};
  int ended = 0;
  bool long_one = false;
  threads_.run([&] { may_end.wait(false); }, [&] { long_one = true; });
  for (int i = 0; i < 100; ++i) {
    threads_.run([] {}, [&] { ++ended; });
    ASSERT_TRUE(run_until(io_, [&] { return ended == i + 1; }));
  }
  EXPECT_FALSE(long_one);
  may_end = true;
  may_end.notify_one();
  EXPECT_TRUE(run_until(io_, [&] { return long_one; }));
}

TEST_F(Threads, JoinWaitsForWorkWhoseEndNobodyRuns) {
  bool worked = false, ended = false;
  threads_.run([&] { worked = true; }, [&] { ended = true; });
  threads_.join();
  EXPECT_TRUE(worked);
  EXPECT_FALSE(ended);
}

}  // namespace load_threads_test
}  // namespace pando::manager
