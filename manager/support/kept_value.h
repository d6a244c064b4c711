#pragma once

#include <chrono>
#include <optional>
#include <utility>

namespace pando::manager {

/// A value that is costly to make and holds for some time: until then, and as long as a mark of
/// what it was made from stays the same, it is made once. Not thread-safe.
template <class Value, class Mark>
class KeptValue {
 public:
  using Clock = std::chrono::steady_clock;

  /// `time`: for which a value holds.
  explicit KeptValue(Clock::duration time) noexcept : time_(time) {}

  /// The cached value, or the one that `make` gives now. `mark` is older than what `make`
  /// reads.
  template <class Make>
  const Value& get(const Mark& mark, Clock::time_point now, Make make) {
    if (!value_ || !(mark_ == mark) || now >= until_) {
      value_ = make();
      mark_ = mark;
      until_ = now + time_;
    }
    return *value_;
  }
  /// Takes the value away once its time has passed, for a caller who can free it in another thread.
  [[nodiscard]] std::optional<Value> take_old(Clock::time_point now) {
    if (!value_ || now < until_) return std::nullopt;
    return std::exchange(value_, std::nullopt);
  }
  /// The value does not hold any more.
  void drop() noexcept { until_ = {}; }

 private:
  Clock::duration time_;
  std::optional<Value> value_;
  Mark mark_{};
  Clock::time_point until_{};
};

}  // namespace pando::manager
