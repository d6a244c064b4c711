#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/address.h"
#include "base/bytes.h"
#include "base/rare_value.h"
#include "base/result.h"
#include "dns/name.h"
#include "dns/types.h"
#include "zone/settings/requester.h"

namespace pando::zone {

/// One rule of an `allow-…` list: of `address`, `key` and `tls`, all that are given must hold; the
/// first rule that matches decides. `names` and `types` narrow `allow-update` rules further.
struct AclRule {
  bool deny = false;
  std::optional<IpPrefix> address;
  RareValue<dns::Name> key;
  /// The name of a remote whose demands the client's certificate must meet, or kAnyTlsPeer.
  RareValue<std::string> tls{};
  /// Owner patterns: a label "*" stands for one or more labels, a last label "self" for the key's
  /// name.
  std::vector<dns::Name> names;
  std::vector<dns::RRType> types;  ///< empty = all
  bool operator==(const AclRule&) const = default;
};
using Acl = std::vector<AclRule>;

/// Settings that answers about one zone depend on besides its data; part of a version.
struct ZoneSettings {
  Acl allow_query;
  Acl allow_transfer;
  Acl allow_update;  ///< the manager decides; workers refuse requests that no rule could allow
  Acl allow_notify;  ///< with the primaries' addresses already added
  bool is_secondary = false;
  bool forward_updates = false;  ///< whether a secondary forwards updates to its primary
  bool is_signed_here = false;   ///< the manager makes the zone's signatures (zones[].dnssec)
  bool operator==(const ZoneSettings&) const = default;
};

/// Response rate limiting (`server.rate-limit`).
struct RateLimit {
  std::uint32_t responses = 0;  ///< responses of one kind, per second and client prefix; 0 = off
  std::uint32_t slip = 2;       ///< each n-th limited response is sent truncated; 0 = none
  std::uint32_t ipv4_prefix = 24;
  std::uint32_t ipv6_prefix = 56;
  std::vector<IpPrefix> exempt;
  bool operator==(const RateLimit&) const = default;
};

/// Settings that answers depend on besides zones; part of a version.
struct ServerSettings {
  std::string identity;           ///< empty = not disclosed
  std::string version;            ///< empty = not disclosed
  std::vector<IpPrefix> proxies;  ///< addresses that may put a PROXY header before a request
  std::uint16_t udp_payload = 1232;
  bool minimal_responses = true;
  std::uint32_t tcp_clients = 1000;  ///< per worker
  std::uint32_t tcp_idle_ms = 10000;
  std::uint32_t tls_clients = 1000;  ///< per worker, beside those over plain TCP
  std::uint32_t tls_idle_ms = 30000;
  RateLimit rate_limit;
  bool operator==(const ServerSettings&) const = default;
};

/// Flat, versioned forms that live in the store. Decoding checks every field (kCorrupt).
Bytes encode(const ZoneSettings& settings);
Bytes encode(const ServerSettings& settings);
Result<ZoneSettings> decode_zone_settings(ByteView bytes);
Result<ServerSettings> decode_server_settings(ByteView bytes);
/// A hash of flat settings that identifies them; never 0.
[[nodiscard]] std::uint64_t tag_of(ByteView encoded) noexcept;

/// The flat form of settings that many zones share, encoded once for all of them.
struct EncodedSettings {
  explicit EncodedSettings(const ZoneSettings& settings)
      : octets(encode(settings)), tag(tag_of(octets)) {}
  Bytes octets;
  std::uint64_t tag;
};

/// The first matching rule decides; no match = false. The client's key has to be verified.
[[nodiscard]] bool allowed(const Acl& acl, const Requester& client) noexcept;

}  // namespace pando::zone
