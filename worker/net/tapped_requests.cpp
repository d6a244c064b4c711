#include "worker/net/tapped_requests.h"

#include <utility>

#include "worker/tap/taps.h"

namespace pando::worker {

void TappedRequests::note(ByteView request, const Client& client, const IpAddress& local,
                          const Outcome& outcome, ByteView space, const timespec& received) {
  auto exchange = core_.tapped(request, client, received);
  if (!exchange) return;
  exchange->client.local.address = local;
  const std::size_t response = outcome.action == Action::kRespond ? outcome.size : 0;
  tapped_.push_back({request, space.first(response), outcome.action == Action::kForward,
                     std::move(*exchange)});
}

void TappedRequests::tell() {
  Taps* const taps = core_.taps();
  const timespec sent = Taps::now();
  for (const Tapped& tapped : tapped_) {
    if (taps == nullptr) break;
    taps->tell_request(tapped.exchange, tapped.request);
    if (tapped.later) continue;
    const auto end = tapped.response.empty() ? ExchangeEnd::kDropped : ExchangeEnd::kAnswered;
    taps->tell_end(tapped.exchange, end, tapped.request, tapped.response, sent);
  }
  tapped_.clear();
  if (taps != nullptr) taps->answers_sent();
}

std::shared_ptr<const HeldExchange> TappedRequests::held(ByteView request) const {
  const Taps* const taps = core_.taps();
  if (taps == nullptr || tapped_.empty() || tapped_.back().request.data() != request.data())
    return nullptr;
  const Exchange& exchange = tapped_.back().exchange;
  if (!taps->wants_end(exchange, request)) return nullptr;
  return std::make_shared<const HeldExchange>(
      HeldExchange{exchange, Bytes(request.begin(), request.end())});
}

}  // namespace pando::worker
