#include "ctl/view/progress_bar.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>

#include "ctl/view/output.h"

namespace pando::ctl {

namespace {
constexpr std::chrono::milliseconds kMoment{500};
constexpr std::chrono::milliseconds kRedraw{100};
constexpr std::size_t kWidth = 40;
}  // namespace

ProgressBar::ProgressBar(std::ostream& err, bool on_terminal, std::uint64_t total,
                         Clock::time_point start)
    : err_(err), on_terminal_(on_terminal && total != 0), total_(total), next_(start + kMoment) {}

ProgressBar::ProgressBar(std::ostream& err, bool on_terminal, Clock::time_point start)
    : err_(err), on_terminal_(on_terminal), total_(0), next_(start + kMoment) {}

ProgressBar::~ProgressBar() {
  if (drawn_ != 0) err_ << '\r' << std::string(drawn_, ' ') << '\r' << std::flush;
}

bool ProgressBar::is_time(Clock::time_point now) {
  if (!on_terminal_ || now < next_) return false;
  next_ = now + kRedraw;
  return true;
}

/// Overwrites the line before, which may have been longer.
void ProgressBar::draw(const std::string& line) {
  drawn_ = std::max(drawn_, line.size());
  err_ << fmt::format("\r{:<{}}", line, drawn_) << std::flush;
}

namespace {

std::string bar_of(std::uint64_t done, std::uint64_t total) {
  const double share = static_cast<double>(std::min(done, total)) / static_cast<double>(total);
  const auto filled = static_cast<std::size_t>(share * kWidth);
  return fmt::format("[{:<{}}] {:>3}%", std::string(filled, '='), kWidth,
                     static_cast<unsigned>(share * 100.0));
}

std::string line_of(const Progress::Seen& seen) {
  if (seen.total != 0)
    return fmt::format("{} {}", bar_of(seen.done, seen.total), to_text(seen.phase));
  if (seen.phase == Progress::Phase::kReading)
    return fmt::format("reading, {}", bytes_text(seen.done));
  return std::string(to_text(seen.phase));
}

}  // namespace

void ProgressBar::at(std::uint64_t done, Clock::time_point now) {
  if (is_time(now)) draw(bar_of(done, total_));
}

void ProgressBar::at(const Progress::Seen& seen, Clock::time_point now) {
  if (is_time(now)) draw(line_of(seen));
}

ProgressWatch::ProgressWatch(std::ostream& err, bool on_terminal, const Progress& progress) {
  if (!on_terminal) return;
  thread_ = std::jthread([&err, &progress](const std::stop_token& stop) {
    ProgressBar bar(err, true);
    std::mutex mutex;
    std::condition_variable_any stopped;
    std::unique_lock lock(mutex);
    while (!stopped.wait_for(lock, stop, kRedraw, [] { return false; }) && !stop.stop_requested())
      bar.at(progress.seen());
  });
}

bool stderr_is_terminal() noexcept { return ::isatty(STDERR_FILENO) == 1; }

}  // namespace pando::ctl
