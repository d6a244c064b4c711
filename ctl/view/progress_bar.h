#pragma once

#include <chrono>
#include <cstdint>
#include <ostream>
#include <string>
#include <thread>

#include "base/progress.h"

namespace pando::ctl {

/// A bar for people who wait at a terminal. The bar appears once the work takes longer than a
/// moment, is redrawn in place, and vanishes at the end.
class ProgressBar {
 public:
  using Clock = std::chrono::steady_clock;

  /// `total` 0: not known, so no bar is drawn. No bar either without a terminal (`on_terminal`
  /// false).
  ProgressBar(std::ostream& err, bool on_terminal, std::uint64_t total,
              Clock::time_point start = Clock::now());
  /// For work in phases.
  ProgressBar(std::ostream& err, bool on_terminal, Clock::time_point start = Clock::now());
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  ~ProgressBar();

  /// `done` of `total`; cheap enough to be called often.
  void at(std::uint64_t done, Clock::time_point now = Clock::now());
  /// For work in phases: draws the bar and the phase's name. While the total is not known, draws
  /// the name and the amount done.
  void at(const Progress::Seen& seen, Clock::time_point now = Clock::now());

 private:
  [[nodiscard]] bool is_time(Clock::time_point now);
  void draw(const std::string& line);

  std::ostream& err_;
  bool on_terminal_;
  std::uint64_t total_;
  Clock::time_point next_;
  std::size_t drawn_ = 0;  // width of the longest line so far, in columns
};

/// Runs a thread that draws a ProgressBar of `progress` until the watch is destroyed. No other
/// thread writes to `err` meanwhile.
class ProgressWatch {
 public:
  ProgressWatch(std::ostream& err, bool on_terminal, const Progress& progress);

 private:
  std::jthread thread_;  // no thread without a terminal
};

/// Whether the process's stderr is a terminal.
[[nodiscard]] bool stderr_is_terminal() noexcept;

}  // namespace pando::ctl
