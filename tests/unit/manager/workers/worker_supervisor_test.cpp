#include "manager/workers/worker_supervisor.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <thread>

#include "manager/launch/adopted_worker.h"
#include "shm/map/locks.h"
#include "tests/unit/manager/run_until.h"
#include "tests/unit/manager/workers/worker_parts.h"

namespace pando::manager {
namespace worker_supervisor_test {

using testing::Connection;
using testing::free_endpoint;
using testing::PoolDirectory;
using testing::run_until;
using testing::WorkerProcess;
using State = WorkerSlot::State;
using std::chrono::milliseconds;

/// A supervisor whose workers are /bin/false: each ends at once and says no Hello.
class Supervisor : public ::testing::Test {
 protected:
  Supervisor() { directory_.options().worker_binary = "/bin/false"; }
  ~Supervisor() override { supervisor_.abandon(); }

  WorkerSupervisor::Calls calls() {
    WorkerSupervisor::Calls calls;
    calls.accept_waiting = [] {};
    calls.stop_listening = [this] { ++stopped_listening_; };
    calls.serve = [this](WorkerSlot& slot) { served_.push_back(slot.number); };
    calls.pins_cleared = [this] { ++pins_cleared_; };
    return calls;
  }
  LayoutSuccession::Calls succession_calls() {
    LayoutSuccession::Calls calls;
    calls.settle = [this] { supervisor_.settle_if_complete(); };
    calls.launch = [this](WorkerSlot& slot) { supervisor_.lifecycle().launch(slot); };
    calls.drain = [this](WorkerSlot& slot) { supervisor_.lifecycle().drain(slot); };
    calls.ended = [this](WorkerSlot& slot) { supervisor_.previous_layout_worker_ended(slot); };
    calls.kill = [this](std::uint32_t slot, WatchedProcess& process) {
      processes_.kill(slot, process);
    };
    return calls;
  }

  int stopped_listening_ = 0, pins_cleared_ = 0;
  std::vector<std::uint32_t> served_;
  asio::io_context io_;
  PoolDirectory directory_;
  Listeners listeners_{Listeners::Addresses{{free_endpoint()}, {}}};
  WorkerTable table_{io_};
  WorkerAdmission admission_{WorkerAdmission::Starter::kManager, PoolDirectory::kLayout, 0, 0};
  SocketHandover handover_{table_, listeners_, [this](std::uint32_t number) {
                             supervisor_.lifecycle().close_slot(number);
                           }};
  LayoutSuccession succession_{table_,     directory_.slots(),   handover_,
                               admission_, directory_.options(), succession_calls()};
  WorkerProcesses processes_{io_, directory_.slots(), nullptr, directory_.options()};
  WorkerSupervisor supervisor_{{table_, directory_.slots(), listeners_, processes_,
                                directory_.options(), handover_, succession_},
                               calls()};
};

TEST_F(Supervisor, StartsAsManyWorkersAsWantedAndOpensTheirSockets) {
  ASSERT_TRUE(supervisor_.start(3));
  EXPECT_EQ(table_.count(), 3U);
  EXPECT_TRUE(table_.phase.settled);
  for (const auto& [number, slot] : table_.slots()) {
    EXPECT_EQ(slot.state, State::kStarting);
    EXPECT_TRUE(slot.process);
    EXPECT_EQ(listeners_.of(number).size(), 2U);
    EXPECT_EQ(supervisor_.lifecycle().place_of(number).process, slot.pid);
  }
}

TEST_F(Supervisor, AWorkerThatDiesIsStartedAgainWithGrowingPauses) {
  ASSERT_TRUE(supervisor_.start(1));
  ASSERT_TRUE(run_until(io_, [&] { return table_.at(0).restarts.count() >= 3; }));
  EXPECT_GE(table_.at(0).restarts.backoff(), std::chrono::milliseconds(400));
  EXPECT_GE(pins_cleared_, 3);
}

TEST_F(Supervisor, AProgramThatCannotBeStartedIsTriedAgain) {
  directory_.options().worker_binary = "/nonexistent/pando-worker";
  ASSERT_TRUE(supervisor_.start(1));
  ASSERT_TRUE(run_until(io_, [&] { return table_.at(0).restarts.count() >= 2; }));
}

TEST_F(Supervisor, AnAddedWorkerGetsTheLowestFreeSlot) {
  ASSERT_TRUE(supervisor_.start(2));
  EXPECT_EQ(supervisor_.add().value(), 2U);
  supervisor_.lifecycle().close_slot(1);
  EXPECT_EQ(supervisor_.add().value(), 1U);
}

TEST_F(Supervisor, ExternalWorkersAreNeverStarted) {
  directory_.options().external = true;
  ASSERT_TRUE(supervisor_.start(2));
  EXPECT_TRUE(table_.slots().empty());
  EXPECT_EQ(supervisor_.add().error().code, Errc::kUnsupported);
}

TEST_F(Supervisor, ARemovedWorkersSlotGoes) {
  ASSERT_TRUE(supervisor_.start(2));
  bool removed = false;
  EXPECT_TRUE(supervisor_.remove(1, [&] { removed = true; }));
  EXPECT_EQ(supervisor_.remove(7, {}).error().code, Errc::kNotFound);
  ASSERT_TRUE(run_until(io_, [&] { return removed; }));
  EXPECT_EQ(table_.slots().size(), 1U);
  EXPECT_TRUE(listeners_.of(1).empty());
}

TEST_F(Supervisor, AWorkerOfTheLastManagerIsAwaited) {
  const WorkerProcess process(directory_.path(), 0);
  directory_.slots().add(0).value()->pid = static_cast<std::uint32_t>(process.pid());
  ASSERT_TRUE(supervisor_.start(1));
  EXPECT_FALSE(table_.phase.settled);
  EXPECT_TRUE(listeners_.of(0).empty()) << "the order of the groups is not known";
  EXPECT_TRUE(table_.at(0).awaited);

  const Connection connection(io_, process.child());
  supervisor_.lifecycle().worker_came(table_.at(0), connection.link);
  supervisor_.settle_if_complete();
  EXPECT_TRUE(table_.phase.settled);
  EXPECT_TRUE(table_.at(0).adopted);
  EXPECT_EQ(served_, std::vector<std::uint32_t>{0});
}

/// Slot 0 has a worker that goes on with the last manager's store; slot 1 has nobody.
class SupervisorBesideThePreviousStore : public Supervisor {
 protected:
  void start() {
    directory_.slots().add(0).value()->pid = static_cast<std::uint32_t>(process_.pid());
    table_.phase.keeps_previous_store = true;
    ASSERT_TRUE(supervisor_.start(2));
    WorkerSlot& slot = table_.at(0);
    supervisor_.lifecycle().worker_came(slot, connection_.link);
    slot.keeps_store = true;
    slot.state = State::kServing;
    supervisor_.settle_if_complete();
  }

  WorkerProcess process_{directory_.path(), 0};
  Connection connection_{io_, process_.child()};
};

TEST_F(SupervisorBesideThePreviousStore, NoOtherWorkerIsStarted) {
  start();
  EXPECT_EQ(served_, std::vector<std::uint32_t>{0});
  EXPECT_EQ(table_.count(), 2U);
  EXPECT_FALSE(table_.at(1).process);
  EXPECT_TRUE(listeners_.of(1).empty()) << "queries would wait there for nobody";
  EXPECT_EQ(supervisor_.add().value(), 2U);
  EXPECT_FALSE(table_.at(2).process);

  table_.phase.keeps_previous_store = false;
  for (const std::uint32_t number : {1U, 2U}) {
    supervisor_.lifecycle().launch(table_.at(number));
    EXPECT_TRUE(table_.at(number).process);
  }
}

TEST_F(SupervisorBesideThePreviousStore, OthersAreStartedWhenItsLastReaderHasEnded) {
  start();
  process_.end();
  EXPECT_TRUE(
      run_until(io_, [&] { return table_.at(0).restarts.count() > 1 && table_.at(1).restarts.count() > 0; }));
}

TEST_F(Supervisor, ARecordedWorkerReadsTheStoreThatItHasALockOn) {
  const WorkerSearch search{directory_.path(), directory_.options().worker_uid};
  EXPECT_FALSE(may_read_another_store(directory_.slots(), search));
  const WorkerProcess process(directory_.path(), 0);
  directory_.slots().add(0).value()->pid = static_cast<std::uint32_t>(process.pid());
  EXPECT_TRUE(may_read_another_store(directory_.slots(), search));
  const shm::SlotLoan loan = directory_.slots().lend(0).value();
  EXPECT_FALSE(may_read_another_store(directory_.slots(), search));
}

TEST_F(Supervisor, AStartKeepsSocketsOfWantedSlotsAndEndsTheOthers) {
  for (const std::uint32_t number : {0U, 1U, 4U}) ASSERT_TRUE(listeners_.open(number));
  const int kept = listeners_.of(1)[0].fd.get();
  ASSERT_TRUE(supervisor_.start(2));
  EXPECT_EQ(table_.count(), 2U);
  EXPECT_EQ(listeners_.of(1)[0].fd.get(), kept);
  EXPECT_EQ(table_.at(4).state, State::kDraining);
  EXPECT_EQ(listeners_.of(4).size(), 2U) << "nobody has read them yet";
}

TEST_F(Supervisor, KeptSocketsWaitForExternalWorkers) {
  directory_.options().external = true;
  ASSERT_TRUE(listeners_.open(1));
  ASSERT_TRUE(supervisor_.start(2));
  EXPECT_EQ(table_.at(1).state, State::kDead);
  EXPECT_EQ(listeners_.of(1).size(), 2U);
}

TEST_F(Supervisor, KeptSocketsStayWhenTheLastManagersWorkerEndsBeforeItsHello) {
  directory_.options().external = true;
  WorkerProcess process(directory_.path(), 0);
  directory_.slots().add(0).value()->pid = static_cast<std::uint32_t>(process.pid());
  ASSERT_TRUE(listeners_.open(0));
  ASSERT_TRUE(supervisor_.start(1));
  process.end();
  ASSERT_TRUE(run_until(io_, [&] { return table_.phase.settled; }));
  EXPECT_EQ(listeners_.of(0).size(), 2U);
  EXPECT_EQ(table_.at(0).state, State::kDead);
}

/// Slot 0 has a worker that somebody else started.
class ExternalSupervisor : public Supervisor {
 protected:
  ExternalSupervisor() { directory_.options().external = true; }
  /// Another process comes to the slot, as WorkerConnections has it come.
  WorkerSlot& come(const WorkerProcess& process) {
    connections_.push_back(std::make_unique<Connection>(io_, process.child()));
    WorkerSlot& slot = table_.at(0);
    supervisor_.lifecycle().worker_came(slot, connections_.back()->link);
    slot.state = State::kServing;
    return slot;
  }
  void end(WorkerProcess& process) {
    process.end();
    ASSERT_TRUE(run_until(io_, [&] { return !table_.at(0).process; }));
  }
  std::vector<std::unique_ptr<Connection>> connections_;
};

TEST_F(ExternalSupervisor, AWorkerThatEndsWithoutAnOrderIsMissed) {
  ASSERT_TRUE(supervisor_.start(0));
  WorkerProcess process(directory_.path(), 0);
  const WorkerSlot& slot = come(process);
  EXPECT_FALSE(slot.left);
  end(process);
  EXPECT_EQ(slot.state, State::kDead);
  EXPECT_FALSE(slot.left) << "also before it has attached";
  WorkerProcess next(directory_.path(), 0);
  come(next);
  EXPECT_EQ(slot.restarts.count(), 1U);
}

TEST_F(ExternalSupervisor, AWorkerThatWasToldToLeaveIsNotMissed) {
  ASSERT_TRUE(supervisor_.start(0));
  WorkerProcess process(directory_.path(), 0);
  const WorkerSlot& slot = come(process);
  directory_.slots().page(0)->started = 0;  // as shm::Reader::leave()
  end(process);
  EXPECT_TRUE(slot.left);
  WorkerProcess next(directory_.path(), 0);
  come(next);
  EXPECT_FALSE(slot.left);
}

TEST_F(ExternalSupervisor, AWorkerThatEndedUnderTheLastManagerIsMissed) {
  directory_.slots().add(0).value()->started = 1'700'000'000;
  directory_.slots().add(1).value()->started = 0;
  ASSERT_TRUE(supervisor_.start(0));
  ASSERT_NE(table_.find(0), nullptr);
  EXPECT_EQ(table_.at(0).state, State::kDead);
  EXPECT_FALSE(table_.at(0).left);
  EXPECT_EQ(table_.find(1), nullptr) << "it was told to leave";
}

TEST_F(Supervisor, AWorkerOfTheLastManagerThatStaysSilentIsReplaced) {
  const WorkerProcess process(directory_.path(), 0);
  directory_.slots().add(0).value()->pid = static_cast<std::uint32_t>(process.pid());
  ASSERT_TRUE(supervisor_.start(1));
  ASSERT_TRUE(run_until(io_, [&] { return table_.phase.settled && table_.at(0).restarts.count() > 0; }));
  EXPECT_FALSE(table_.at(0).awaited);
}

// A process that no page names: its manager was killed between its start and the record of it.

TEST_F(Supervisor, AnUnidentifiedWorkerThatEndsAtOnceIsReplaced) {
  WorkerProcess process(directory_.path(), 0);
  EXPECT_TRUE(succession_.has_workers());
  ASSERT_TRUE(supervisor_.start(1));
  EXPECT_FALSE(table_.phase.settled);
  process.end();
  ASSERT_TRUE(run_until(io_, [&] { return table_.at(0).restarts.count() > 0; }));
  EXPECT_TRUE(table_.phase.settled);
}

TEST_F(Supervisor, AnUnidentifiedWorkerThatStaysSilentIsReplaced) {
  const WorkerProcess process(directory_.path(), 0);
  EXPECT_TRUE(succession_.has_workers());
  ASSERT_TRUE(supervisor_.start(1));
  ASSERT_TRUE(run_until(io_, [&] { return table_.at(0).restarts.count() > 0; }));
}

TEST_F(Supervisor, AnUnidentifiedWorkerInAnUnwantedSlotLeavesNoSlot) {
  WorkerProcess process(directory_.path(), 3);
  EXPECT_TRUE(succession_.has_workers());
  ASSERT_TRUE(supervisor_.start(1));
  process.end();
  ASSERT_TRUE(run_until(io_, [&] { return table_.find(3) == nullptr; }));
  ASSERT_TRUE(run_until(io_, [&] { return table_.at(0).restarts.count() > 0; }));
}

TEST_F(Supervisor, APageThatNamesAForeignProcessDoesNotHoldTheSlot) {
  directory_.slots().add(0).value()->pid = static_cast<std::uint32_t>(::getpid());
  ASSERT_TRUE(supervisor_.start(1));
  EXPECT_TRUE(table_.phase.settled);
  EXPECT_TRUE(table_.at(0).process);
}

TEST_F(Supervisor, ASlotThatAnUnknownProcessHoldsIsReplacedByAnother) {
  ASSERT_TRUE(directory_.slots().add(0));
  Fd holder(::open((directory_.path() + "/zones.store").c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_TRUE(shm::try_lock(holder.get(), shm::LockKind::kShared, shm::kSlotLockBase).value());
  ASSERT_TRUE(supervisor_.start(1));
  ASSERT_TRUE(run_until(io_, [&] { return table_.find(1) != nullptr; }));
  EXPECT_TRUE(table_.phase.settled);
  EXPECT_EQ(table_.count(), 1U);
  holder = Fd();
  ASSERT_TRUE(run_until(io_, [&] { return table_.find(0) == nullptr; }));
}

TEST_F(Supervisor, PinsOfAnEndedWorkerDoNotCountWhoeverHasItsLock) {
  WorkerProcess process(directory_.path(), 0);
  shm::SlotPage* const page = directory_.slots().add(0).value();
  page->pid = static_cast<std::uint32_t>(process.pid());
  page->epoch = 5;
  Fd holder(::open((directory_.path() + "/zones.store").c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_TRUE(shm::try_lock(holder.get(), shm::LockKind::kShared, shm::kSlotLockBase).value());
  ASSERT_TRUE(supervisor_.start(1));
  EXPECT_EQ(directory_.slots().oldest_pinned(), 5U);
  process.end();
  ASSERT_TRUE(run_until(io_, [&] { return table_.at(0).restarts.count() > 0; }));
  EXPECT_EQ(directory_.slots().oldest_pinned(), UINT64_MAX);
}

TEST_F(Supervisor, AProcessThatOutlivesItsKillIsReplacedInAnotherSlot) {
  directory_.options().adopted_time = directory_.options().kill_time = milliseconds(50);
  const WorkerProcess process(directory_.path(), 0);
  directory_.slots().add(0).value()->pid = static_cast<std::uint32_t>(process.pid());
  ASSERT_TRUE(supervisor_.start(1));
  table_.at(0).process.emplace(
      io_, Child{table_.at(0).pid, Fd(::eventfd(0, EFD_CLOEXEC))});  // takes no signal, never ends
  ASSERT_TRUE(run_until(io_, [&] { return table_.find(1) != nullptr; }));
  EXPECT_TRUE(table_.phase.settled);
  EXPECT_TRUE(table_.at(0).lost);
  EXPECT_EQ(table_.count(), 1U);
}

TEST_F(Supervisor, AWorkerWhoseConnectionBreaksHasToComeBack) {
  directory_.options().hello_time = milliseconds(50);
  const WorkerProcess process(directory_.path(), 0);
  directory_.slots().add(0).value()->pid = static_cast<std::uint32_t>(process.pid());
  ASSERT_TRUE(supervisor_.start(1));
  Connection connection(io_, process.child());
  supervisor_.lifecycle().worker_came(table_.at(0), connection.link);
  supervisor_.settle_if_complete();
  table_.at(0).link.reset();
  supervisor_.lifecycle().connection_lost(table_.at(0));
  ASSERT_TRUE(run_until(io_, [&] { return table_.at(0).restarts.count() > 0; }));
}

TEST_F(Supervisor, ABackOffEndsWhenTheLastServingWorkerIsRemoved) {
  WorkerProcess process(directory_.path(), 0);
  directory_.slots().add(0).value()->pid = static_cast<std::uint32_t>(process.pid());
  ASSERT_TRUE(supervisor_.start(2));
  const Connection connection(io_, process.child());
  supervisor_.lifecycle().worker_came(table_.at(0), connection.link);
  supervisor_.settle_if_complete();
  table_.at(0).state = State::kServing;
  ASSERT_TRUE(run_until(io_, [&] { return table_.at(1).restarts.backoff() >= milliseconds(1600); }));
  EXPECT_TRUE(supervisor_.remove(0, {}));
  process.end();
  ASSERT_TRUE(run_until(io_, [&] { return !table_.find(0) || !table_.at(0).process; }));
  EXPECT_LE(table_.at(1).step.expiry(), std::chrono::steady_clock::now() + milliseconds(100));
}

TEST_F(Supervisor, ATickThatWasQueuedBeforeAStopDoesNotTakeItsDeadline) {
  const WorkerProcess process(directory_.path(), 0);
  directory_.slots().add(0).value()->pid = static_cast<std::uint32_t>(process.pid());
  asio::steady_timer before_the_tick(io_, milliseconds(0));
  ASSERT_TRUE(supervisor_.start(1));
  bool stopped = false;
  before_the_tick.async_wait([&](auto) { supervisor_.stop([&] { stopped = true; }); });
  const asio::steady_timer tick(io_, std::chrono::seconds(1));
  while (std::chrono::steady_clock::now() <= tick.expiry()) std::this_thread::yield();
  ASSERT_TRUE(run_until(io_, [&] { return stopped; })) << "the process ends by force alone";
}

TEST_F(Supervisor, StopIsOverWhenAllWorkersHaveEnded) {
  ASSERT_TRUE(supervisor_.start(2));
  bool stopped = false;
  supervisor_.stop([&] { stopped = true; });
  ASSERT_TRUE(run_until(io_, [&] { return stopped; }));
  EXPECT_TRUE(table_.slots().empty());
  EXPECT_TRUE(listeners_.slots().empty());
  EXPECT_EQ(stopped_listening_, 1);
}

}  // namespace worker_supervisor_test
}  // namespace pando::manager
