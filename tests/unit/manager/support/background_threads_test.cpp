#include "manager/support/background_threads.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <asio/post.hpp>
#include <atomic>
#include <thread>

namespace pando::manager {
namespace background_threads_test {

int own_nice() { return ::getpriority(PRIO_PROCESS, static_cast<id_t>(::gettid())); }

TEST(BackgroundThreads, StandBackAndTheirMakerDoesNot) {
  const int before = own_nice();
  BackgroundThreads threads(2);
  std::atomic<int> inside{before}, below{before};
  asio::post(threads.pool(), [&] {
    inside = own_nice();
    std::thread([&] { below = own_nice(); }).join();
  });
  threads.pool().join();
  EXPECT_EQ(inside, std::min(19, before + BackgroundThreads::kNice));
  EXPECT_EQ(below, inside) << "so do the threads that they make";
  EXPECT_EQ(own_nice(), before);
}

}  // namespace background_threads_test
}  // namespace pando::manager
