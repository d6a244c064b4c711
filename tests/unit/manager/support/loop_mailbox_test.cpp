#include "manager/support/loop_mailbox.h"

#include <gmock/gmock.h>

#include <memory>
#include <thread>
#include <vector>

#include "tests/unit/manager/run_until.h"

namespace pando::manager {
namespace loop_mailbox_test {

using ::testing::ElementsAre;
using testing::run_until;

TEST(LoopMailbox, IsTheLoopsOnlyOne) {
  asio::io_context io, other;
  EXPECT_EQ(&LoopMailbox::of(io), &LoopMailbox::of(io));
  EXPECT_NE(&LoopMailbox::of(io), &LoopMailbox::of(other));
}

TEST(LoopMailbox, RunsTasksInTheLoopsThreadInOrder) {
  asio::io_context io;
  LoopMailbox& mailbox = LoopMailbox::of(io);
  std::vector<int> ran;
  std::thread::id thread;
  std::thread([&] {
    mailbox.post([&] { ran.push_back(1); });
    mailbox.post([&, mine = std::make_unique<int>(2)] {
      ran.push_back(*mine);
      thread = std::this_thread::get_id();
    });
  }).join();
  EXPECT_THAT(ran, ElementsAre());
  EXPECT_TRUE(run_until(io, [&] { return ran.size() == 2; }));
  EXPECT_THAT(ran, ElementsAre(1, 2));
  EXPECT_EQ(thread, std::this_thread::get_id());
}

/// Each task is posted while the loop sleeps, or is about to.
TEST(LoopMailbox, WakesALoopThatSleeps) {
  constexpr int kTasks = 2'000;
  asio::io_context io;
  LoopMailbox& mailbox = LoopMailbox::of(io);
  std::atomic<int> ran{0};
  std::thread sender([&] {
    for (int i = 0; i < kTasks; ++i) {
      mailbox.post([&] {
        ran.fetch_add(1);
        ran.notify_one();
      });
      if (i % 2 == 0) ran.wait(i);  // until this task has run
    }
    mailbox.post([&] { io.stop(); });
  });
  io.run();
  sender.join();
  EXPECT_EQ(ran, kTasks);
}

TEST(LoopMailbox, ATaskMayPost) {
  asio::io_context io;
  LoopMailbox& mailbox = LoopMailbox::of(io);
  int ran = 0;
  mailbox.post([&] { mailbox.post([&] { ++ran; }); });
  EXPECT_TRUE(run_until(io, [&] { return ran == 1; }));
}

/// Tasks that are dropped release their objects before the loop is gone.
TEST(LoopMailbox, DropsItsTasksWithTheLoop) {
  auto held = std::make_shared<int>(0);
  {
    asio::io_context io;
    LoopMailbox::of(io).post([held] { ++*held; });
    EXPECT_EQ(held.use_count(), 2);
  }
  EXPECT_EQ(held.use_count(), 1);
  EXPECT_EQ(*held, 0);
}

}  // namespace loop_mailbox_test
}  // namespace pando::manager
