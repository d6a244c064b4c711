#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace pando::manager {

/// Cuts the octets of one worker's stream into lines of the query log. A worker that was taken over
/// may send anything, and people look at logs in terminals. So only lines that look as those of an
/// honest worker come through: printable ASCII between braces, of a bounded length.
class LogLineSplitter {
 public:
  /// Three names of 255 octets, each written as \\DDD, and the rest of a line.
  static constexpr std::size_t kMaxLine = 8192;

  /// Calls `line` with each good line, its newline included, and returns the number of bad ones.
  std::size_t take(std::string_view octets, const std::function<void(std::string_view)>& line);

 private:
  std::string begun_;      ///< the line whose end has not come
  bool too_long_ = false;  ///< the rest of that line is skipped
};

}  // namespace pando::manager
