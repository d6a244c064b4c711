#include "ctl/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

namespace pando::ctl {

namespace {
constexpr std::chrono::milliseconds kMoment{500};
constexpr std::chrono::milliseconds kRedraw{100};
constexpr std::size_t kWidth = 40;
}  // namespace

ProgressBar::ProgressBar(std::ostream& err, bool on_terminal, std::uint64_t total,
                         Clock::time_point start)
    : err_(err), total_(on_terminal ? total : 0), next_(start + kMoment) {}

ProgressBar::~ProgressBar() {
  if (drawn_) err_ << '\r' << std::string(kWidth + 7, ' ') << '\r' << std::flush;
}

void ProgressBar::at(std::uint64_t done, Clock::time_point now) {
  if (total_ == 0 || now < next_) return;
  next_ = now + kRedraw;
  drawn_ = true;
  const double share = static_cast<double>(std::min(done, total_)) / static_cast<double>(total_);
  const auto filled = static_cast<std::size_t>(share * kWidth);
  err_ << fmt::format("\r[{:<{}}] {:>3}%", std::string(filled, '='), kWidth,
                      static_cast<unsigned>(share * 100.0))
       << std::flush;
}

bool stderr_is_terminal() noexcept { return ::isatty(STDERR_FILENO) == 1; }

}  // namespace pando::ctl
