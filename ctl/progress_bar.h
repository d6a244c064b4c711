#pragma once

#include <chrono>
#include <cstdint>
#include <ostream>
#include <string>
#include <thread>

#include "base/progress.h"

namespace pando::ctl {

/// A bar for people who wait at a terminal: drawn over itself once what it is for takes longer than
/// a moment, and gone at the end.
class ProgressBar {
 public:
  using Clock = std::chrono::steady_clock;

  /// `total` 0: not known, nothing is drawn; nor where nobody looks (`on_terminal` false).
  ProgressBar(std::ostream& err, bool on_terminal, std::uint64_t total,
              Clock::time_point start = Clock::now());
  /// For work in phases.
  ProgressBar(std::ostream& err, bool on_terminal, Clock::time_point start = Clock::now());
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  ~ProgressBar();

  /// `done` of `total`; cheap enough to be called often.
  void at(std::uint64_t done, Clock::time_point now = Clock::now());
  /// The same for work in phases: the bar and the phase's name, or, while the whole is not known,
  /// the name and what has been done.
  void at(const Progress::Seen& seen, Clock::time_point now = Clock::now());

 private:
  [[nodiscard]] bool is_time(Clock::time_point now);
  void draw(const std::string& line);

  std::ostream& err_;
  bool on_terminal_;
  std::uint64_t total_;
  Clock::time_point next_;
  std::size_t drawn_ = 0;  // columns that the longest line took
};

/// Has a thread draw a ProgressBar of what `progress` says, until it goes. Nobody else writes to
/// `err` meanwhile.
class ProgressWatch {
 public:
  ProgressWatch(std::ostream& err, bool on_terminal, const Progress& progress);

 private:
  std::jthread thread_;  // none where nobody looks
};

/// Whether somebody sees what is written to the process's stderr.
[[nodiscard]] bool stderr_is_terminal() noexcept;

}  // namespace pando::ctl
