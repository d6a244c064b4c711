#include "manager/net/log_line_splitter.h"

#include <algorithm>

namespace pando::manager {

namespace {

bool is_good(std::string_view line) {
  return line.size() >= 2 && line.size() <= LogLineSplitter::kMaxLine && line.front() == '{' &&
         line.back() == '}' &&
         std::all_of(line.begin(), line.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

}  // namespace

std::size_t LogLineSplitter::take(std::string_view octets,
                                  const std::function<void(std::string_view)>& line) {
  std::size_t bad = 0;
  while (!octets.empty()) {
    const std::size_t end = octets.find('\n');
    const std::string_view part = octets.substr(0, end);
    if (!too_long_ && begun_.size() + part.size() > kMaxLine) too_long_ = true;
    if (too_long_)
      begun_.clear();
    else
      begun_ += part;
    if (end == std::string_view::npos) return bad;
    if (!too_long_ && is_good(begun_)) {
      begun_ += '\n';
      line(begun_);
    } else {
      ++bad;
    }
    begun_.clear();
    too_long_ = false;
    octets.remove_prefix(end + 1);
  }
  return bad;
}

}  // namespace pando::manager
