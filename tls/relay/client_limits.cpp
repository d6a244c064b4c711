#include "tls/relay/client_limits.h"

#include <algorithm>

namespace pando::tls {

void ClientLimits::set(const ipc::TlsLimits& limits) noexcept {
  max_connections_ = limits.connections;
  max_handshakes_ = limits.handshakes;
  handshakes_second_ = std::max(limits.handshakes_second, 1U);
}

std::size_t ClientLimits::share_of(std::size_t places) noexcept {
  constexpr std::size_t kShare = 4;
  return std::max(places / kShare, kPlacesAnyway);
}

ClientLimits::Verdict ClientLimits::open() noexcept {
  if (connections_ >= max_connections_) return Verdict::kConnections;
  ++connections_;
  return Verdict::kAdmitted;
}

ClientLimits::Verdict ClientLimits::begin(const IpAddress& address, std::uint64_t now_ms) {
  forget_idle(now_ms);
  Holder& holder = holders_.try_emplace(address, handshakes_second_, now_ms).first->second;
  holder.seen_ms = now_ms;
  if (holder.connections >= share_of(max_connections_)) return Verdict::kConnections;
  if (handshakes_ >= max_handshakes_ || holder.handshakes >= share_of(max_handshakes_))
    return Verdict::kHandshakes;
  if (!holder.rate.take(now_ms)) return Verdict::kRate;
  ++holder.connections;
  ++holder.handshakes;
  ++handshakes_;
  return Verdict::kAdmitted;
}

void ClientLimits::end_handshake(const IpAddress& address) noexcept {
  const auto found = holders_.find(address);
  if (found == holders_.end() || found->second.handshakes == 0) return;
  --found->second.handshakes;
  --handshakes_;
}

void ClientLimits::close(const IpAddress* holder) noexcept {
  if (connections_ > 0) --connections_;
  if (holder == nullptr) return;
  const auto found = holders_.find(*holder);
  if (found != holders_.end() && found->second.connections > 0) --found->second.connections;
}

/// Looks once a second, so that a flood from many addresses costs a step for each of them.
void ClientLimits::forget_idle(std::uint64_t now_ms) {
  if (now_ms < looked_ms_ + kForgetMs) return;
  looked_ms_ = now_ms;
  std::erase_if(holders_, [now_ms](const auto& entry) {
    return entry.second.connections == 0 && now_ms >= entry.second.seen_ms + kForgetMs;
  });
}

}  // namespace pando::tls
