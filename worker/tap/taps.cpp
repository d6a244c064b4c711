#include "worker/tap/taps.h"

#include <utility>

namespace pando::worker {

Taps::Taps(asio::io_context& io, DnstapWriter::Calls dnstap, QueryLog::Count query_log)
    : dnstap_(io, std::move(dnstap)), log_(io, std::move(query_log)) {}

timespec Taps::now() noexcept {
  timespec time{};
  ::clock_gettime(CLOCK_REALTIME, &time);
  return time;
}

bool Taps::take(ByteView request, Exchange& exchange) noexcept {
  exchange.to_dnstap = dnstap_.on() && dnstap_.takes(request);
  exchange.to_log = log_.on() && log_.takes(request);
  return exchange.to_dnstap || exchange.to_log;
}

bool Taps::wants_end(const Exchange& exchange, ByteView request) const noexcept {
  return exchange.to_log || (exchange.to_dnstap && dnstap_.wants_response(request));
}

void Taps::tell_request(const Exchange& exchange, ByteView request) {
  if (exchange.to_dnstap) dnstap_.write(exchange, request, {});
}

void Taps::tell_end(const Exchange& exchange, ExchangeEnd end, ByteView request, ByteView response,
                    const timespec& sent) {
  if (exchange.to_dnstap && !response.empty()) dnstap_.write(exchange, response, sent);
  if (exchange.to_log) log_.write(exchange, end, request, response, sent);
}

void Taps::tell_end(const HeldExchange& held, ByteView response) {
  const ExchangeEnd end = response.empty() ? ExchangeEnd::kDropped : ExchangeEnd::kAnswered;
  tell_end(held.exchange, end, held.request, response, now());
}

void Taps::answers_sent() {
  dnstap_.answers_sent();
  log_.answers_sent();
}

void Taps::end() {
  dnstap_.end();
  log_.end();
}

}  // namespace pando::worker
