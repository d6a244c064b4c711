#pragma once

#include <cstdint>
#include <unordered_map>

#include "base/address.h"
#include "base/net/token_bucket.h"
#include "ipc/seen_clients.h"
#include "ipc/tls_messages.h"

namespace pando::tls {

/// Who may connect and shake hands: a handshake costs as much as 150 queries over TCP, and its
/// connection 14 KB. One holder (an address, or an IPv6 /64) has at most a quarter of the places,
/// so that no single one shuts all others out. Times are milliseconds of a steady clock.
class ClientLimits {
 public:
  enum class Verdict : std::uint8_t {
    kAdmitted,
    kConnections,  ///< too many connections
    kHandshakes,   ///< too many handshakes under way
    kRate,         ///< too many handshakes of the holder in this second
  };
  /// A few of one holder are no attack, even if a limit is small.
  static constexpr std::size_t kPlacesAnyway = 16;

  void set(const ipc::TlsLimits& limits) noexcept;

  /// A place for a connection whose client is not known yet, as it comes through a load balancer.
  Verdict open() noexcept;
  /// The client of a connection with a place begins its handshake.
  Verdict begin(const IpAddress& holder, std::uint64_t now_ms);
  /// Ends a handshake that begin() admitted.
  void end_handshake(const IpAddress& holder) noexcept;
  /// Gives a place back; with a holder, if begin() admitted one.
  void close(const IpAddress* holder) noexcept;
  [[nodiscard]] std::size_t connections() const noexcept { return connections_; }

 private:
  struct Holder {
    Holder(std::uint32_t per_second, std::uint64_t now_ms)
        : rate(per_second, per_second), seen_ms(now_ms) {}
    TokenBucket rate;
    std::uint64_t seen_ms;
    std::uint32_t connections = 0;
    std::uint32_t handshakes = 0;
  };
  struct Hash {
    std::size_t operator()(const IpAddress& address) const noexcept {
      return ipc::seen_hash(address);
    }
  };
  /// Holders without a connection are known for this long, which fills their buckets again.
  static constexpr std::uint64_t kForgetMs = 1000;

  static std::size_t share_of(std::size_t places) noexcept;
  void forget_idle(std::uint64_t now_ms);

  std::size_t max_connections_ = 1000;
  std::size_t max_handshakes_ = 1024;
  std::uint32_t handshakes_second_ = 20;
  std::size_t connections_ = 0;
  std::size_t handshakes_ = 0;
  std::uint64_t looked_ms_ = 0;  ///< when forget_idle() last looked
  std::unordered_map<IpAddress, Holder, Hash> holders_;
};

}  // namespace pando::tls
