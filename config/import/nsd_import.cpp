#include "config/import/nsd_import.h"

#include <algorithm>
#include <filesystem>

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

/// A zone or pattern while its settings are collected.
struct NsdImport::Zone {
  ImportedZone result;
  std::string statement;
  std::string file;
  std::string role;            ///< `catalog`: "consumer", "producer" or empty
  std::string member_pattern;  ///< of a consumed catalog
  std::string producer;        ///< the catalog of which zones with this pattern are members
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
    else if (section.kind == "dnstap")
      take_dnstap(section);
    else if (section.kind != "zone" && !section.settings.empty())
      report_.add(section.at, section.kind, nsd_reason(section.kind));
  }
  take_server(server);
  take_patterns(*sections);
  for (const SettingSection& section : *sections)
    if (section.kind == "zone") take_zone(section);
  return take_zone_list(text);
}

void NsdImport::take_server(const SettingSection& section) {
  const std::uint16_t port = port_in(section.text("port"));
  std::vector<Endpoint> listen;
  for (const LineSetting& setting : section.settings) {
    if (setting.key == "port" || is_family(setting.key)) continue;
    if (setting.key != "ip-address" && setting.key != "interface") {
      const ImportReason reason = nsd_reason(setting.key);
      const bool changes = reason.effect == ImportEffect::kAnswers;
      if (!take_server_setting(setting) && !(changes && is_off(setting.value())))
        report_.add(setting.at, setting.key, reason);
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
  if (nsid_.empty()) return;
  if (!out_.server.identity.empty() && out_.server.identity != nsid_)
    report_.add(section.find("nsid")->at, "nsid", "server.identity is one text, for id.server too");
  out_.server.identity = nsid_;
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
  } else if (setting.key == "zonelistfile") {
    zone_list_ = setting;
  } else if (is_listed(" xdp-interface nsid ipv4-edns-size ipv6-edns-size ", setting.key)) {
    return take_answer_setting(setting);
  } else {
    return is_listed(" rrl-slip rrl-ipv4-prefix-length rrl-ipv6-prefix-length ", setting.key) &&
           take_rate_limit(setting.key.substr(4), value, server.rate_limit);
  }
  return true;
}

/// Interfaces, NSID, and sizes of answers.
bool NsdImport::take_answer_setting(const LineSetting& setting) {
  const std::string_view value = setting.value();
  if (setting.key == "xdp-interface") {
    if (!value.empty()) out_.server.xdp.push_back({.interface = std::string(value)});
    return true;
  }
  if (setting.key == "nsid") {
    constexpr std::string_view kText = "ascii_";
    return value.starts_with(kText) ? take_identity(value.substr(kText.size()), nsid_)
                                    : take_identity_digits(value, nsid_);
  }
  const auto size = parse_number(value, 512, 4096);
  if (!size) return false;
  std::uint16_t& payload = out_.server.udp_payload;
  payload = std::min(payload, static_cast<std::uint16_t>(*size));
  return *size <= Server().udp_payload;
}

void NsdImport::take_dnstap(const SettingSection& section) {
  if (section.text("dnstap-enable") != "yes") return;
  const std::string_view socket = section.text("dnstap-socket-path");
  if (!socket.starts_with('/') || !section.text("dnstap-ip").empty())
    return report_.add(section.at, "dnstap", nsd_reason("dnstap"));
  Dnstap& dnstap = out_.server.dnstap.emplace();
  dnstap.socket = socket;
  dnstap.messages.clear();
  if (section.text("dnstap-log-auth-query-messages") == "yes")
    dnstap.messages.push_back(Dnstap::Messages::kQueries);
  if (section.text("dnstap-log-auth-response-messages") == "yes")
    dnstap.messages.push_back(Dnstap::Messages::kResponses);
  if (dnstap.messages.empty()) out_.server.dnstap.reset();
}

void NsdImport::take_patterns(const std::vector<SettingSection>& sections) {
  for (const SettingSection& section : sections) {
    const std::string name(section.text("name"));
    if (section.kind != "pattern" || templates_.contains(name)) continue;
    Zone pattern;
    pattern.statement = fmt::format("pattern {}", name);
    expand(patterns_.at(name), pattern.statement, 0, pattern);
    finish_rules_of(pattern);
    templates_.emplace(name, out_.add_template(name, pattern.result.options));
  }
  used_patterns_.clear();
}

void NsdImport::finish_rules_of(Zone& zone) {
  ZoneOptions& options = zone.result.options;
  if (!zone.query.empty()) options.allow_query = acl_of(zone.query);
  options.allow_transfer = acl_of(zone.transfer);
  options.allow_notify = acl_of(zone.notified);
}

void NsdImport::take_zone(const SettingSection& section) {
  Zone zone;
  zone.statement = fmt::format("zone {}", section.text("name"));
  auto name = parse_name(section.text("name"));
  if (!name) return report_.add(section.at, zone.statement, name.error().text);
  zone.result.name = std::move(*name);
  expand(section, zone.statement, 0, zone);
  put_zone(section.at, zone);
}

void NsdImport::put_zone(const SourceLine& at, Zone& zone) {
  finish_rules_of(zone);
  if (!zone.role.empty()) return put_catalog(at, zone);
  if (zone.result.options.is_secondary()) {
    if (!zone.file.empty())
      report_.add_once(at, fmt::format("{}: zonefile", zone.statement),
                       {"NSD writes the copies of secondary zones; the zone comes by a transfer",
                        ImportEffect::kNone});
  } else if (!zone.file.empty()) {
    zone.result.file = join_path(folder_, nsd_file(zone.file, zone.result.name));
  }
  report_relative(report_, at, zone.result.file);
  out_.add_zone(report_, at, zone.statement, std::move(zone.result));
}

/// Members of a consumed catalog have the pattern that is named like their group, else the one of
/// `catalog-member-pattern`.
void NsdImport::put_catalog(const SourceLine& at, Zone& zone) {
  Catalog catalog{.zone = zone.result.name,
                  .role = Catalog::Role::kConsumer,
                  .primaries = zone.result.options.primaries,
                  .template_name = {}};
  if (zone.role == "producer") {
    catalog.role = Catalog::Role::kProducer;
    catalog.primaries.clear();
    catalog.template_name = out_.add_template(zone.result.group, zone.result.options);
  } else {
    if (const auto own = templates_.find(zone.member_pattern); own != templates_.end())
      catalog.template_name = own->second;
    report_.note(at, zone.statement, "its members are transferred from its own primaries");
    for (const auto& [pattern, name] : templates_) {
      used_patterns_.insert(pattern);
      if (is_short_text(pattern)) catalog.groups.push_back({pattern, name});
    }
  }
  out_.add_catalog(report_, at, zone.statement, std::move(catalog));
}

Status NsdImport::take_zone_list(const ImportText& config) {
  constexpr std::string_view kUsualList = "/var/lib/nsd/zone.list";
  const auto visit = [this](const ImportText& list) -> Status {
    std::string_view rest = list.text;
    for (int number = 1; !rest.empty(); ++number) {
      const auto end = std::min(rest.find('\n'), rest.size());
      if (auto counted = files_.count_statement(); !counted) return counted;
      take_listed({list.name, number}, rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    return {};
  };
  Status done;
  std::error_code none;
  // A configuration from elsewhere must not get the zones of the NSD of this host.
  const bool is_installed = config.name->starts_with("/etc/nsd/");
  if (zone_list_)
    done = files_.include(zone_list_->at, zone_list_->value(), report_, visit);
  else if (is_installed && files_.has_includes() && std::filesystem::exists(kUsualList, none))
    done = files_.include({config.name, 1}, kUsualList, report_, visit);
  if (done && !zone_list_ && !is_installed) report_unused_patterns();
  return done;
}

/// A line of the zone list: `add ZONE PATTERN`, or `cat ZONE PATTERN NUMBER` for a member of a
/// produced catalog. Names of zones may have blanks, patterns have none.
void NsdImport::take_listed(const SourceLine& at, std::string_view line) {
  const bool is_member = line.starts_with("cat ");
  if (!is_member && !line.starts_with("add ")) return;  // comments, and zones that were removed
  line.remove_prefix(4);
  if (is_member) line = line.substr(0, line.rfind(' '));
  const auto space = line.rfind(' ');
  Zone zone;
  zone.statement = fmt::format("zone {}", line.substr(0, space));
  if (space == std::string_view::npos) return report_.add(at, zone.statement, "has no pattern");
  const std::string_view wanted = line.substr(space + 1);
  const auto pattern = patterns_.find(wanted);
  auto name = parse_name(line.substr(0, space));
  if (!name) return report_.add(at, zone.statement, name.error().text);
  if (pattern == patterns_.end())
    return report_.add(at, zone.statement, fmt::format("no such pattern: {}", wanted));
  zone.result.name = std::move(*name);
  zone.result.group = wanted;
  expand(pattern->second, fmt::format("pattern {}", wanted), 1, zone);
  if (is_member || !zone.producer.empty()) {
    const auto catalog = parse_name(zone.producer);
    if (catalog && out_.produces(*catalog)) {
      zone.result.options.catalog = *catalog;
      zone.result.options.catalog_group = wanted;
    } else {
      report_.add(at, zone.statement, fmt::format("no such catalog: {}", zone.producer));
    }
  }
  put_zone(at, zone);
}

/// Only zones that NSD notes elsewhere can have these.
void NsdImport::report_unused_patterns() {
  for (const auto& [name, section] : patterns_)
    if (!used_patterns_.contains(name))
      report_.add(section.at, fmt::format("pattern {}", name),
                  "no zone here has it: zones of 'nsd-control addzone' are in the zone list; name "
                  "that file by 'zonelistfile', and import again");
}

void NsdImport::expand(const SettingSection& section, const std::string& title, int depth,
                       Zone& zone) {
  for (const LineSetting& setting : section.settings) {
    if (setting.key == "name") continue;
    if (++expanded_ > kMaxExpanded || depth > ImportFiles::kMaxIncludes)
      return report_.add_once(setting.at, title, {"patterns are too deep or too long"});
    if (setting.key != "include-pattern") {
      take_zone_setting(setting, title, zone);
      continue;
    }
    const auto pattern = patterns_.find(setting.value());
    if (pattern == patterns_.end()) {
      report_.add(setting.at, fmt::format("include-pattern {}", setting.value()),
                  "no such pattern");
      continue;
    }
    used_patterns_.insert(pattern->first);
    if (zone.result.group.empty()) zone.result.group = setting.value();
    expand(pattern->second, fmt::format("pattern {}", setting.value()), depth + 1, zone);
  }
}

void NsdImport::take_zone_setting(const LineSetting& setting, const std::string& title,
                                  Zone& zone) {
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
  } else if (setting.key == "catalog") {
    zone.role = lower_case(setting.value());
  } else if (setting.key == "catalog-member-pattern") {
    zone.member_pattern = setting.value();
  } else if (setting.key == "catalog-producer-zone") {
    zone.producer = setting.value();
  } else if (setting.key != "outgoing-interface" ||
             !take_transfer_source(setting.value(), out_.server)) {
    const ImportReason reason = nsd_reason(setting.key);
    if (reason.effect == ImportEffect::kNone || !is_off(setting.value()))
      report_.add(setting.at, fmt::format("{}: {}", title, setting.key), reason);
  }
}

void NsdImport::add_remote(const LineSetting& setting, std::size_t first,
                           std::vector<std::string>& names) {
  const std::string statement = fmt::format("{} {}", setting.key, setting.value(first));
  const std::string_view key = setting.value(first + 1);
  const auto endpoint = endpoint_of(setting.value(first));
  if (!endpoint) return report_.add(setting.at, statement, endpoint.error().text);
  if (!setting.value(first + 2).empty())
    return report_.add(setting.at, statement, "there is no TLS yet");
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
                tls.empty() ? "is not an address and a key that is here" : "there is no TLS yet");
  return rule;
}

}  // namespace pando::config
