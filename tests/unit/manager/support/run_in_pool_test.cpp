#include "manager/support/run_in_pool.h"

#include <gtest/gtest.h>

#include <asio/detached.hpp>
#include <asio/io_context.hpp>
#include <thread>

namespace pando::manager {
namespace run_in_pool_test {

TEST(RunIn, WorksInThePoolAndGoesOnInTheCallersThread) {
  asio::thread_pool pool(1);
  asio::io_context loop(1);
  const auto here = std::this_thread::get_id();
  std::thread::id worked, went_on;
  int result = 0;
  asio::co_spawn(
      loop,
      [&]() -> asio::awaitable<void> {
        result = co_await run_in_pool(pool, [&] {
          worked = std::this_thread::get_id();
          return 7;
        });
        went_on = std::this_thread::get_id();
      },
      asio::detached);
  loop.run();
  pool.join();
  EXPECT_EQ(result, 7);
  EXPECT_NE(worked, here);
  EXPECT_NE(worked, std::thread::id());
  EXPECT_EQ(went_on, here);
}

}  // namespace run_in_pool_test
}  // namespace pando::manager
