#include "config/import/pdns/pdns_import.h"

#include <algorithm>

#include "config/import/model/import_reasons.h"
#include "config/import/named/named_import.h"
#include "config/import/pdns/pdns_words.h"
#include "config/settings/values.h"

namespace pando::config {

namespace {

constexpr std::string_view kReadOfPdns =
    " launch load-modules bind-config local-address local-ipv6 local-port allow-axfr-ips primary "
    "master secondary slave also-notify version-string server-id include-dir "
    "udp-truncation-threshold allow-notify-from trusted-notification-proxy disable-axfr "
    "only-notify bind-check-interval config-dir proxy-protocol-from query-local-address "
    "query-local-address6 ";

/// How the zones of a backend come here. `backend` may have an instance's name: "gmysql:other".
std::string_view way_of_backend(std::string_view backend) {
  const std::string_view kind = backend.substr(0, backend.find(':'));
  if (is_listed(" pipe remote lua lua2 ", kind))
    return "its answers come from a program: transfer its zones, if it has whole ones";
  if (kind == "geoip") return "answers by the client's place have no counterpart here";
  return "its zones are in a database: 'pdnsutil list-all-zones' names them, 'pdnsutil "
         "list-zone NAME >> LISTING' lists one, and 'import LISTING' makes zone files; or "
         "'import DUMP' reads an SQL dump of the database; or transfer them";
}

}  // namespace

Status PdnsImport::run(const ImportText& text) {
  if (auto done = read(text, 0); !done) return done;
  take_launch();
  take_listen();
  take_texts();
  if (auto done = take_zones(); !done) return done;
  finish_zones();
  report_rest();
  return {};
}

Status PdnsImport::read(const ImportText& text, int depth) {
  auto settings = parse_assignments(text, files_);
  if (!settings) return pass(settings);
  for (const LineSetting& setting : *settings) take(setting);
  const LineSetting* folder = find("include-dir");
  if (depth > 0 || folder == nullptr || folder->value().empty()) return {};
  // PowerDNS reads these files after the main one, wherever the setting stands.
  const LineSetting include = *folder;
  return files_.include(
      include.at, include.value(), report_,
      [&](const ImportText& more) { return read(more, depth + 1); }, ".conf");
}

/// A later setting replaces an earlier one; `+=` adds to it.
void PdnsImport::take(const LineSetting& setting) {
  const auto [known, is_new] = settings_.try_emplace(setting.key, setting);
  if (is_new) return;
  if (setting.begins_item)
    known->second.values.front().append(",").append(setting.value());
  else
    known->second = setting;
}

const LineSetting* PdnsImport::find(std::string_view key, std::string_view older) const {
  if (const auto found = settings_.find(key); found != settings_.end()) return &found->second;
  const auto found = settings_.find(older);
  return found == settings_.end() ? nullptr : &found->second;
}

bool PdnsImport::is_on(std::string_view key, std::string_view older) const {
  const LineSetting* setting = find(key, older);
  return setting != nullptr &&
         (setting->value() == "yes" || setting->value() == "on" || setting->value() == "true");
}

void PdnsImport::take_launch() {
  const LineSetting* launch = find("launch");
  if (launch == nullptr) return;
  for (const std::string& backend : words_of(launch->value())) {
    if (backend == "bind" || backend.starts_with("bind:")) continue;
    report_.add(launch->at, fmt::format("launch={}", backend), way_of_backend(backend));
  }
  if (launch->value().find("bind") != std::string_view::npos && find("bind-config") == nullptr)
    report_.add(launch->at, "launch=bind", "'bind-config' does not name a named.conf");
}

void PdnsImport::take_listen() {
  const LineSetting* given_port = find("local-port");
  const std::uint16_t port = given_port == nullptr ? kDnsPort : port_in(given_port->value());
  std::vector<Endpoint> listen;
  for (const std::string_view key : {"local-address", "local-ipv6"}) {
    const LineSetting* setting = find(key);
    if (setting == nullptr) continue;
    for (const std::string& word : words_of(setting->value())) {
      const auto endpoint = pdns_endpoint(word, port);
      if (endpoint)
        add_unique(listen, *endpoint);
      else
        report_.add(setting->at, fmt::format("{}={}", key, word), endpoint.error().text);
    }
  }
  if (listen.empty() && port != kDnsPort)
    for (const Endpoint& endpoint : default_listen()) listen.push_back({endpoint.address, port});
  if (!listen.empty()) out_.server.listen = std::move(listen);
}

void PdnsImport::take_texts() {
  const LineSetting* version = find("version-string");
  const LineSetting* identity = find("server-id");
  const auto usable = [](const LineSetting* setting) {
    return setting != nullptr && is_short_text(setting->value());
  };
  if (usable(version) && !is_listed(" full anonymous powerdns ", version->value()))
    out_.server.version = version->value();
  if (usable(identity) && identity->value() != "disabled") out_.server.identity = identity->value();
  if (const LineSetting* size = find("udp-truncation-threshold"))
    if (const auto number = parse_number(size->value(), 512, 4096))
      out_.server.udp_payload = static_cast<std::uint16_t>(*number);
  take_sources();
}

/// Addresses of load balancers, and the source address of transfers.
void PdnsImport::take_sources() {
  if (const LineSetting* proxies = find("proxy-protocol-from"))
    for (const zone::AclRule& rule : acl_of(*proxies))
      if (!rule.deny && rule.address) out_.server.proxy_protocol_from.push_back(*rule.address);
  for (const char* key : {"query-local-address", "query-local-address6"}) {
    const LineSetting* sources = find(key);
    if (sources == nullptr) continue;
    for (const std::string& source : words_of(sources->value()))
      if (!take_transfer_source(source, out_.server))
        report_.add(sources->at, fmt::format("{}={}", key, source), pdns_reason(key));
  }
}

Status PdnsImport::take_zones() {
  const LineSetting* file = find("bind-config");
  if (file == nullptr || file->value().empty()) return {};
  const Server server = out_.server;  // PowerDNS reads zones alone there
  auto done = files_.include(file->at, file->value(), report_, [&](const ImportText& text) {
    return NamedImport(files_, out_, report_, NamedReader::kPdns).run(text);
  });
  const bool md5 = out_.server.md5;
  out_.server = server;
  out_.server.md5 = md5;
  return done;
}

zone::Acl PdnsImport::acl_of(const LineSetting& setting) {
  MatchRules rules;
  std::vector<std::string> words = words_of(setting.value());
  for (auto word = words.rbegin(); word != words.rend(); ++word) {
    const bool negated = word->starts_with('!');
    MatchRules matches = match_prefix(std::string_view(*word).substr(negated ? 1 : 0));
    if (matches.empty()) {
      report_.add(setting.at, fmt::format("{}={}", setting.key, *word), "is not a prefix");
      matches.emplace_back().unknown = true;
    }
    if (!put_before(rules, negated, matches)) return {};
  }
  return finish_rules(rules);
}

/// PowerDNS takes names, files and primaries from the named.conf, and access from its own file.
void PdnsImport::finish_zones() {
  const LineSetting* transfer = find("allow-axfr-ips");
  const LineSetting* also = find("also-notify");
  const LineSetting* proxies = find("trusted-notification-proxy");
  const bool notifies = is_on("primary", "master");
  zone::Acl allow_transfer = is_on("disable-axfr") ? zone::Acl()
                             : transfer != nullptr ? acl_of(*transfer)
                                                   : zone::Acl();
  if (transfer == nullptr && !is_on("disable-axfr")) {
    MatchRules loopback = match_prefix("::1");
    if (put_before(loopback, false, match_prefix("127.0.0.0/8")))
      allow_transfer = finish_rules(loopback);
  }
  std::vector<std::string> notify;
  if (also) notify = pdns_remotes(also->value(), also->at, "also-notify=", out_, report_);
  const zone::Acl allow_notify = proxies ? acl_of(*proxies) : zone::Acl();
  for (ImportedZone& zone : out_.zones()) {
    ZoneOptions options;
    options.primaries = std::move(zone.options.primaries);
    options.allow_transfer = allow_transfer;
    options.allow_notify = allow_notify;
    if (notifies) {
      options.notify = std::move(zone.options.notify);
      for (const std::string& name : notify) add_unique(options.notify, name);
    }
    zone.options = std::move(options);
  }
  if (const LineSetting* only = find("only-notify"); only != nullptr && notifies)
    report_.note(only->at, "only-notify",
                 "servers of NS records are not notified: name them in zones[].notify");
  const bool has_secondary =
      std::any_of(out_.zones().begin(), out_.zones().end(),
                  [](const ImportedZone& zone) { return zone.options.is_secondary(); });
  if (has_secondary && !is_on("secondary", "slave"))
    report_.add_once(find("bind-config")->at, "secondary",
                     {"is off: PowerDNS does not refresh its secondary zones, pando does"});
}

void PdnsImport::report_rest() {
  for (const auto& [key, setting] : settings_) {
    if (is_listed(kReadOfPdns, key)) continue;
    const ImportReason reason = pdns_reason(key);
    if (reason.effect == ImportEffect::kNone || !is_off(setting.value()))
      report_.add(setting.at, key, reason);
  }
}

}  // namespace pando::config
