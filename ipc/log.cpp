#include "ipc/log.h"

#include <fcntl.h>
#include <poll.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <mutex>

#include "base/files/file_status.h"

namespace pando::log {

namespace {

std::atomic<std::uint64_t> dropped_lines{0};
std::atomic<bool> as_json{false};
std::atomic<bool> to_journal{false};

/// The level as systemd-journald reads it at the beginning of a line (sd-daemon(3)).
std::string_view journal_prefix(spdlog::level::level_enum level) {
  switch (level) {
    case spdlog::level::err:
      return "<3>";
    case spdlog::level::warn:
      return "<4>";
    case spdlog::level::debug:
      return "<7>";
    default:
      return "<6>";
  }
}

/// Whether standard error is the journal's stream, which $JOURNAL_STREAM names by device and inode
/// (systemd.exec(5)). A redirected stream is another one.
bool writes_to_journal() {
  const char* stream = std::getenv("JOURNAL_STREAM");
  struct stat status {};
  return stream != nullptr && file_status(STDERR_FILENO, status) &&
         fmt::format("{}:{}", status.st_dev, status.st_ino) == stream;
}

/// Standard error may be a pipe shared with other processes. The sink does not make it
/// non-blocking, since that flag would be theirs, too; it writes a line only when poll() reports
/// room. A ready pipe takes PIPE_BUF bytes without blocking (pipe(7)), so longer lines are cut.
class PatientlessSink : public spdlog::sinks::base_sink<std::mutex> {
 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    if (to_journal) {
      const std::string_view prefix = journal_prefix(message.level);
      line.append(prefix.data(), prefix.data() + prefix.size());
    }
    formatter_->format(message, line);
    constexpr std::size_t kMax = 4096;
    std::size_t size = line.size();
    if (size > kMax) {
      size = kMax;
      line[kMax - 1] = '\n';
    }
    pollfd ready{STDERR_FILENO, POLLOUT, 0};
    if (::poll(&ready, 1, 0) != 1 || (ready.revents & POLLOUT) == 0 ||
        ::write(STDERR_FILENO, line.data(), size) < 0)
      dropped_lines.fetch_add(1, std::memory_order_relaxed);
  }
  void flush_() override {}
};

/// The library has its levels in the same order.
spdlog::level::level_enum spdlog_level(Level level) {
  return static_cast<spdlog::level::level_enum>(spdlog::level::debug + static_cast<int>(level));
}
static_assert(spdlog::level::err - spdlog::level::debug == static_cast<int>(Level::kError));

spdlog::level::level_enum level_from_text(const std::string& text) {
  if (text == "debug") return spdlog::level::debug;
  if (text == "warning") return spdlog::level::warn;
  if (text == "error") return spdlog::level::err;
  if (text == "off") return spdlog::level::off;
  return spdlog::level::info;
}

std::shared_ptr<spdlog::logger>& logger() {
  static std::shared_ptr<spdlog::logger> instance =
      std::make_shared<spdlog::logger>("pando", std::make_shared<PatientlessSink>());
  return instance;
}

void append_escaped(std::string& out, std::string_view value) {
  for (const char c : value) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      // This escape also keeps hostile names from starting a new line of the log.
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    } else {
      out += c;
    }
  }
}

bool needs_quotes(std::string_view value) {
  if (value.empty()) return true;
  for (const char c : value)
    if (c == ' ' || c == '"' || c == '=' || c == '\\' || static_cast<unsigned char>(c) < 0x20 ||
        c == 0x7F)
      return true;
  return false;
}

}  // namespace

void protect_process() {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  // open(2) returns the lowest free number, which in this order is the closed one.
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(standard, F_GETFD) < 0 && ::open("/dev/null", O_RDWR) < 0) return;
}

void start(const Options& options) {
  as_json = options.format == "json";
  to_journal = writes_to_journal();
  logger()->set_level(level_from_text(options.level));
  const std::string pattern = as_json
                                  ? R"({"time":"%Y-%m-%dT%H:%M:%S.%e%z","level":"%l","process":")" +
                                        options.process + R"(",%v})"
                                  : "%Y-%m-%dT%H:%M:%S.%e%z %l " + options.process + ": %v";
  logger()->set_pattern(pattern);
}

bool enabled(Level level) noexcept { return logger()->should_log(spdlog_level(level)); }

std::uint64_t dropped() noexcept { return dropped_lines.load(std::memory_order_relaxed); }

Line::Line(std::string_view event) {
  if (as_json) {
    text_ = "\"event\":\"";
    append_escaped(text_, event);
    text_ += '"';
  } else {
    text_ = event;
  }
}

void Line::add(std::string_view name, std::string_view value) {
  if (as_json) {
    text_ += fmt::format(",\"{}\":\"", name);
    append_escaped(text_, value);
    text_ += '"';
    return;
  }
  text_ += fmt::format(" {}=", name);
  if (!needs_quotes(value)) {
    text_ += value;
    return;
  }
  text_ += '"';
  append_escaped(text_, value);
  text_ += '"';
}

void Line::add_literal(std::string_view name, std::string_view text) {
  text_ += as_json ? fmt::format(",\"{}\":{}", name, text) : fmt::format(" {}={}", name, text);
}

void Line::write(Level level) const { logger()->log(spdlog_level(level), std::string_view(text_)); }

}  // namespace pando::log
