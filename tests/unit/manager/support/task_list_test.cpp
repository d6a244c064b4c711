#include "manager/support/task_list.h"

#include <gmock/gmock.h>

#include <memory>
#include <thread>
#include <vector>

namespace pando::manager {
namespace task_list_test {

using ::testing::ElementsAre;

TEST(TaskList, RunsTasksInOrderAndWakesForTheFirst) {
  TaskList list;
  std::vector<int> ran;
  EXPECT_TRUE(list.push([&] { ran.push_back(1); }));
  EXPECT_FALSE(list.push([&] { ran.push_back(2); }));
  EXPECT_FALSE(list.push([&] { ran.push_back(3); }));
  EXPECT_THAT(ran, ElementsAre());
  list.run();
  EXPECT_THAT(ran, ElementsAre(1, 2, 3));
  EXPECT_TRUE(list.push([&] { ran.push_back(4); })) << "it is empty again";
  list.run();
  list.run();
  EXPECT_THAT(ran, ElementsAre(1, 2, 3, 4));
}

/// Its sender wakes the taker, who then takes the task.
TEST(TaskList, ATaskThatATaskPushesIsLeftForTheNextTime) {
  TaskList list;
  std::vector<int> ran;
  EXPECT_TRUE(list.push([&] {
    ran.push_back(1);
    EXPECT_TRUE(list.push([&] { ran.push_back(2); }));
  }));
  list.run();
  EXPECT_THAT(ran, ElementsAre(1));
  list.run();
  EXPECT_THAT(ran, ElementsAre(1, 2));
}

TEST(TaskList, DropsWhatDoesNotRun) {
  auto held = std::make_shared<int>(0);
  {
    TaskList list;
    EXPECT_TRUE(list.push([held] { ++*held; }));
    EXPECT_FALSE(list.push([mine = std::make_unique<int>(1), held] { *held += *mine; }));
    list.clear();
    EXPECT_EQ(held.use_count(), 1);
    EXPECT_TRUE(list.push([held] { ++*held; }));
  }
  EXPECT_EQ(held.use_count(), 1);
  EXPECT_EQ(*held, 0);
}

TEST(TaskList, LosesNoTaskOfManySendersAndKeepsEachOnesOrder) {
  constexpr std::size_t kSenders = 4, kTasks = 5'000;
  TaskList list;
  std::vector<std::size_t> next(kSenders, 0);
  std::size_t ran = 0, swapped = 0;
  std::vector<std::thread> senders;
  for (std::size_t sender = 0; sender < kSenders; ++sender)
    senders.emplace_back([&, sender] {
      for (std::size_t i = 0; i < kTasks; ++i)
        static_cast<void>(list.push([&, sender, i] {
          if (next[sender]++ != i) ++swapped;
          ++ran;
        }));
    });
  while (ran < kSenders * kTasks) list.run();
  for (std::thread& sender : senders) sender.join();
  EXPECT_EQ(swapped, 0U);
}

}  // namespace task_list_test
}  // namespace pando::manager
