#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace pando::manager {

/// The time of new signatures. The host's clock may be wrong: by a mistake of its operator, or after
/// a start without a network. Signatures with such a time would make a zone bogus, so this clock
/// goes on by itself when the host's one jumps, until somebody vouches for the host's one. All times
/// are seconds. Lives on the commit thread.
class SigningClock {
 public:
  /// The host's clocks.
  struct Sources {
    std::function<std::uint64_t()> host_time;    ///< since 1970 (CLOCK_REALTIME)
    std::function<std::uint64_t()> steady_time;  ///< never set by anybody (CLOCK_BOOTTIME)
    /// Whether the kernel knows that some time service keeps the host's clock right.
    std::function<bool()> is_synchronised;
  };
  /// The host's clock is followed when it moves less than this in a second: time services do so.
  static constexpr std::uint64_t kMaxStep = 600;

  /// The host's clocks, with a function that tells seconds since 1970.
  [[nodiscard]] static Sources sources_of_host(std::function<std::uint64_t()> host_time);
  explicit SigningClock(Sources sources);

  /// Follows the host's clock, or goes on without it; to be called each second or so. True: it
  /// follows a jump, so that times of before mean nothing any more.
  bool check();
  /// The operator says that the host's clock is right now. True: see check().
  bool confirm();
  /// Since 1970.
  [[nodiscard]] std::uint64_t now() const;

  /// Why signatures must not be made for a zone whose newest one was made at `last_signed` (0:
  /// none) and ends at `last_end`; empty: they may. The clock of a host that has
  /// just started is wrong if it lies before that time, and in doubt if it lay after the end of all
  /// signatures at the start. A clock that is synchronised, or confirmed, is believed.
  [[nodiscard]] std::string doubt(std::uint64_t last_signed, std::uint64_t last_end) const;
  /// That the host's clock jumped and is not followed, in one line; empty: it is followed.
  [[nodiscard]] std::string problem() const;

 private:
  [[nodiscard]] std::uint64_t own_time() const;
  void follow();

  Sources sources_;
  std::uint64_t host_at_ = 0;    // the host's time when it was last followed
  std::uint64_t steady_at_ = 0;  // and the steady time then
  std::uint64_t started_ = 0;    // the host's time at the start
  bool is_believed_ = false;     // synchronised or confirmed since the start
  bool is_left_ = false;         // the host's clock jumped
};

}  // namespace pando::manager
