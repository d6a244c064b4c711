#include "zone/settings/compiled_settings.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>

#include "zone/settings/acl.h"

namespace pando::zone {

namespace {

// Forms, all numbers big-endian:
//   zone    u8 version | u8 flags | acl query | acl transfer | acl update | acl notify
//   acl     u32 rules | rule …
//   rule    u8 flags | [prefix] | [name key] | u32 names, name … | u32 types, u16 …
//   server  u8 version | u8 flags | u16 UDP payload | u32 TCP clients | u32 TCP idle ms |
//           u16 length, identity | u16 length, version | u32 prefixes, prefix … |
//           rate limit
//   prefix  16 address, u8 length
//   rate limit  u32 responses | u32 slip | u8 IPv4 prefix | u8 IPv6 prefix | u32 prefixes, prefix …
constexpr std::uint8_t kFormat = 1;
constexpr std::uint8_t kServerFormat = 2;
constexpr std::size_t kPrefixBytes = 17;

constexpr std::uint8_t kSecondary = 1;
constexpr std::uint8_t kForwardUpdates = 2;
constexpr std::uint8_t kMinimalResponses = 1;
constexpr std::uint8_t kDeny = 1;
constexpr std::uint8_t kHasAddress = 2;
constexpr std::uint8_t kHasKey = 4;

void put_prefix(Bytes& out, const IpPrefix& prefix) {
  append(out, prefix.address.octets);
  out.push_back(prefix.length);
}

void put_text(Bytes& out, const std::string& text) {
  const std::size_t length = std::min<std::size_t>(text.size(), 0xFFFF);
  append_be16(out, static_cast<std::uint16_t>(length));
  out.insert(out.end(), text.begin(), text.begin() + static_cast<std::ptrdiff_t>(length));
}

void put_acl(Bytes& out, const Acl& acl) {
  append_be32(out, static_cast<std::uint32_t>(acl.size()));
  for (const AclRule& rule : acl) {
    out.push_back(static_cast<std::uint8_t>(
        (rule.deny ? kDeny : 0) | (rule.address ? kHasAddress : 0) | (rule.key ? kHasKey : 0)));
    if (rule.address) put_prefix(out, *rule.address);
    if (rule.key) append(out, rule.key->view().bytes());
    append_be32(out, static_cast<std::uint32_t>(rule.names.size()));
    for (const dns::Name& name : rule.names) append(out, name.view().bytes());
    append_be32(out, static_cast<std::uint32_t>(rule.types.size()));
    for (const dns::RRType type : rule.types) append_be16(out, static_cast<std::uint16_t>(type));
  }
}

/// Takes values from the front of bytes that may be damaged. After the first failure every value
/// reads as zero, and done() is false.
class Taker {
 public:
  explicit Taker(ByteView bytes) noexcept : rest_(bytes) {}

  std::uint8_t u8() noexcept { return take(1) ? taken_[0] : std::uint8_t{0}; }
  std::uint16_t u16() noexcept { return take(2) ? load_be16(taken_.data()) : std::uint16_t{0}; }
  std::uint32_t u32() noexcept { return take(4) ? load_be32(taken_.data()) : 0; }
  ByteView octets(std::size_t count) noexcept { return take(count) ? taken_ : ByteView(); }

  /// A count of items that take at least `bytes_each` each: damage cannot make it huge.
  std::uint32_t count(std::size_t bytes_each) noexcept {
    const std::uint32_t value = u32();
    if (value <= rest_.size() / bytes_each) return value;
    ok_ = false;
    return 0;
  }
  dns::Name name() noexcept {
    const std::size_t length = dns::wire_name_length(rest_);
    if (length == 0 || !take(length)) {
      ok_ = false;
      return {};
    }
    return dns::Name(dns::NameView(taken_.data(), length));
  }
  /// Flags; a flag outside `known` is damage.
  std::uint8_t flags(std::uint8_t known) noexcept {
    const std::uint8_t value = u8();
    if ((value & ~known) != 0) ok_ = false;
    return value;
  }
  void reject() noexcept { ok_ = false; }
  [[nodiscard]] bool ok() const noexcept { return ok_; }
  [[nodiscard]] bool done() const noexcept { return ok_ && rest_.empty(); }

 private:
  bool take(std::size_t count) noexcept {
    ok_ = ok_ && count <= rest_.size();
    if (!ok_) return false;
    taken_ = rest_.first(count);
    rest_ = rest_.subspan(count);
    return true;
  }

  ByteView rest_;
  ByteView taken_;
  bool ok_ = true;
};

std::string take_text(Taker& taker) {
  const ByteView text = taker.octets(taker.u16());
  return {text.begin(), text.end()};
}

IpPrefix take_prefix(Taker& taker) {
  IpPrefix prefix;
  const ByteView octets = taker.octets(prefix.address.octets.size());
  std::copy(octets.begin(), octets.end(), prefix.address.octets.begin());
  prefix.length = taker.u8();
  if (prefix.length > 128) {
    taker.reject();
    prefix.length = 128;
  }
  return prefix;
}

AclRule take_rule(Taker& taker) {
  AclRule rule;
  const std::uint8_t flags = taker.flags(kDeny | kHasAddress | kHasKey);
  rule.deny = (flags & kDeny) != 0;
  if ((flags & kHasAddress) != 0) rule.address = take_prefix(taker);
  if ((flags & kHasKey) != 0) rule.key = taker.name();
  for (std::uint32_t left = taker.count(1); left > 0 && taker.ok(); --left)
    rule.names.push_back(taker.name());
  for (std::uint32_t left = taker.count(2); left > 0 && taker.ok(); --left)
    rule.types.push_back(static_cast<dns::RRType>(taker.u16()));
  return rule;
}

Acl take_acl(Taker& taker) {
  constexpr std::size_t kSmallestRule = 1 + 4 + 4;
  Acl acl;
  for (std::uint32_t left = taker.count(kSmallestRule); left > 0 && taker.ok(); --left)
    acl.push_back(take_rule(taker));
  return acl;
}

void put_rate_limit(Bytes& out, const RateLimit& limit) {
  append_be32(out, limit.responses);
  append_be32(out, limit.slip);
  out.push_back(static_cast<std::uint8_t>(limit.ipv4_prefix));
  out.push_back(static_cast<std::uint8_t>(limit.ipv6_prefix));
  append_be32(out, static_cast<std::uint32_t>(limit.exempt.size()));
  for (const IpPrefix& prefix : limit.exempt) put_prefix(out, prefix);
}

RateLimit take_rate_limit(Taker& taker) {
  RateLimit limit;
  limit.responses = taker.u32();
  limit.slip = taker.u32();
  limit.ipv4_prefix = taker.u8();
  limit.ipv6_prefix = taker.u8();
  if (limit.ipv4_prefix > 32 || limit.ipv6_prefix > 128) taker.reject();
  for (std::uint32_t left = taker.count(kPrefixBytes); left > 0 && taker.ok(); --left)
    limit.exempt.push_back(take_prefix(taker));
  return limit;
}

}  // namespace

std::uint64_t tag_of(ByteView encoded) noexcept {
  const std::uint64_t hash = XXH3_64bits(encoded.data(), encoded.size());
  return hash == 0 ? 1 : hash;
}

Bytes encode(const ZoneSettings& settings) {
  Bytes out{kFormat, static_cast<std::uint8_t>((settings.is_secondary ? kSecondary : 0) |
                                               (settings.forward_updates ? kForwardUpdates : 0))};
  put_acl(out, settings.allow_query);
  put_acl(out, settings.allow_transfer);
  put_acl(out, settings.allow_update);
  put_acl(out, settings.allow_notify);
  return out;
}

Bytes encode(const ServerSettings& settings) {
  Bytes out{kServerFormat, settings.minimal_responses ? kMinimalResponses : std::uint8_t{0}};
  append_be16(out, settings.udp_payload);
  append_be32(out, settings.tcp_clients);
  append_be32(out, settings.tcp_idle_ms);
  put_text(out, settings.identity);
  put_text(out, settings.version);
  append_be32(out, static_cast<std::uint32_t>(settings.proxies.size()));
  for (const IpPrefix& prefix : settings.proxies) put_prefix(out, prefix);
  put_rate_limit(out, settings.rate_limit);
  return out;
}

Result<ZoneSettings> decode_zone_settings(ByteView bytes) {
  Taker taker(bytes);
  if (taker.u8() != kFormat) return fail(Errc::kCorrupt, "zone settings of another format");
  ZoneSettings settings;
  const std::uint8_t flags = taker.flags(kSecondary | kForwardUpdates);
  settings.is_secondary = (flags & kSecondary) != 0;
  settings.forward_updates = (flags & kForwardUpdates) != 0;
  settings.allow_query = take_acl(taker);
  settings.allow_transfer = take_acl(taker);
  settings.allow_update = take_acl(taker);
  settings.allow_notify = take_acl(taker);
  if (!taker.done()) return fail(Errc::kCorrupt, "zone settings are damaged");
  return settings;
}

Result<ServerSettings> decode_server_settings(ByteView bytes) {
  Taker taker(bytes);
  if (taker.u8() != kServerFormat) return fail(Errc::kCorrupt, "server settings of another format");
  ServerSettings settings;
  settings.minimal_responses = taker.flags(kMinimalResponses) != 0;
  settings.udp_payload = taker.u16();
  settings.tcp_clients = taker.u32();
  settings.tcp_idle_ms = taker.u32();
  settings.identity = take_text(taker);
  settings.version = take_text(taker);
  for (std::uint32_t left = taker.count(kPrefixBytes); left > 0 && taker.ok(); --left)
    settings.proxies.push_back(take_prefix(taker));
  settings.rate_limit = take_rate_limit(taker);
  if (!taker.done()) return fail(Errc::kCorrupt, "server settings are damaged");
  return settings;
}

bool allowed(const Acl& acl, const IpAddress& client, const dns::Name* key) noexcept {
  for (const AclRule& rule : acl)
    if (concerns(rule, client, key)) return !rule.deny;
  return false;
}

}  // namespace pando::zone
