#include "manager/support/task_thread.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <memory>
#include <vector>

namespace pando::manager {
namespace task_thread_test {

using ::testing::ElementsAre;

TEST(TaskThread, RunsTasksInOrderInAThreadOfItsOwn) {
  TaskThread thread;
  EXPECT_TRUE(thread.idle());
  std::vector<int> ran;
  std::thread::id where;
  thread.post([&] { ran.push_back(1); });
  thread.post([&, mine = std::make_unique<int>(2)] { ran.push_back(*mine); });
  thread.post([&] { where = std::this_thread::get_id(); });
  thread.join();
  EXPECT_TRUE(thread.idle());
  EXPECT_THAT(ran, ElementsAre(1, 2));
  EXPECT_NE(where, std::this_thread::get_id());
}

/// The poster neither waits for the task nor counts it as done too early.
TEST(TaskThread, IsIdleOnlyOnceItsTasksAreDone) {
  TaskThread thread;
  std::atomic<bool> may_end{false};
  thread.post([&] { may_end.wait(false); });
  EXPECT_FALSE(thread.idle());
  may_end = true;
  may_end.notify_one();
  while (!thread.idle()) std::this_thread::yield();
}

/// Each task is posted while the thread sleeps, or is about to.
TEST(TaskThread, IsWokenForEachTask) {
  TaskThread thread;
  for (int i = 0; i < 2'000; ++i) {
    thread.post([] {});
    while (!thread.idle()) std::this_thread::yield();
  }
}

TEST(TaskThread, RunsWhatWasPostedBeforeItsEnd) {
  for (int i = 0; i < 200; ++i) {
    int ran = 0;
    {
      TaskThread thread;
      thread.post([&] { ++ran; });
      thread.post([&] { ++ran; });
    }
    ASSERT_EQ(ran, 2);
  }
}

TEST(TaskThread, StandsBackIfToldSo) {
  const auto own_nice = [] { return ::getpriority(PRIO_PROCESS, static_cast<id_t>(::gettid())); };
  const int before = own_nice();
  int beside = 0, behind = 0;
  TaskThread equal, back(5);
  equal.post([&] { beside = own_nice(); });
  back.post([&] { behind = own_nice(); });
  equal.join();
  back.join();
  EXPECT_EQ(beside, before);
  EXPECT_EQ(behind, std::min(19, before + 5));
  EXPECT_EQ(own_nice(), before);
}

TEST(TaskThread, EndsOnce) {
  TaskThread thread;
  thread.join();
  thread.join();
}

}  // namespace task_thread_test
}  // namespace pando::manager
