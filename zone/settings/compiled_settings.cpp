#include "zone/settings/compiled_settings.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>

#include "dns/field_reader.h"
#include "zone/settings/acl.h"

namespace pando::zone {

namespace {

// Forms, all numbers big-endian:
//   zone    u8 version | u8 flags | acl query | acl transfer | acl update | acl notify
//   acl     u32 rules | rule …
//   rule    u8 flags | [prefix] | [name key] | [u16 length, tls] | u32 names, name … | u32 types, u16 …
//   server  u8 version | u8 flags | u16 UDP payload | u32 TCP clients | u32 TCP idle ms |
//           u32 TLS clients | u32 TLS idle ms | u16 length, identity | u16 length, version | u32 prefixes, prefix … |
//           rate limit
//   prefix  16 address, u8 length
//   rate limit  u32 responses | u32 slip | u8 IPv4 prefix | u8 IPv6 prefix | u32 prefixes, prefix …
constexpr std::uint8_t kFormat = 1;
constexpr std::uint8_t kServerFormat = 3;
constexpr std::size_t kPrefixBytes = 17;

constexpr std::uint8_t kSecondary = 1;
constexpr std::uint8_t kForwardUpdates = 2;
constexpr std::uint8_t kSignedHere = 4;
constexpr std::uint8_t kMinimalResponses = 1;
constexpr std::uint8_t kDeny = 1;
constexpr std::uint8_t kHasAddress = 2;
constexpr std::uint8_t kHasKey = 4;
constexpr std::uint8_t kHasTls = 8;

/// Workers compare numbers of interfaces. Names are the manager's own.
void put_prefix(Bytes& out, const IpPrefix& prefix) {
  append(out, prefix.address.resolved().octets);
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
    out.push_back(static_cast<std::uint8_t>((rule.deny ? kDeny : 0) |
                                            (rule.address ? kHasAddress : 0) |
                                            (rule.key ? kHasKey : 0) | (rule.tls ? kHasTls : 0)));
    if (rule.address) put_prefix(out, *rule.address);
    if (rule.key) append(out, rule.key->view().bytes());
    if (rule.tls) put_text(out, *rule.tls);
    append_be32(out, static_cast<std::uint32_t>(rule.names.size()));
    for (const dns::Name& name : rule.names) append(out, name.view().bytes());
    append_be32(out, static_cast<std::uint32_t>(rule.types.size()));
    for (const dns::RRType type : rule.types) append_be16(out, static_cast<std::uint16_t>(type));
  }
}

using dns::FieldReader;

/// Flags; a flag outside `known` is damage.
std::uint8_t take_flags(FieldReader& fields, std::uint8_t known) noexcept {
  const std::uint8_t value = fields.u8();
  if ((value & ~known) != 0) fields.reject();
  return value;
}

std::string take_text(FieldReader& fields) {
  const ByteView text = fields.octets(fields.u16());
  return {text.begin(), text.end()};
}

IpPrefix take_prefix(FieldReader& fields) {
  IpPrefix prefix;
  const ByteView octets = fields.octets(prefix.address.octets.size());
  std::copy(octets.begin(), octets.end(), prefix.address.octets.begin());
  prefix.length = fields.u8();
  if (prefix.length > 128) {
    fields.reject();
    prefix.length = 128;
  }
  return prefix;
}

AclRule take_rule(FieldReader& fields) {
  AclRule rule;
  const std::uint8_t flags = take_flags(fields, kDeny | kHasAddress | kHasKey | kHasTls);
  rule.deny = (flags & kDeny) != 0;
  if ((flags & kHasAddress) != 0) rule.address = take_prefix(fields);
  if ((flags & kHasKey) != 0) rule.key = fields.wire_name();
  if ((flags & kHasTls) != 0) rule.tls = take_text(fields);
  for (std::uint32_t left = fields.count(1); left > 0 && fields.ok(); --left)
    rule.names.push_back(fields.wire_name());
  for (std::uint32_t left = fields.count(2); left > 0 && fields.ok(); --left)
    rule.types.push_back(static_cast<dns::RRType>(fields.u16()));
  return rule;
}

Acl take_acl(FieldReader& fields) {
  constexpr std::size_t kSmallestRule = 1 + 4 + 4;
  Acl acl;
  for (std::uint32_t left = fields.count(kSmallestRule); left > 0 && fields.ok(); --left)
    acl.push_back(take_rule(fields));
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

RateLimit take_rate_limit(FieldReader& fields) {
  RateLimit limit;
  limit.responses = fields.u32();
  limit.slip = fields.u32();
  limit.ipv4_prefix = fields.u8();
  limit.ipv6_prefix = fields.u8();
  if (limit.ipv4_prefix > 32 || limit.ipv6_prefix > 128) fields.reject();
  for (std::uint32_t left = fields.count(kPrefixBytes); left > 0 && fields.ok(); --left)
    limit.exempt.push_back(take_prefix(fields));
  return limit;
}

}  // namespace

std::uint64_t tag_of(ByteView encoded) noexcept {
  const std::uint64_t hash = XXH3_64bits(encoded.data(), encoded.size());
  return hash == 0 ? 1 : hash;
}

Bytes encode(const ZoneSettings& settings) {
  Bytes out{kFormat, static_cast<std::uint8_t>((settings.is_secondary ? kSecondary : 0) |
                                               (settings.forward_updates ? kForwardUpdates : 0) |
                                               (settings.is_signed_here ? kSignedHere : 0))};
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
  append_be32(out, settings.tls_clients);
  append_be32(out, settings.tls_idle_ms);
  put_text(out, settings.identity);
  put_text(out, settings.version);
  append_be32(out, static_cast<std::uint32_t>(settings.proxies.size()));
  for (const IpPrefix& prefix : settings.proxies) put_prefix(out, prefix);
  put_rate_limit(out, settings.rate_limit);
  return out;
}

Result<ZoneSettings> decode_zone_settings(ByteView bytes) {
  FieldReader fields(bytes);
  if (fields.u8() != kFormat) return fail(Errc::kCorrupt, "zone settings of another format");
  ZoneSettings settings;
  const std::uint8_t flags = take_flags(fields, kSecondary | kForwardUpdates | kSignedHere);
  settings.is_secondary = (flags & kSecondary) != 0;
  settings.forward_updates = (flags & kForwardUpdates) != 0;
  settings.is_signed_here = (flags & kSignedHere) != 0;
  settings.allow_query = take_acl(fields);
  settings.allow_transfer = take_acl(fields);
  settings.allow_update = take_acl(fields);
  settings.allow_notify = take_acl(fields);
  if (!fields.done()) return fail(Errc::kCorrupt, "zone settings are damaged");
  return settings;
}

Result<ServerSettings> decode_server_settings(ByteView bytes) {
  FieldReader fields(bytes);
  if (fields.u8() != kServerFormat)
    return fail(Errc::kCorrupt, "server settings of another format");
  ServerSettings settings;
  settings.minimal_responses = take_flags(fields, kMinimalResponses) != 0;
  settings.udp_payload = fields.u16();
  settings.tcp_clients = fields.u32();
  settings.tcp_idle_ms = fields.u32();
  settings.tls_clients = fields.u32();
  settings.tls_idle_ms = fields.u32();
  settings.identity = take_text(fields);
  settings.version = take_text(fields);
  for (std::uint32_t left = fields.count(kPrefixBytes); left > 0 && fields.ok(); --left)
    settings.proxies.push_back(take_prefix(fields));
  settings.rate_limit = take_rate_limit(fields);
  if (!fields.done()) return fail(Errc::kCorrupt, "server settings are damaged");
  return settings;
}

bool allowed(const Acl& acl, const Requester& client) noexcept {
  for (const AclRule& rule : acl)
    if (concerns(rule, client)) return !rule.deny;
  return false;
}

}  // namespace pando::zone
