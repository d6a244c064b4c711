#include "manager/workers/rules/pin_watch.h"

#include <algorithm>

#include "ipc/counters.h"

namespace pando::manager {

namespace {

using Clock = PinWatch::Clock;

/// Leases carry CLOCK_MONOTONIC in seconds, which is what steady_clock counts.
std::uint64_t seconds_of(Clock::time_point now) {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::seconds>(now.time_since_epoch()).count());
}

}  // namespace

Clock::duration HoldHistory::note(std::uint64_t version, Clock::time_point now,
                                  std::chrono::milliseconds limit) {
  constexpr int kEntries = 1024;
  // Only the newest of the entries beyond the limit is of use.
  while (seen_.size() > 1 && now - seen_[1].since > limit) seen_.erase(seen_.begin());
  const auto held = std::find_if(seen_.begin(), seen_.end(),
                                 [version](const Seen& seen) { return seen.version >= version; });
  if (held != seen_.end()) return now - held->since;
  if (!seen_.empty() && now - seen_.back().since < Clock::duration(limit) / kEntries)
    seen_.back().version = version;
  else
    seen_.push_back({version, now});
  return now - seen_.back().since;
}

bool PinWatch::overdue(shm::SlotPage& page, Clock::time_point now,
                       std::chrono::milliseconds pin_time, std::uint64_t current) {
  bool stuck = pin_overdue(page, now, pin_time);
  if (memory_overdue(page, now, pin_time, current)) stuck = true;
  const std::uint64_t limit = static_cast<std::uint64_t>(pin_time.count()) / 1000;
  const std::uint64_t seconds = seconds_of(now);
  for (auto& lease : page.leases) {
    if (lease.epoch.load(std::memory_order_relaxed) == 0) continue;
    const std::uint64_t since = lease.since.load(std::memory_order_relaxed);
    const std::uint64_t age = seconds > since ? seconds - since : 0;
    if (age <= limit) continue;
    lease.revoke.store(1, std::memory_order_relaxed);
    stuck = stuck || age > limit + static_cast<std::uint64_t>(kRevokeGrace.count());
  }
  return stuck;
}

bool PinWatch::pin_overdue(const shm::SlotPage& page, Clock::time_point now,
                           std::chrono::milliseconds pin_time) {
  const std::uint64_t epoch = page.epoch.load(std::memory_order_relaxed);
  const std::uint64_t progress =
      page.counters[ipc::counter_index(ipc::Counter::kBatches)].load(std::memory_order_relaxed);
  if (epoch == 0 || epoch != epoch_ || progress != progress_) {
    // Idle, on another version, or in another batch since the last check.
    epoch_ = epoch;
    progress_ = progress;
    since_ = now;
    return false;
  }
  return now - since_ > pin_time;
}

bool PinWatch::memory_overdue(shm::SlotPage& page, Clock::time_point now,
                              std::chrono::milliseconds pin_time, std::uint64_t current) {
  const std::uint64_t held = oldest(page);
  if (held >= current) return false;
  const auto age = holds_.note(held, now, pin_time + kRevokeGrace);
  if (age <= pin_time) return false;
  revoke_up_to(page, held);
  return age > pin_time + kRevokeGrace;
}

void PinWatch::revoke_up_to(shm::SlotPage& page, std::uint64_t epoch) noexcept {
  for (auto& lease : page.leases) {
    const std::uint64_t held = lease.epoch.load(std::memory_order_relaxed);
    if (held != 0 && held <= epoch) lease.revoke.store(1, std::memory_order_relaxed);
  }
}

std::uint64_t PinWatch::oldest(const shm::SlotPage& page) noexcept {
  std::uint64_t oldest = UINT64_MAX;
  const auto consider = [&](std::uint64_t epoch) {
    if (epoch != 0) oldest = std::min(oldest, epoch);
  };
  consider(page.epoch.load(std::memory_order_relaxed));
  for (const auto& lease : page.leases) consider(lease.epoch.load(std::memory_order_relaxed));
  return oldest;
}

bool OldestHold::overdue(std::uint64_t epoch, Clock::time_point now, bool urgent) {
  const auto age = asked_.note(epoch, now, kGrace);
  const bool is_overdue = age > (urgent ? Clock::duration(kUrgentGrace) : Clock::duration(kGrace));
  if (is_overdue) {
    asked_.clear();
    asked_.note(epoch, now, kGrace);
  }
  return is_overdue;
}

}  // namespace pando::manager
