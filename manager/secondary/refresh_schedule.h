#pragma once

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "dns/name.h"

namespace pando::manager {

/// Zones by the wall-clock time of their next refresh attempt, and the timers that have due zones
/// started. A zone is given with its time, which the caller stores. Times are in seconds since
/// 1970.
///
/// Lives on the loop's thread.
class RefreshSchedule {
 public:
  struct Calls {
    std::function<std::uint64_t()> now;  ///< by the wall clock
    std::function<void()> run;           ///< starts due zones, then calls arm()
    std::function<void()> tick;          ///< comes before `run` when arm_tick() asked for it
  };
  /// `loop` outlives the object.
  RefreshSchedule(asio::io_context& loop, Calls calls);
  ~RefreshSchedule() { stop(); }
  RefreshSchedule(const RefreshSchedule&) = delete;
  RefreshSchedule& operator=(const RefreshSchedule&) = delete;

  void add(const dns::Name& zone, std::uint64_t due) { due_.emplace(due, zone); }
  /// Removes a zone that may be scheduled for `due`.
  void remove(const dns::Name& zone, std::uint64_t due) { due_.erase({due, zone}); }
  void clear() noexcept { due_.clear(); }
  /// Takes the zone with the earliest time, if that has come; nullopt: none is due.
  std::optional<dns::Name> take_due(std::uint64_t now);

  /// Sets the timer for the earliest zone. `run` is posted if a zone is due now.
  void arm();
  /// Has `tick` and `run` called after `pause`, once for all calls until then.
  void arm_tick(std::chrono::milliseconds pause);
  /// Posts `run` to the loop, once for all calls until then.
  void run_soon();
  /// Compares the wall clock with the last call's. If it was put back since: its time before that.
  [[nodiscard]] std::optional<std::uint64_t> time_before_step(std::uint64_t now);
  /// Calls nothing any more.
  void stop();

 private:
  using Due = std::pair<std::uint64_t, dns::Name>;

  asio::io_context& loop_;
  Calls calls_;
  std::set<Due, bool (*)(const Due&, const Due&)> due_;
  asio::steady_timer timer_;
  asio::steady_timer tick_timer_;
  std::uint64_t last_;  // wall-clock time of the last time_before_step()
  bool timer_set_ = false;
  bool tick_set_ = false;
  bool is_posted_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace pando::manager
