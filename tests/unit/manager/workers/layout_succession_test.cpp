#include "manager/workers/layout_succession.h"

#include <gtest/gtest.h>

#include "tests/unit/manager/run_until.h"
#include "tests/unit/manager/workers/worker_parts.h"

namespace pando::manager {
namespace layout_succession_test {

using testing::Connection;
using testing::PoolDirectory;
using testing::run_until;
using testing::WorkerProcess;

constexpr std::uint64_t kOtherLayout = PoolDirectory::kLayout + 1;

class Succession : public ::testing::Test {
 protected:
  LayoutSuccession::Calls calls() {
    LayoutSuccession::Calls calls;
    calls.none_left = [this] { ++none_left_; };
    calls.settle = [this] { ++settle_; };
    calls.launch = [this](WorkerSlot& slot) { launched_.push_back(slot.number); };
    calls.drain = [this](WorkerSlot& slot) { drained_.push_back(slot.number); };
    calls.kill = [this](std::uint32_t slot, auto&) { killed_.push_back(slot); };
    calls.ended = [this](WorkerSlot& slot) { ended_.push_back(slot.number); };
    return calls;
  }
  Status greet(const std::shared_ptr<WorkerLink>& link, std::uint32_t slot, std::uint32_t sockets) {
    return succession_.greet(link, {slot, 1, kOtherLayout, sockets}, {});
  }

  using Numbers = std::vector<std::uint32_t>;
  int none_left_ = 0, settle_ = 0;
  Numbers launched_, drained_, killed_, ended_;
  asio::io_context io_;
  PoolDirectory directory_;
  Listeners listeners_{Listeners::Addresses{}};
  WorkerTable table_{io_};
  SocketHandover handover_{table_, listeners_, [](std::uint32_t) {}};
  WorkerAdmission admission_{WorkerAdmission::Starter::kManager, PoolDirectory::kLayout, 0, 0};
  LayoutSuccession succession_{table_,     directory_.slots(),   handover_,
                               admission_, directory_.options(), calls()};
};

TEST_F(Succession, NoProcessMeansNoWorkers) { EXPECT_FALSE(succession_.has_workers()); }

TEST_F(Succession, AWorkerThatItsPageNamesIsOurs) {
  const WorkerProcess process(directory_.path(), 2);
  directory_.slots().add(2).value()->pid = static_cast<std::uint32_t>(process.pid());
  EXPECT_FALSE(succession_.has_workers());
}

TEST_F(Succession, TheEndOfTheLastUnidentifiedWorkerIsTold) {
  WorkerProcess process(directory_.path(), 2);
  EXPECT_TRUE(succession_.has_workers());
  process.end();
  ASSERT_TRUE(run_until(io_, [&] { return none_left_ > 0; }));
  EXPECT_EQ(none_left_, 1);
}

TEST_F(Succession, AHelloOfOurLayoutIdentifiesAWorker) {
  const WorkerProcess process(directory_.path(), 2);
  EXPECT_TRUE(succession_.has_workers());
  succession_.await_workers();
  EXPECT_TRUE(succession_.is_awaited(2));
  succession_.is_of_our_layout(2, process.pid());
  EXPECT_FALSE(succession_.serves(2));
  ASSERT_TRUE(run_until(io_, [&] { return none_left_ > 0; }));
}

TEST_F(Succession, AWorkerOfAnotherLayoutIsFollowedAndThenTold) {
  WorkerProcess process(directory_.path(), 1);
  Connection connection(io_, process.child());
  succession_.await_workers();
  ASSERT_TRUE(greet(connection.link, 1, 2));
  EXPECT_FALSE(succession_.is_awaited(1));
  EXPECT_EQ(succession_.slot_of(connection.link.get()), 1U);
  EXPECT_EQ(settle_, 1);
  EXPECT_TRUE(launched_.empty()) << "others are still awaited";

  table_.phase.settled = true;
  WorkerSlot& slot = table_.at(1);
  succession_.succeed(slot);
  EXPECT_EQ(launched_, Numbers{1});

  succession_.stop(slot);  // as when our worker is attached
  EXPECT_EQ(connection.take<ipc::Stop>().size(), 1U);
  process.end();
  ASSERT_TRUE(run_until(io_, [&] { return !ended_.empty(); }));
  EXPECT_FALSE(succession_.serves(1));
}

TEST_F(Succession, AWorkerThatDoesNotStopIsKilled) {
  const WorkerProcess process(directory_.path(), 1);
  Connection connection(io_, process.child());
  ASSERT_TRUE(greet(connection.link, 1, 1));
  succession_.stop(table_.at(1));
  EXPECT_TRUE(killed_.empty());
  ASSERT_TRUE(run_until(io_, [&] { return killed_ == Numbers{1}; }));
}

TEST_F(Succession, AWorkerWithoutSocketsIsRefused) {
  const WorkerProcess process(directory_.path(), 1);
  Connection connection(io_, process.child());
  EXPECT_EQ(greet(connection.link, 1, 0).error().code, Errc::kLayout);
  EXPECT_FALSE(succession_.serves(1));
}

TEST_F(Succession, AProcessThatIsNoWorkerIsRefused) {
  const WorkerProcess process(directory_.path(), 1);
  Connection connection(io_, process.child());
  EXPECT_EQ(greet(connection.link, 3, 2).error().code, Errc::kDenied);
  EXPECT_FALSE(succession_.serves(3));
}

TEST_F(Succession, ADrainingSlotEndsWithItsWorker) {
  const WorkerProcess process(directory_.path(), 1);
  Connection connection(io_, process.child());
  table_.phase.settled = true;
  table_.at(1).state = WorkerSlot::State::kDraining;
  ASSERT_TRUE(greet(connection.link, 1, 2));
  EXPECT_EQ(drained_, Numbers{1});
  EXPECT_TRUE(launched_.empty());
}

TEST_F(Succession, ABrokenConnectionLeavesTheProcessFollowed) {
  const WorkerProcess process(directory_.path(), 1);
  Connection connection(io_, process.child());
  ASSERT_TRUE(greet(connection.link, 1, 2));
  EXPECT_TRUE(succession_.connection_lost(connection.link.get()));
  EXPECT_FALSE(succession_.connection_lost(connection.link.get()));
  EXPECT_TRUE(succession_.serves(1));
  succession_.stop(table_.at(1));
  EXPECT_EQ(killed_, Numbers{1}) << "nothing else reaches it";
}

}  // namespace layout_succession_test
}  // namespace pando::manager
