#include "manager/start/retired_runtimes.h"

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <thread>

namespace pando::manager {
namespace retired_runtimes_test {

/// A configuration that tells which thread has freed it.
RuntimePtr told_when_freed(std::promise<std::thread::id>& freed) {
  return {new Runtime(), [&freed](const Runtime* runtime) {
            delete runtime;
            freed.set_value(std::this_thread::get_id());
          }};
}

TEST(RetiredRuntimes, AreFreedInThePoolOnceNobodyElseHasThem) {
  std::promise<std::thread::id> freed;
  auto thread = freed.get_future();
  asio::thread_pool pool(1);
  RetiredRuntimes retired(pool);
  RuntimePtr user = told_when_freed(freed);
  retired.add(user);
  retired.add(user);
  retired.free_unused();
  EXPECT_EQ(retired.count(), 1U) << "somebody has it";
  user.reset();
  EXPECT_EQ(retired.count(), 1U) << "the last user frees nothing";
  retired.free_unused();
  EXPECT_EQ(retired.count(), 0U);
  EXPECT_NE(thread.get(), std::this_thread::get_id());
  pool.join();
}

TEST(RetiredRuntimes, NoneIsNoProblem) {
  asio::thread_pool pool(1);
  RetiredRuntimes retired(pool);
  retired.add(nullptr);
  retired.free_unused();
  EXPECT_EQ(retired.count(), 0U);
  pool.join();
}

}  // namespace retired_runtimes_test
}  // namespace pando::manager
