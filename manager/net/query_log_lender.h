#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/fd.h"
#include "ipc/worker_messages.h"
#include "manager/net/query_log_thread.h"

namespace pando::manager {

/// server.query-log: where the lines go, and what workers write.
struct QueryLogOptions {
  QueryLogTarget target;
  ipc::QueryLog what;
  bool operator==(const QueryLogOptions&) const = default;
};

/// Lends each worker a stream for its lines of the query log, whose other end the manager's thread
/// reads: workers can open no file. A worker has one stream while the manager lives.
class QueryLogLender {
 public:
  struct Calls {
    /// Tells the worker of a slot; false when there is none.
    std::function<bool(std::uint32_t slot, const ipc::QueryLog& what, Fd stream)> tell;
    /// The slots whose workers serve.
    std::function<std::vector<std::uint32_t>()> serving;
  };

  QueryLogLender(std::optional<QueryLogOptions> options, Calls calls);

  /// For present and future workers; none switches the log off.
  void set(std::optional<QueryLogOptions> options);
  /// The slot has a worker that is served from now on.
  void worker_came(std::uint32_t slot);
  [[nodiscard]] QueryLogThread::Counters counters() const noexcept;

 private:
  [[nodiscard]] bool start_thread();
  void lend(std::uint32_t slot);

  std::optional<QueryLogOptions> options_;
  Calls calls_;
  std::unique_ptr<QueryLogThread> thread_;  ///< from the first use on
};

}  // namespace pando::manager
