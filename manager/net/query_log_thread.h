#pragma once

#include <cstdint>
#include <memory>

#include "base/fd.h"
#include "manager/net/query_log_sink.h"

namespace pando::manager {

/// The thread that reads the workers' lines of the query log and writes them to the target. A disk
/// that hangs holds this thread alone: the streams of the workers fill up, and the workers drop
/// lines. The other functions are the manager's thread's.
class QueryLogThread {
 public:
  struct Counters {
    std::uint64_t written = 0;
    std::uint64_t unwritten = 0;  ///< lines that the target did not take, or that were no lines
  };

  /// kIo when there is no thread to be had.
  static Result<std::unique_ptr<QueryLogThread>> start();
  /// Writes what the workers have sent, unless the disk hangs.
  ~QueryLogThread();
  QueryLogThread(const QueryLogThread&) = delete;
  QueryLogThread& operator=(const QueryLogThread&) = delete;

  /// Writes to this target from now on. Without a path: to the one before, until the streams end.
  void set_target(QueryLogTarget target);
  /// Reads this end of the stream of a slot's worker, in place of the one before.
  void read(std::uint32_t slot, Fd stream);
  [[nodiscard]] Counters counters() const noexcept;

 private:
  struct Orders;
  struct Shared;
  class Loop;
  explicit QueryLogThread(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}
  std::shared_ptr<Shared> shared_;
};

}  // namespace pando::manager
