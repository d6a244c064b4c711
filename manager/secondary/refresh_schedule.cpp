#include "manager/secondary/refresh_schedule.h"

#include <algorithm>
#include <asio/post.hpp>

#include "manager/secondary/secondary_timers.h"

namespace pando::manager {

namespace {

using Due = std::pair<std::uint64_t, dns::Name>;
bool due_before(const Due& a, const Due& b) {
  return a.first != b.first ? a.first < b.first : dns::compare_canonical(a.second, b.second) < 0;
}

/// The wall clock may jump, while timers run on the steady clock. Due zones are therefore checked
/// at least once in this time.
constexpr std::uint64_t kMaxWaitSeconds = 60;

}  // namespace

RefreshSchedule::RefreshSchedule(asio::io_context& loop, Calls calls)
    : loop_(loop),
      calls_(std::move(calls)),
      due_(&due_before),
      timer_(loop),
      tick_timer_(loop),
      last_(calls_.now()) {}

void RefreshSchedule::stop() {
  *alive_ = false;
  timer_.cancel();
  tick_timer_.cancel();
}

std::optional<dns::Name> RefreshSchedule::take_due(std::uint64_t now) {
  if (due_.empty() || due_.begin()->first > now) return std::nullopt;
  return std::move(due_.extract(due_.begin()).value().second);
}

/// The timer is only ever moved to an earlier time: `run` starts all due zones when it ends.
void RefreshSchedule::arm() {
  if (due_.empty() || !*alive_) {
    timer_.cancel();
    timer_set_ = false;
    return;
  }
  const std::uint64_t now = calls_.now();
  const std::uint64_t due = due_.begin()->first;
  if (due <= now) return run_soon();
  const auto at = std::chrono::steady_clock::now() +
                  std::chrono::seconds(std::min<std::uint64_t>(due - now, kMaxWaitSeconds));
  if (timer_set_ && timer_.expiry() <= at) return;
  timer_set_ = true;
  timer_.expires_at(at);
  timer_.async_wait([this, alive = alive_](asio::error_code error) {
    if (error || !*alive) return;
    timer_set_ = false;
    calls_.run();
  });
}

void RefreshSchedule::arm_tick(std::chrono::milliseconds pause) {
  if (!*alive_ || std::exchange(tick_set_, true)) return;
  tick_timer_.expires_after(pause);
  tick_timer_.async_wait([this, alive = alive_](asio::error_code error) {
    if (error || !*alive) return;
    tick_set_ = false;
    calls_.tick();
    calls_.run();
  });
}

void RefreshSchedule::run_soon() {
  if (std::exchange(is_posted_, true)) return;
  asio::post(loop_, [this, alive = alive_] {
    if (!*alive) return;
    is_posted_ = false;
    calls_.run();
  });
}

std::optional<std::uint64_t> RefreshSchedule::time_before_step(std::uint64_t now) {
  const std::uint64_t before = std::exchange(last_, now);
  return went_back(before, now) ? std::optional(before) : std::nullopt;
}

}  // namespace pando::manager
