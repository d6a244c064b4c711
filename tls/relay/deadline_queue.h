#pragma once

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <list>
#include <memory>

namespace pando::tls {

/// Things that all have to be done after the same time: one timer is enough. The order of their
/// deadlines is the order in which they were added.
template <class Thing>
class DeadlineQueue {
 public:
  using Clock = std::chrono::steady_clock;
  struct Entry {
    Thing* thing;
    Clock::time_point begun;
  };
  using Place = typename std::list<Entry>::iterator;

  /// `expired` is called once the time is over; it has to remove the thing.
  DeadlineQueue(asio::io_context& io, std::function<void(Thing&)> expired)
      : timer_(io), expired_(std::move(expired)) {}

  void set_time(std::chrono::milliseconds time) noexcept { time_ = time; }
  /// A place in the list, for remove().
  Place add(Thing& thing) {
    const Place place = entries_.insert(entries_.end(), {&thing, Clock::now()});
    if (entries_.size() == 1) wait();
    return place;
  }
  void remove(Place place) noexcept { entries_.erase(place); }

 private:
  static constexpr int kBudget = 64;

  void wait() {
    if (entries_.empty()) return;
    timer_.expires_at(entries_.front().begun + time_);
    timer_.async_wait([this](const asio::error_code& error) {
      if (!error) look();
    });
  }
  /// The timer may be early, since the front changes; it is never late.
  void look() {
    for (int i = 0; i < kBudget && !entries_.empty(); ++i) {
      const Entry front = entries_.front();
      if (Clock::now() < front.begun + time_) break;
      expired_(*front.thing);
    }
    wait();
  }

  asio::steady_timer timer_;
  std::function<void(Thing&)> expired_;
  std::chrono::milliseconds time_{10'000};
  std::list<Entry> entries_;
};

}  // namespace pando::tls
