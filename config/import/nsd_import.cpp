#include "config/import/nsd_import.h"

#include <algorithm>

#include "config/import/model/import_reasons.h"
#include "config/import/nsd_syntax.h"
#include "config/settings/values.h"

namespace pando::config {

namespace {

constexpr std::size_t kMaxExpanded = 10'000'000;  // settings of zones, with those of patterns

/// `ADDRESS@PORT` or `ADDRESS`.
Result<Endpoint> endpoint_of(std::string_view text, std::uint16_t port = kDnsPort) {
  return parse_endpoint(text.substr(0, text.find('#')), port);
}

/// Labels of a name from the left, without the root.
std::vector<std::string> labels_of(const dns::Name& name) {
  std::vector<std::string> labels;
  std::string text = dns::to_text(name);
  std::string label;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '.') {
      if (!label.empty()) labels.push_back(std::move(label));
      label.clear();
      continue;
    }
    label += text[i];
    if (text[i] == '\\' && i + 1 < text.size()) label += text[++i];
  }
  return labels;
}

/// NSD writes `\047` for a slash, which would name a folder.
std::string without_slashes(std::string text) {
  for (auto at = text.find('/'); at != std::string::npos; at = text.find('/', at))
    text.replace(at, 1, "\\047");
  return text;
}

/// zonefile: `%s` is the zone's name, `%1` to `%3` its first characters, `%z`, `%y`, `%x` its last
/// labels.
std::string nsd_file(std::string_view format, const dns::Name& name) {
  std::string text = dns::to_text(name);
  if (text.size() > 1) text.pop_back();
  const std::vector<std::string> labels = labels_of(name);
  std::string file;
  for (std::size_t i = 0; i < format.size(); ++i) {
    const char kind = format[i] == '%' && i + 1 < format.size() ? format[i + 1] : '\0';
    if (kind == 's') {
      file += without_slashes(text);
    } else if (kind >= '1' && kind <= '3') {
      const auto at = static_cast<std::size_t>(kind - '1');
      file += at < text.size() ? text[at] : '.';
    } else if (kind >= 'x' && kind <= 'z') {
      const auto from_end = static_cast<std::size_t>('z' - kind) + 1;
      file += from_end <= labels.size() ? without_slashes(labels[labels.size() - from_end]) : ".";
    } else {
      file += format[i];
      continue;
    }
    ++i;
  }
  return file;
}

/// Families that the server listens on, IPv4 first, if no address is named.
std::vector<Endpoint> nsd_families(const SettingSection& section, std::uint16_t port) {
  const bool no_v4 = section.text("ip6-only") == "yes" || section.text("do-ip4") == "no";
  const bool no_v6 = section.text("ip4-only") == "yes" || section.text("do-ip6") == "no";
  std::vector<Endpoint> listen;
  for (const Endpoint& endpoint : default_listen())
    if (!(endpoint.address.is_v4() ? no_v4 : no_v6)) listen.push_back({endpoint.address, port});
  return listen;
}

/// Settings of families, which nsd_families() reads.
bool is_family(std::string_view key) { return is_listed(" do-ip4 do-ip6 ip4-only ip6-only ", key); }

}  // namespace

/// A zone while its settings are collected.
struct NsdImport::Zone {
  ImportedZone result;
  std::string statement;
  std::string file;
  std::vector<Rule> query;
  std::vector<Rule> transfer;
  std::vector<Rule> notified;
};

/// In NSD a BLOCKED rule counts wherever it stands, so such rules come first here.
zone::Acl NsdImport::acl_of(const std::vector<Rule>& list) {
  MatchRules rules;
  for (const bool blocked : {false, true})
    for (auto rule = list.rbegin(); rule != list.rend(); ++rule)
      if (rule->blocked == blocked && !put_before(rules, blocked, rule->matches)) return {};
  return finish_rules(rules);
}

Status NsdImport::run(const ImportText& text) {
  const auto sections = parse_nsd(text, files_, report_);
  if (!sections) return tl::unexpected<Error>(sections.error());
  SettingSection server{{}, "server", {}};  // which may stand in several sections
  for (const SettingSection& section : *sections) {
    if (section.kind == "key")
      out_.add_key(report_, section.at, section.text("name"), section.text("algorithm"),
                   section.text("secret"));
    else if (section.kind == "pattern")
      patterns_.insert_or_assign(std::string(section.text("name")), section);
    else if (section.kind == "server")
      server.settings.insert(server.settings.end(), section.settings.begin(),
                             section.settings.end());
    else if (section.kind != "zone" && !section.settings.empty())
      report_.add(section.at, section.kind, setting_reason(section.kind));
  }
  take_server(server);
  for (const SettingSection& section : *sections)
    if (section.kind == "zone") take_zone(section);
  return {};
}

void NsdImport::take_server(const SettingSection& section) {
  const std::uint16_t port = port_in(section.text("port"));
  std::vector<Endpoint> listen;
  for (const LineSetting& setting : section.settings) {
    if (setting.key == "port" || is_family(setting.key)) continue;
    if (setting.key != "ip-address" && setting.key != "interface") {
      if (!take_server_setting(setting))
        report_.add(setting.at, setting.key, setting_reason(setting.key));
      continue;
    }
    const auto endpoint = endpoint_of(setting.value(), port);
    if (!endpoint)
      report_.add(setting.at, fmt::format("{} {}", setting.key, setting.value()),
                  "server.listen has addresses alone");
    else
      add_unique(listen, *endpoint);
  }
  if (listen.empty()) listen = nsd_families(section, port);
  if (!listen.empty()) out_.server.listen = std::move(listen);
  if (section.text("hide-version") == "yes") out_.server.version.clear();
  if (section.text("hide-identity") == "yes") out_.server.identity.clear();
}

bool NsdImport::take_server_setting(const LineSetting& setting) {
  const std::string_view value = setting.value();
  Server& server = out_.server;
  if (setting.key == "zonesdir") {
    folder_ = value;
  } else if ((setting.key == "identity" || setting.key == "version") &&
             (value.empty() || is_short_text(value))) {
    (setting.key == "version" ? server.version : server.identity) = value;
  } else if (setting.key == "hide-version" || setting.key == "hide-identity") {
    return value == "yes" || value == "no";
  } else if (setting.key == "minimal-responses" && (value == "yes" || value == "no")) {
    server.minimal_responses = value == "yes";
  } else if (setting.key == "rrl-ratelimit") {
    return take_rate_limit("responses-per-second", value, server.rate_limit);
  } else {
    return is_listed(" rrl-slip rrl-ipv4-prefix-length rrl-ipv6-prefix-length ", setting.key) &&
           take_rate_limit(setting.key.substr(4), value, server.rate_limit);
  }
  return true;
}

void NsdImport::take_zone(const SettingSection& section) {
  Zone zone;
  zone.statement = fmt::format("zone {}", section.text("name"));
  auto name = parse_name(section.text("name"));
  if (!name) return report_.add(section.at, zone.statement, name.error().text);
  zone.result.name = std::move(*name);
  expand(section, 0, zone);
  ZoneOptions& options = zone.result.options;
  if (!zone.query.empty()) options.allow_query = acl_of(zone.query);
  options.allow_transfer = acl_of(zone.transfer);
  options.allow_notify = acl_of(zone.notified);
  if (options.is_secondary() && !zone.file.empty())
    report_.add_once(section.at, fmt::format("{}: zonefile", zone.statement),
                     "NSD writes the copies of secondary zones; the zone comes by a transfer");
  else
    zone.result.file = join_path(folder_, nsd_file(zone.file, zone.result.name));
  report_relative(report_, section.at, zone.result.file);
  out_.add_zone(report_, section.at, zone.statement, std::move(zone.result));
}

void NsdImport::expand(const SettingSection& section, int depth, Zone& zone) {
  for (const LineSetting& setting : section.settings) {
    if (setting.key == "name") continue;
    if (++expanded_ > kMaxExpanded || depth > ImportFiles::kMaxIncludes)
      return report_.add_once(setting.at, zone.statement, "patterns are too deep or too long");
    if (setting.key != "include-pattern") {
      take_zone_setting(setting, zone);
      continue;
    }
    const auto pattern = patterns_.find(setting.value());
    if (pattern == patterns_.end()) {
      report_.add(setting.at, fmt::format("include-pattern {}", setting.value()),
                  "no such pattern");
      continue;
    }
    if (zone.result.group.empty()) zone.result.group = setting.value();
    expand(pattern->second, depth + 1, zone);
  }
}

void NsdImport::take_zone_setting(const LineSetting& setting, Zone& zone) {
  if (setting.key == "zonefile") {
    zone.file = setting.value();
  } else if (setting.key == "request-xfr") {
    const std::string mode = lower_case(setting.value());
    const bool has_mode = mode == "axfr" || mode == "udp";
    add_remote(setting, has_mode ? 1 : 0, zone.result.options.primaries);
  } else if (setting.key == "notify") {
    add_remote(setting, 0, zone.result.options.notify);
  } else if (setting.key == "provide-xfr") {
    zone.transfer.push_back(rule_of(setting));
  } else if (setting.key == "allow-notify") {
    zone.notified.push_back(rule_of(setting));
  } else if (setting.key == "allow-query") {
    zone.query.push_back(rule_of(setting));
  } else {
    report_.add(setting.at, fmt::format("{}: {}", zone.statement, setting.key),
                setting_reason(setting.key));
  }
}

void NsdImport::add_remote(const LineSetting& setting, std::size_t first,
                           std::vector<std::string>& names) {
  const std::string statement = fmt::format("{} {}", setting.key, setting.value(first));
  const std::string_view key = setting.value(first + 1);
  const auto endpoint = endpoint_of(setting.value(first));
  if (!endpoint) return report_.add(setting.at, statement, endpoint.error().text);
  if (!setting.value(first + 2).empty())
    return report_.add(setting.at, statement, setting_reason("tls"));
  std::optional<dns::Name> known;
  if (!key.empty() && key != "NOKEY") {
    known = out_.find_key(key);
    if (!known) return report_.add(setting.at, statement, fmt::format("no such key: {}", key));
  }
  add_unique(names, out_.remote(*endpoint, known));
}

NsdImport::Rule NsdImport::rule_of(const LineSetting& setting) {
  const std::string_view who = setting.value();
  const std::string_view key = setting.value(1);
  const auto dash = who.find('-');
  const auto mask = who.find('&');
  Rule rule{key == "BLOCKED", {}};
  if (mask != std::string_view::npos) {
    const std::string_view bits = who.substr(mask + 1);
    if (const auto prefix = masked_prefix(who.substr(0, mask), bits.substr(0, bits.find('@'))))
      rule.matches = match_prefix(to_text(*prefix));
  } else if (dash == std::string_view::npos) {
    rule.matches = match_prefix(who.substr(0, who.find('@')));
  } else {
    for (const IpPrefix& prefix : range_prefixes(who.substr(0, dash), who.substr(dash + 1)))
      rule.matches.emplace_back().rule.address = prefix;
  }
  const auto known = out_.find_key(key);
  const std::string_view tls = setting.value(2);  // a condition: transfers over TLS alone
  const bool understood = !rule.matches.empty() && (rule.blocked || tls.empty()) &&
                          (known || rule.blocked || key == "NOKEY");
  if (rule.matches.empty()) rule.matches.emplace_back();
  for (MatchRule& match : rule.matches) {
    match.unknown = !understood;
    if (known && !match.rule.deny) match.rule.key = known;
  }
  if (!understood)
    report_.add(setting.at,
                fmt::format("{} {} {}{}{}", setting.key, who, key, tls.empty() ? "" : " ", tls),
                tls.empty() ? "is not an address and a key that is here" : setting_reason("tls"));
  return rule;
}

}  // namespace pando::config
