#include "manager/control/rolling_restart.h"

#include <algorithm>
#include <utility>

#include "ipc/log.h"

namespace pando::manager {

namespace {

using State = WorkerStatus::State;

/// A worker needs some ten milliseconds to serve or to end.
constexpr std::chrono::milliseconds kLook{10};

const WorkerStatus* in_slot(const std::vector<WorkerStatus>& workers, std::uint32_t slot) {
  const auto found = std::ranges::find(workers, slot, &WorkerStatus::slot);
  return found == workers.end() ? nullptr : &*found;
}

}  // namespace

Status RollingRestart::begin(Done done, std::chrono::milliseconds step_time) {
  if (done_) return fail(Errc::kExists, "a restart of the workers is under way");
  old_.clear();
  for (const WorkerStatus& worker : pool_.status())
    if (worker.state != State::kDraining) old_.push_back({worker.slot, worker.pid});
  if (old_.empty()) return fail(Errc::kNotFound, "there are no workers");
  std::ranges::reverse(old_);  // the lowest slot first
  step_time_ = step_time;
  substitute_.reset();
  draining_.reset();
  if (auto started = start_substitute(); !started) return started;
  done_ = std::move(done);
  log::info("workers_restarting", "workers", old_.size());
  look_again();
  return {};
}

void RollingRestart::look_again() {
  timer_.expires_after(kLook);
  timer_.async_wait([this](const asio::error_code& error) {
    if (!error) look();
  });
}

/// The next step, if the last one has ended: a new worker serves, then an old one is drained; it has
/// gone, then a new one is started in its place.
void RollingRestart::look() {
  const auto workers = pool_.status();
  Status step;
  if (substitute_) {
    const WorkerStatus* worker = in_slot(workers, *substitute_);
    // Somebody who lowered the number of workers may have ended it: that is one worker less.
    if (worker == nullptr || worker->state == State::kServing) step = drain_next();
  } else if (draining_) {
    const WorkerStatus* worker = in_slot(workers, draining_->slot);
    if (worker == nullptr || worker->pid != draining_->pid) {
      draining_.reset();
      if (old_.empty()) return end({});
      step = start_substitute();
    }
  }
  if (!step) return end(std::move(step));
  if (std::chrono::steady_clock::now() - step_began_ > step_time_)
    return end(fail(Errc::kIo, "the worker of slot {} {} after {} s",
                    substitute_ ? *substitute_ : draining_->slot,
                    substitute_ ? "does not serve" : "has not ended",
                    std::chrono::ceil<std::chrono::seconds>(step_time_).count()));
  look_again();
}

Status RollingRestart::start_substitute() {
  auto slot = pool_.add();
  if (!slot) return pass(slot);
  substitute_ = *slot;
  step_began_ = std::chrono::steady_clock::now();
  return {};
}

/// An old worker that has ended by itself was replaced already, and costs no step.
Status RollingRestart::drain_next() {
  substitute_.reset();
  step_began_ = std::chrono::steady_clock::now();
  draining_ = old_.back();
  old_.pop_back();
  if (auto drained = pool_.remove(draining_->slot); !drained && drained.error().code != Errc::kNotFound)
    return drained;
  return {};
}

void RollingRestart::end(Status result) {
  if (result)
    log::info("workers_restarted");
  else
    log::error("workers_not_restarted", "reason", result.error().text);
  std::exchange(done_, {})(std::move(result));
}

}  // namespace pando::manager
