#pragma once

#include <asio/io_context.hpp>
#include <cstdint>
#include <ctime>
#include <functional>
#include <string>

#include "base/bytes.h"
#include "base/fd.h"
#include "ipc/worker_messages.h"
#include "worker/tap/exchange.h"
#include "worker/tap/stream_sender.h"

namespace pando::worker {

/// Writes lines of the query log to the manager (worker/tap/stream_sender.h), which has the file.
class QueryLog {
 public:
  /// `count`: lines that the stream has taken, and lines that were dropped.
  using Count = std::function<void(std::uint64_t lines, std::uint64_t dropped)>;

  QueryLog(asio::io_context& io, Count count);
  QueryLog(const QueryLog&) = delete;
  QueryLog& operator=(const QueryLog&) = delete;

  /// Takes new settings, and a stream in place of the one before if there is a descriptor.
  void set(const ipc::QueryLog& settings, Fd stream);
  [[nodiscard]] bool on() const noexcept { return settings_.on; }

  /// Whether this request is in the sample. Call once a request.
  [[nodiscard]] bool takes(ByteView request) noexcept;
  /// Writes the line of a request of the sample (worker/tap/query_log_line.h).
  void write(const Exchange& exchange, ExchangeEnd end, ByteView request, ByteView response,
             const timespec& sent);
  /// To be called when answers were sent: sends what waits if that is worth a call.
  void answers_sent() { sender_.answers_sent(); }
  /// Sends what the stream takes now, and ends it.
  void end() { sender_.end({}); }

 private:
  ipc::QueryLog settings_;
  StreamSender sender_;
  std::string line_;            ///< the line in hand
  std::uint64_t requests_ = 0;  ///< since the last one of the sample
};

}  // namespace pando::worker
