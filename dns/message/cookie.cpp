#include "dns/message/cookie.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#include <algorithm>
#include <cstring>

namespace pando::dns {

namespace {

// RFC 9018 §4: client cookie, version, reserved, time stamp, hash.
constexpr std::size_t kVersionAt = 8;
constexpr std::size_t kTimeAt = 12;
constexpr std::size_t kHashAt = 16;
constexpr std::size_t kHashOctets = 8;
constexpr std::uint8_t kVersion = 1;

// RFC 9018 §4.3: accepted from an hour ago to five minutes ahead; renewed after half an hour.
constexpr std::int32_t kMaxAge = 3600;
constexpr std::int32_t kMaxLead = 300;
constexpr std::int32_t kRenewAge = 1800;

constexpr std::size_t kShortestWithServer = kClientCookieOctets + 8;  // RFC 7873 §4
constexpr std::size_t kLongestWithServer = kClientCookieOctets + 32;

/// Seconds since the cookie was made; negative for a time in the future. RFC 9018 §4.3: RFC 1982
/// arithmetic, which survives the wrap of the 32 bits in 2106.
std::int32_t age_of(ByteView cookie, std::uint32_t now) noexcept {
  return static_cast<std::int32_t>(now - load_be32(&cookie[kTimeAt]));
}

bool time_is_acceptable(ByteView cookie, std::uint32_t now) noexcept {
  const std::int32_t age = age_of(cookie, now);
  return age <= kMaxAge && age >= -kMaxLead;
}

/// RFC 9018 §4.4: four octets for IPv4, sixteen for IPv6.
ByteView address_octets(const IpAddress& client) noexcept {
  return ByteView(client.octets).subspan(client.is_v4() ? 12 : 0);
}

bool option_size_is_valid(std::size_t size) noexcept {
  return size == kClientCookieOctets || (size >= kShortestWithServer && size <= kLongestWithServer);
}

/// Checks version and size; a server cookie with others is foreign.
bool may_be_ours(ByteView cookie) noexcept {
  return cookie.size() == kCookieOctets && cookie[kVersionAt] == kVersion;
}

bool is_worth_keeping(ByteView cookie, std::uint32_t now) noexcept {
  const std::int32_t age = age_of(cookie, now);
  const bool reserved_is_clear = load_be32(&cookie[kVersionAt]) == std::uint32_t{kVersion} << 24;
  return age >= 0 && age <= kRenewAge && reserved_is_clear;
}

}  // namespace

void ServerCookies::Free::operator()(EVP_MAC_CTX* context) const noexcept {
  // OpenSSL frees the state as it is, and the state has the last secret, mixed with a constant.
  constexpr CookieSecret kNone{};
  if (context != nullptr) EVP_MAC_init(context, kNone.data(), kNone.size(), nullptr);
  EVP_MAC_CTX_free(context);
}

Result<ServerCookies> ServerCookies::create(std::vector<CookieSecret> secrets) {
  if (secrets.empty()) return fail(Errc::kInvalid, "no secret for cookies");
  EVP_MAC* mac = EVP_MAC_fetch(nullptr, "SIPHASH", nullptr);
  if (mac == nullptr) return fail(Errc::kUnsupported, "OpenSSL does not offer SipHash");
  ServerCookies cookies;
  cookies.siphash_.reset(EVP_MAC_CTX_new(mac));
  EVP_MAC_free(mac);  // the context keeps a reference
  std::size_t octets = kHashOctets;
  const OSSL_PARAM params[] = {OSSL_PARAM_construct_size_t(OSSL_MAC_PARAM_SIZE, &octets),
                               OSSL_PARAM_construct_end()};
  if (!cookies.siphash_ || EVP_MAC_CTX_set_params(cookies.siphash_.get(), params) != 1)
    return fail(Errc::kUnsupported, "OpenSSL does not offer SipHash of 64 bits");
  cookies.secrets_ = std::move(secrets);
  return cookies;
}

CookieReply ServerCookies::answer(ByteView option, const IpAddress& client, std::uint32_t now) {
  CookieReply reply;
  if (!option_size_is_valid(option.size())) return reply;
  reply.state =
      option.size() == kClientCookieOctets ? CookieState::kClientOnly : CookieState::kInvalid;
  std::memcpy(reply.option.data(), option.data(), kClientCookieOctets);
  if (may_be_ours(option) && time_is_acceptable(option, now)) {
    const std::size_t maker = secret_that_made(option, client);
    if (maker < secrets_.size()) reply.state = CookieState::kValid;
    if (maker == 0 && is_worth_keeping(option, now)) {
      std::memcpy(reply.option.data(), option.data(), kCookieOctets);
      return reply;
    }
  }
  make(client, now, reply.option.data());
  return reply;
}

/// RFC 9018 §4.4: hash over client cookie, version, reserved, time stamp and address.
void ServerCookies::put_hash(const CookieSecret& secret, ByteView cookie, const IpAddress& client,
                             std::uint8_t* out) {
  const ByteView address = address_octets(client);
  EVP_MAC_CTX* hash = siphash_.get();
  std::size_t size = 0;
  // Keying a SipHash state is cheaper than duplicating a keyed state, and allocates nothing.
  PANDO_ASSERT(EVP_MAC_init(hash, secret.data(), secret.size(), nullptr) == 1 &&
               EVP_MAC_update(hash, cookie.data(), kHashAt) == 1 &&
               EVP_MAC_update(hash, address.data(), address.size()) == 1 &&
               EVP_MAC_final(hash, out, &size, kHashOctets) == 1 && size == kHashOctets);
}

/// Index of the secret that made the cookie, or secrets_.size().
std::size_t ServerCookies::secret_that_made(ByteView cookie, const IpAddress& client) {
  for (std::size_t i = 0; i < secrets_.size(); ++i) {
    std::uint8_t hash[kHashOctets];
    put_hash(secrets_[i], cookie, client, hash);
    if (CRYPTO_memcmp(hash, &cookie[kHashAt], kHashOctets) == 0) return i;
  }
  return secrets_.size();
}

/// Completes a cookie whose client part is set.
void ServerCookies::make(const IpAddress& client, std::uint32_t now, std::uint8_t* cookie) {
  store_be32(cookie + kVersionAt, std::uint32_t{kVersion} << 24);  // reserved octets are 0
  store_be32(cookie + kTimeAt, now);
  put_hash(secrets_.front(), {cookie, kHashAt}, client, cookie + kHashAt);
}

}  // namespace pando::dns
