#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

/// Logs are events with fields: `worker_started slot=0 pid=4711`. Each process makes one logger
/// after exec. The logger is synchronous and writes to standard error without ever blocking.
/// Reason: a stalled reader of the log must not stop the writer of all zones. Lines that find no
/// room are dropped and counted.
namespace pando::log {

enum class Level : std::uint8_t { kDebug, kInfo, kWarning, kError };

/// The first statement of each process that serves. No log line can end the process, because the
/// signals of a pipe without a reader (SIGPIPE) and of a full file (SIGXFSZ) are ignored: write(2)
/// then fails, and the line counts as dropped. Closed standard descriptors become /dev/null,
/// because lines would else go to whatever file gets number 2. Programs started later get the
/// signals' defaults back (SpawnAttributes of the launcher).
void protect_process();

struct Options {
  std::string level = "info";   ///< debug | info | warning | error | off
  std::string format = "text";  ///< text | json
  std::string process = "pando";
};

/// Starts (or, on reload, changes) the process's logger. Unknown words select the defaults.
void start(const Options& options);
[[nodiscard]] bool enabled(Level level) noexcept;
/// Lines lost because standard error did not take them.
[[nodiscard]] std::uint64_t dropped() noexcept;

/// One event under construction; see info() and its siblings.
class Line {
 public:
  explicit Line(std::string_view event);
  void add(std::string_view name, std::string_view value);
  /// A number or a truth value: without quotes in JSON.
  void add_literal(std::string_view name, std::string_view text);
  void write(Level level) const;

 private:
  std::string text_;
};

namespace detail {
inline void add_fields(Line&) {}
template <class Value, class... Rest>
void add_fields(Line& line, std::string_view name, const Value& value, const Rest&... rest) {
  if constexpr (std::is_arithmetic_v<Value> && !std::is_same_v<Value, char>)
    line.add_literal(name, fmt::format("{}", value));
  else
    line.add(name, fmt::format("{}", value));
  add_fields(line, rest...);
}
template <class... Fields>
void event(Level level, std::string_view name, const Fields&... fields) {
  static_assert(sizeof...(fields) % 2 == 0, "fields are pairs of name and value");
  if (!enabled(level)) return;
  Line line(name);
  add_fields(line, fields...);
  line.write(level);
}
}  // namespace detail

/// `log::info("worker_started", "slot", slot, "pid", pid);`
template <class... Fields>
void debug(std::string_view event, const Fields&... fields) {
  detail::event(Level::kDebug, event, fields...);
}
template <class... Fields>
void info(std::string_view event, const Fields&... fields) {
  detail::event(Level::kInfo, event, fields...);
}
template <class... Fields>
void warning(std::string_view event, const Fields&... fields) {
  detail::event(Level::kWarning, event, fields...);
}
template <class... Fields>
void error(std::string_view event, const Fields&... fields) {
  detail::event(Level::kError, event, fields...);
}

}  // namespace pando::log
