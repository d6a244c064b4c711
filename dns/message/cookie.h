#pragma once

#include <openssl/types.h>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/address.h"
#include "base/bytes.h"
#include "base/result.h"

namespace pando::dns {

inline constexpr std::size_t kClientCookieOctets = 8;  // RFC 7873 §4
inline constexpr std::size_t kCookieOctets = 24;       // RFC 9018 §4: client cookie + 16

using CookieSecret = std::array<std::uint8_t, 16>;

/// State of a request's COOKIE option (RFC 7873 §5.2).
enum class CookieState : std::uint8_t {
  kMalformed,   ///< answered with FORMERR (§5.2.2); no cookie is sent back
  kClientOnly,  ///< the client has no cookie of this server yet (§5.2.3)
  kInvalid,     ///< forged, too old or from another server (§5.2.4): treated like kClientOnly
  kValid,       ///< the client is at its claimed address (§5.2.5)
};

/// The request's state, and the option for the answer (unless kMalformed).
struct CookieReply {
  CookieState state = CookieState::kMalformed;
  std::array<std::uint8_t, kCookieOctets> option{};
};

/// Interoperable server cookies (RFC 9018 §4): version 1, SipHash-2-4 over the client's cookie, a
/// time stamp and the client's address. Servers with the same secrets accept each other's cookies.
/// One per thread: checking uses a hash state inside.
class ServerCookies {
 public:
  /// The first secret signs, all verify (RFC 9018 §5: roll-over). kInvalid without a secret.
  static Result<ServerCookies> create(std::vector<CookieSecret> secrets);

  /// Checks the data of a request's COOKIE option and gives the cookie for the answer. A young
  /// cookie made with the first secret is kept; otherwise a new one is made. `now`: seconds since
  /// 1970.
  [[nodiscard]] CookieReply answer(ByteView option, const IpAddress& client, std::uint32_t now);

 private:
  struct Free {
    void operator()(EVP_MAC_CTX* context) const noexcept;
  };
  ServerCookies() = default;
  void put_hash(const CookieSecret& secret, ByteView cookie, const IpAddress& client,
                std::uint8_t* out);
  [[nodiscard]] std::size_t secret_that_made(ByteView cookie, const IpAddress& client);
  void make(const IpAddress& client, std::uint32_t now, std::uint8_t* cookie);

  std::vector<CookieSecret> secrets_;
  std::unique_ptr<EVP_MAC_CTX, Free> siphash_;
};

}  // namespace pando::dns
