#pragma once

#include <asio/io_context.hpp>
#include <ctime>

#include "base/bytes.h"
#include "base/fd.h"
#include "ipc/worker_messages.h"
#include "worker/tap/dnstap_writer.h"
#include "worker/tap/exchange.h"
#include "worker/tap/query_log.h"

namespace pando::worker {

/// dnstap and the query log, which report requests and responses, each with a sample of its
/// own. They get these after the answers were sent.
class Taps {
 public:
  Taps(asio::io_context& io, DnstapWriter::Calls dnstap, QueryLog::Count query_log);

  void set(ipc::Dnstap&& settings, Fd stream) {
    dnstap_.set(std::move(settings), std::move(stream));
  }
  void set(const ipc::QueryLog& settings, Fd stream) { log_.set(settings, std::move(stream)); }
  [[nodiscard]] bool on() const noexcept { return dnstap_.on() || log_.on(); }

  /// Notes in `exchange` the samples that this request is in; false if it is in none. Call once a
  /// request.
  [[nodiscard]] bool take(ByteView request, Exchange& exchange) noexcept;
  /// Whether the end of the exchange is reported, too.
  [[nodiscard]] bool wants_end(const Exchange& exchange, ByteView request) const noexcept;
  void tell_request(const Exchange& exchange, ByteView request);
  /// `response` is empty unless `end` is kAnswered, and `sent` is the time at which it left.
  void tell_end(const Exchange& exchange, ExchangeEnd end, ByteView request, ByteView response,
                const timespec& sent);
  /// The end of an exchange whose response has come from the manager, or none has.
  void tell_end(const HeldExchange& held, ByteView response);
  /// To be called when answers were sent: sends what waits if that is worth a call.
  void answers_sent();
  /// Sends what the streams take now, and ends them.
  void end();

  [[nodiscard]] static timespec now() noexcept;

 private:
  DnstapWriter dnstap_;
  QueryLog log_;
};

}  // namespace pando::worker
