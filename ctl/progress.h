#pragma once

#include <chrono>
#include <cstdint>
#include <ostream>
#include <string>

namespace pando::ctl {

/// A bar for people who wait at a terminal: drawn over itself once what it is for takes longer than
/// a moment, and gone at the end.
class ProgressBar {
 public:
  using Clock = std::chrono::steady_clock;

  /// `total` 0: not known, nothing is drawn; nor where nobody looks (`on_terminal` false).
  ProgressBar(std::ostream& err, bool on_terminal, std::uint64_t total,
              Clock::time_point start = Clock::now());
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  ~ProgressBar();

  /// `done` of `total`; cheap enough to be called often.
  void at(std::uint64_t done, Clock::time_point now = Clock::now());

 private:
  std::ostream& err_;
  std::uint64_t total_;
  Clock::time_point next_;
  bool drawn_ = false;
};

/// Whether somebody sees what is written to the process's stderr.
[[nodiscard]] bool stderr_is_terminal() noexcept;

}  // namespace pando::ctl
