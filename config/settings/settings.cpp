#include "config/settings/settings.h"

#include <fmt/format.h>

#include <algorithm>

namespace pando::config {

std::vector<Endpoint> default_listen() {
  IpAddress any_v4;
  any_v4.octets[10] = any_v4.octets[11] = 0xFF;  // ::ffff:0.0.0.0
  return {Endpoint{any_v4, 53}, Endpoint{IpAddress{}, 53}};
}

std::vector<Endpoint> default_http_listen() {
  return {Endpoint{IpAddress::from_text("127.0.0.1").value(), 8053}};
}

bool is_loopback(const IpAddress& address) {
  static const IpPrefix v4 = IpPrefix::from_text("127.0.0.0/8").value();
  static const IpPrefix v6 = IpPrefix::from_text("::1").value();
  return v4.contains(address) || v6.contains(address);
}

bool HttpKey::sees(dns::NameView zone) const noexcept {
  return zones.empty() || std::any_of(zones.begin(), zones.end(), [&](const dns::Name& pattern) {
           if (!pattern.view().is_wildcard()) return zone == pattern;
           const dns::NameView above = pattern.view().parent();
           return zone.is_at_or_below(above) && !(zone == above);
         });
}

bool Http::writes() const noexcept {
  return std::any_of(keys.begin(), keys.end(),
                     [](const HttpKey& key) { return key.role >= HttpKey::Role::kWrite; });
}

bool Http::writes(dns::NameView zone) const noexcept {
  return std::any_of(keys.begin(), keys.end(), [&](const HttpKey& key) {
    return key.role >= HttpKey::Role::kWrite && key.sees(zone);
  });
}

bool Http::administers(dns::NameView zone) const noexcept {
  return std::any_of(keys.begin(), keys.end(), [&](const HttpKey& key) {
    return key.role == HttpKey::Role::kAdmin && key.sees(zone);
  });
}

std::string produced_catalog_path(const std::string& journal, dns::NameView catalog) {
  std::string name = dns::to_text(dns::Name(catalog).folded());
  return fmt::format("{}/catalogs/{}zone", journal, name);
}

bool Dnstap::has(Messages kind) const noexcept {
  return std::find(messages.begin(), messages.end(), kind) != messages.end();
}

Result<std::string> zone_file_name(dns::NameView zone) {
  constexpr std::size_t kMaxBytes = 240;  // a file name may have 255; writers append to it
  std::string name = dns::to_text(dns::Name(zone).folded());
  // Zones of classless delegations have it (RFC 2317 §4). No name is printed with this escape.
  for (auto at = name.find('/'); at != std::string::npos; at = name.find('/', at))
    name.replace(at, 1, "\\047");
  if (name.size() > kMaxBytes)
    return fail(Errc::kInvalid, "zone {}: no file can be named after it: add it with a 'file'",
                name);
  return name + "zone";
}

Result<std::string> created_zone_path(const std::string& journal, dns::NameView zone) {
  auto name = zone_file_name(zone);
  if (!name) return name;
  return fmt::format("{}/zones/{}", journal, *name);
}

bool Settings::produces(dns::NameView zone) const noexcept {
  return std::any_of(catalogs.begin(), catalogs.end(), [zone](const Catalog& catalog) {
    return catalog.produces() && catalog.zone.view() == zone;
  });
}

const Key* Settings::find_key(dns::NameView name) const noexcept {
  const auto found =
      std::find_if(keys.begin(), keys.end(), [&](const Key& key) { return key.name == name; });
  return found == keys.end() ? nullptr : &*found;
}

std::optional<DnssecPolicy> Settings::dnssec_policy(std::string_view name) const {
  const auto found = std::ranges::find_if(dnssec_policies,
                                          [&](const auto& policy) { return policy.name == name; });
  if (found != dnssec_policies.end()) return *found;
  if (name != kDefaultDnssecPolicy) return std::nullopt;
  return DnssecPolicy{std::string(name)};
}

const Remote* Settings::find_remote(std::string_view name) const noexcept {
  const auto found = std::find_if(remotes.begin(), remotes.end(),
                                  [&](const Remote& remote) { return remote.name == name; });
  return found == remotes.end() ? nullptr : &*found;
}

zone::ServerSettings compile(const Server& server, const Limits& limits) {
  zone::ServerSettings compiled;
  compiled.identity = server.identity;
  compiled.version = server.version;
  compiled.proxies = server.proxy_protocol_from;
  compiled.udp_payload = server.udp_payload;
  compiled.minimal_responses = server.minimal_responses;
  compiled.tcp_clients = limits.tcp_clients;
  compiled.rate_limit = server.rate_limit;
  compiled.tcp_idle_ms = static_cast<std::uint32_t>(limits.tcp_idle.count());
  compiled.tls_clients = limits.tls_clients;
  compiled.tls_idle_ms = static_cast<std::uint32_t>(limits.tls_idle.count());
  return compiled;
}

zone::ZoneSettings compile(const ZoneOptions& options, const Settings& settings) {
  zone::ZoneSettings compiled;
  compiled.allow_query = options.allow_query;
  compiled.allow_transfer = options.allow_transfer;
  compiled.allow_update = options.allow_update;
  compiled.is_secondary = options.is_secondary();
  compiled.forward_updates = options.is_secondary() && options.forward_updates;
  compiled.is_signed_here = options.is_signed_here();
  for (const std::string& name : options.primaries) {
    const Remote* remote = settings.find_remote(name);
    if (remote == nullptr) continue;
    for (const Endpoint& endpoint : remote->address) {
      zone::AclRule rule;
      rule.address = IpPrefix{endpoint.address, 128};
      compiled.allow_notify.push_back(std::move(rule));
    }
  }
  compiled.allow_notify.insert(compiled.allow_notify.end(), options.allow_notify.begin(),
                               options.allow_notify.end());
  return compiled;
}

}  // namespace pando::config
