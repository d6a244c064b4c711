#include "manager/workers/worker_processes.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include "tests/unit/manager/run_until.h"
#include "tests/unit/manager/workers/worker_parts.h"

namespace pando::manager {
namespace worker_processes_test {

using testing::PoolDirectory;
using testing::run_until;
using testing::WorkerProcess;

class Processes : public ::testing::Test {
 protected:
  /// Runs until `process` has ended.
  bool await_end(WatchedProcess& process) {
    bool ended = false;
    process.on_end([&ended](const asio::error_code& error) { ended = !error; });
    return run_until(io_, [&ended] { return ended; });
  }
  std::uint32_t pid_in_page(std::uint32_t slot) {
    const auto* page = directory_.slots().page(slot);
    return page == nullptr ? 0 : page->pid;
  }

  asio::io_context io_;
  PoolDirectory directory_;
  WorkerProcesses processes_{io_, directory_.slots(), nullptr, directory_.options()};
};

TEST_F(Processes, AStartedProcessTellsHowItEnded) {
  directory_.options().worker_binary = "/bin/false";
  auto child = processes_.start(3);
  ASSERT_TRUE(child);
  const auto pid = static_cast<std::uint32_t>(child->pid);
  EXPECT_EQ(pid_in_page(3), 0U) << "it is not recorded yet";
  WatchedProcess process = processes_.watch(3, std::move(*child));
  EXPECT_EQ(pid_in_page(3), pid);
  ASSERT_TRUE(await_end(process));
  EXPECT_EQ(process.reap(), "exit 1");
  EXPECT_EQ(process.reap(), "unknown") << "it is gone";
  processes_.clear_page(3);
  EXPECT_EQ(pid_in_page(3), 0U);
}

TEST_F(Processes, AProgramThatIsNotThereIsAnError) {
  directory_.options().worker_binary = "/nonexistent/pando-worker";
  EXPECT_FALSE(processes_.start(0));
}

TEST_F(Processes, AKilledProcessEnds) {
  const WorkerProcess sleeping(directory_.path(), 0);
  WatchedProcess process = processes_.watch(0, sleeping.child());
  EXPECT_EQ(process.pid(), sleeping.pid());
  processes_.kill(0, process);
  ASSERT_TRUE(await_end(process));
  EXPECT_EQ(process.reap(), "signal 9");
}

TEST_F(Processes, WhatIsNoProcessCannotBeKilled) {
  WatchedProcess process(io_, Child{1, Fd(::eventfd(0, EFD_CLOEXEC))});
  EXPECT_FALSE(process.kill(nullptr));
}

TEST_F(Processes, TheWorkerThatAPageNamesIsFound) {
  const WorkerProcess worker(directory_.path(), 2);
  EXPECT_FALSE(processes_.recorded(2));
  const WatchedProcess process = processes_.watch(2, worker.child());
  ASSERT_TRUE(processes_.recorded(2));
  EXPECT_EQ(processes_.recorded(2)->pid, worker.pid());
  EXPECT_FALSE(processes_.recorded(1));
}

}  // namespace worker_processes_test
}  // namespace pando::manager
