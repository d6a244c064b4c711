#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/fd.h"
#include "base/result.h"

namespace pando::manager {

/// Where the lines of the query log go: the path of a file, or of a reader's Unix socket.
struct QueryLogTarget {
  std::string path;
  bool is_socket = false;
  bool operator==(const QueryLogTarget&) const = default;
};

/// Writes lines to a file or to a reader. A line is written as a whole or not at all; a line that
/// finds no room is dropped and counted. Writing to a file may wait for its disk, so a thread of
/// its own calls this. Writing to a reader never waits.
///
/// A file is opened anew when another one has its path, or none: programs that rotate logs need
/// tell nobody.
class QueryLogSink {
 public:
  using Clock = std::chrono::steady_clock;
  /// Octets that may wait for a reader.
  static constexpr std::size_t kMaxWaitingBytes = std::size_t{1} << 20;
  /// The time between two checks of the path of the file, and between two attempts to open.
  static constexpr std::chrono::milliseconds kPause{1000};

  struct Counters {
    std::uint64_t written = 0;
    std::uint64_t dropped = 0;
  };

  explicit QueryLogSink(QueryLogTarget target) : target_(std::move(target)) {}

  /// Takes a line, with its newline.
  void push(std::string_view line);
  /// Writes the lines that wait; a reader may not take all of them.
  void flush(Clock::time_point now);
  /// The reader's descriptor while lines wait for room in it; else -1.
  [[nodiscard]] int waits_for() const noexcept;
  /// Numbers since the last call.
  [[nodiscard]] Counters take_counters() noexcept { return std::exchange(counters_, {}); }

 private:
  Status open(Clock::time_point now);
  Status open_file();
  Status connect();
  [[nodiscard]] bool was_rotated() const;
  Status write_waiting();
  Status write_to_next_reader(Clock::time_point now);
  void take_back_part() noexcept;
  void drop_waiting() noexcept;
  void taken(std::size_t octets) noexcept;
  void failed(const Error& error, Clock::time_point now);

  QueryLogTarget target_;
  Fd fd_;
  dev_t device_ = 0;  ///< of the open file
  ino_t inode_ = 0;
  std::string waiting_;
  std::size_t done_ = 0;          ///< octets at the front of `waiting_` that were taken
  Clock::time_point looked_{};    ///< at the path
  Clock::time_point try_again_{};
  bool failed_ = false;           ///< and the log says so
  Counters counters_;
};

}  // namespace pando::manager
