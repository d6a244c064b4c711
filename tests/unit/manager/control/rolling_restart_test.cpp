#include "manager/control/rolling_restart.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "tests/unit/manager/run_until.h"

namespace pando::manager {
namespace rolling_restart_test {

using State = WorkerStatus::State;
using std::chrono::milliseconds;

/// Workers that serve, and leave, after the given number of looks at them.
class FakePool {
 public:
  explicit FakePool(std::uint32_t count) {
    for (std::uint32_t slot = 0; slot < count; ++slot) workers_.push_back({slot, State::kServing, next_pid_++});
  }

  RollingRestart::Pool calls() {
    return {[this] { return look(); }, [this] { return add(); },
            [this](std::uint32_t slot) { return remove(slot); }};
  }

  [[nodiscard]] std::vector<std::int32_t> pids() const {
    std::vector<std::int32_t> pids;
    for (const auto& worker : workers_) pids.push_back(worker.pid);
    return pids;
  }
  [[nodiscard]] std::ptrdiff_t serving() const {
    return std::ranges::count(workers_, State::kServing, &WorkerStatus::state);
  }

  bool starts = true;  ///< whether new workers ever serve
  std::ptrdiff_t fewest = PTRDIFF_MAX;
  std::size_t most = 0;
  std::size_t limit = 64;

 private:
  std::vector<WorkerStatus> look() {
    ++looks_;
    if (looks_ % 2 == 0) {
      std::erase_if(workers_, [](const auto& worker) { return worker.state == State::kDraining; });
      for (auto& worker : workers_)
        if (worker.state == State::kStarting && starts) worker.state = State::kServing;
    }
    fewest = std::min(fewest, serving());
    most = std::max(most, workers_.size());
    return workers_;
  }
  Result<std::uint32_t> add() {
    if (workers_.size() >= limit) return fail(Errc::kFull, "all slots are in use");
    std::uint32_t slot = 0;
    while (std::ranges::find(workers_, slot, &WorkerStatus::slot) != workers_.end()) ++slot;
    workers_.push_back({slot, State::kStarting, next_pid_++});
    return slot;
  }
  Status remove(std::uint32_t slot) {
    const auto found = std::ranges::find(workers_, slot, &WorkerStatus::slot);
    if (found == workers_.end()) return fail(Errc::kNotFound, "no worker in slot {}", slot);
    found->state = State::kDraining;
    return {};
  }

  std::vector<WorkerStatus> workers_;
  std::int32_t next_pid_ = 100;
  unsigned looks_ = 0;
};

/// The result of a restart.
Status run(FakePool& pool, milliseconds step_time = std::chrono::seconds(60)) {
  asio::io_context io;
  RollingRestart restart(io, pool.calls());
  std::optional<Status> result;
  if (auto begun = restart.begin([&](Status done) { result = std::move(done); }, step_time); !begun)
    return begun;
  if (!testing::run_until(io, [&] { return result.has_value(); }))
    return fail(Errc::kIo, "the restart does not end");
  return *result;
}

TEST(RollingRestart, ReplacesEachWorkerWhileAsManyServe) {
  for (const std::uint32_t count : {1U, 2U, 5U}) {
    FakePool pool(count);
    const auto before = pool.pids();
    ASSERT_TRUE(run(pool));
    EXPECT_EQ(pool.serving(), count);
    EXPECT_EQ(pool.fewest, count);
    EXPECT_EQ(pool.most, count + 1);
    for (const auto pid : pool.pids()) EXPECT_EQ(std::ranges::count(before, pid), 0) << pid;
  }
}

TEST(RollingRestart, LeavesTheOthersIfANewWorkerDoesNotServe) {
  FakePool pool(3);
  pool.starts = false;
  const Status result = run(pool, milliseconds(50));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().text, "the worker of slot 3 does not serve after 1 s");
  EXPECT_EQ(pool.serving(), 3);
}

TEST(RollingRestart, SaysWhyItCannotBegin) {
  FakePool none(0);
  EXPECT_EQ(run(none).error().code, Errc::kNotFound);
  FakePool full(2);
  full.limit = 2;
  EXPECT_EQ(run(full).error().code, Errc::kFull);
}

TEST(RollingRestart, RunsOnceAtATime) {
  FakePool pool(2);
  asio::io_context io;
  RollingRestart restart(io, pool.calls());
  int done = 0;
  const auto count = [&](const Status& result) { done += result ? 1 : 0; };
  ASSERT_TRUE(restart.begin(count));
  EXPECT_EQ(restart.begin(count).error().code, Errc::kExists);
  ASSERT_TRUE(testing::run_until(io, [&] { return done == 1; }));
  ASSERT_TRUE(restart.begin(count));  // and again afterwards
  EXPECT_TRUE(testing::run_until(io, [&] { return done == 2; }));
}

}  // namespace rolling_restart_test
}  // namespace pando::manager
