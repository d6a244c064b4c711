#include "config/import/knot_import.h"

#include <algorithm>

#include "config/import/model/import_reasons.h"
#include "config/settings/values.h"

namespace pando::config {

namespace {

constexpr std::string_view kDefaultStorage = "/var/lib/knot";

/// Settings that are read somewhere, by section.
constexpr std::string_view kReadOfZones =
    " domain template storage file master notify acl id comment module global-module "
    "dnssec-signing dnssec-policy catalog-role catalog-template catalog-zone catalog-group notify-delay "
    "serial-policy ";

std::string title_of(const SettingSection& section, std::string_view key) {
  return fmt::format("{} {}", section.kind, section.text(key));
}

SourceLine place_of(const SettingSection& section) {
  return section.settings.empty() ? section.at : section.settings.front().at;
}

/// A number in brackets after `%c` or `%l`, perhaps a range; npos if there is none.
struct KnotIndex {
  std::size_t first = std::string_view::npos;
  std::size_t last = 0;
  std::size_t length = 0;  ///< of the text in brackets, with them
};

KnotIndex index_at(std::string_view text) {
  const auto end = text.find(']');
  if (!text.starts_with('[') || end == std::string_view::npos) return {};
  const std::string_view inner = text.substr(1, end - 1);
  const auto dash = inner.find('-');
  constexpr std::uint64_t kMax = 255;
  const auto first = parse_number(inner.substr(0, dash), 0, kMax);
  const auto last =
      dash == std::string_view::npos ? first : parse_number(inner.substr(dash + 1), 0, kMax);
  if (!first || !last) return {};
  return {static_cast<std::size_t>(*first), static_cast<std::size_t>(*last), end + 1};
}

/// The label at `index` from the right; labels are separated by dots.
std::string_view label_from_right(std::string_view text, std::size_t index) {
  while (true) {
    const auto dot = text.rfind('.');
    if (index == 0) return dot == std::string_view::npos ? text : text.substr(dot + 1);
    if (dot == std::string_view::npos) return {};
    text = text.substr(0, dot);
    --index;
  }
}

/// `file`: `%s` is the zone's name, `%c[N]`, `%c[N-M]` its characters, `%l[N]` a label from the
/// right. Knot writes names in lower case, and `_` for slashes, which would name folders.
std::string knot_file(std::string_view format, const dns::Name& name) {
  std::string full = dns::to_text(name.folded());
  std::replace(full.begin(), full.end(), '/', '_');
  const std::string_view text = std::string_view(full).substr(0, full.size() - 1);
  std::string file;
  for (std::size_t i = 0; i < format.size(); ++i) {
    const char kind = format[i] == '%' && i + 1 < format.size() ? format[i + 1] : '\0';
    const KnotIndex index =
        kind == 'c' || kind == 'l' ? index_at(format.substr(i + 2)) : KnotIndex();
    if (kind == 's') {
      file += text;
      ++i;
    } else if (kind == '%') {
      file += '%';
      ++i;
    } else if (index.length != 0) {
      if (kind == 'l')
        file += label_from_right(text, index.first);
      else if (index.first < full.size() && index.last >= index.first)
        file += full.substr(index.first, index.last - index.first + 1);
      i += 1 + index.length;
    } else {
      file += format[i];
    }
  }
  return file;
}

bool has_word(const std::vector<std::string>& list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

/// Types of records, each once; false if a word is none.
bool read_update_types(const std::vector<std::string>& words, std::vector<dns::RRType>& types) {
  for (const std::string& word : words) {
    const auto type = dns::rrtype_from_text(word);
    if (!type || dns::is_meta_type(*type)) return false;
    add_unique(types, *type);
  }
  return true;
}

bool is_catalog(std::string_view role) { return role == "interpret" || role == "generate"; }

bool is_on(std::string_view word) { return word == "on" || word == "true" || word == "yes"; }

}  // namespace

Status KnotImport::run(const ImportText& text) {
  const auto sections = parse_knot(text, files_, report_);
  if (!sections) return tl::unexpected<Error>(sections.error());
  sort_items(*sections);
  for (const auto& [id, section] : templates_) take_modules(section, title_of(section, "id"));
  take_templates();
  // Catalogs first: their members refer to them.
  for (const bool catalogs : {true, false})
    for (const SettingSection& section : *sections)
      if (section.kind == "zone" && !section.settings.empty() &&
          is_catalog(role_of(section)) == catalogs)
        take_zone(section);
  return {};
}

void KnotImport::sort_items(const std::vector<SettingSection>& sections) {
  const std::map<std::string_view, Items*> kinds{
      {"remote", &remotes_}, {"remotes", &groups_}, {"acl", &acls_}, {"template", &templates_}};
  for (const SettingSection& section : sections) {
    const auto kind = kinds.find(section.kind);
    if (section.settings.empty() || section.kind == "zone") continue;
    if (section.kind == "key")
      out_.add_key(report_, place_of(section), section.text("id"), section.text("algorithm"),
                   section.text("secret"));
    else if (section.kind == "server")
      take_server(section);
    else if (section.kind == "xdp")
      take_xdp(section);
    else if (signing_.take(section))
      continue;
    else if (section.kind.starts_with("mod-"))
      modules_[section.kind].insert_or_assign(std::string(section.text("id")), section);
    else if (kind != kinds.end())
      kind->second->insert_or_assign(std::string(section.text("id")), section);
    else
      report_.add(place_of(section), section.kind, knot_reason(section.kind));
    if (section.kind == "template") report_rest(section, title_of(section, "id"));
  }
}

void KnotImport::take_server(const SettingSection& section) {
  std::vector<Endpoint> listen;
  for (const LineSetting& setting : section.settings) {
    if (setting.key == "listen") {
      for (const std::string& address : setting.values) {
        const auto endpoint = Endpoint::from_text(address);
        if (endpoint)
          add_unique(listen, *endpoint);
        else
          report_.add(setting.at, fmt::format("listen {}", address), endpoint.error().text);
      }
    } else if (!take_server_setting(setting)) {
      const ImportReason reason = knot_reason(setting.key);
      const std::string title = fmt::format("server: {}", setting.key);
      if (reason.effect == ImportEffect::kNone || !is_off(setting.value()))
        report_.add(setting.at, title, reason);
    }
  }
  if (!listen.empty()) out_.server.listen = std::move(listen);
  const std::string_view nsid = section.text("nsid");
  if (nsid.empty() || nsid == out_.server.identity) return;
  const LineSetting& setting = *section.find("nsid");
  const bool both = !out_.server.identity.empty();
  const bool taken = nsid.starts_with("0x")
                         ? take_identity_digits(nsid.substr(2), out_.server.identity)
                         : take_identity(nsid, out_.server.identity);
  if (both || !taken)
    report_.add(setting.at, "server: nsid", "server.identity is one text, for id.server too");
}

bool KnotImport::take_server_setting(const LineSetting& setting) {
  Server& server = out_.server;
  const std::string_view value = setting.value();
  if (setting.key == "nsid" || setting.key == "comment") return true;
  if (setting.key == "identity" || setting.key == "version") {
    const bool is_text = value.empty() || is_short_text(value);
    if (is_text) (setting.key == "identity" ? server.identity : server.version) = value;
    return is_text;
  }
  if (setting.key.starts_with("udp-max-payload")) {
    const auto size = parse_number(value, 512, 4096);
    const bool is_all = setting.key == "udp-max-payload";
    const auto octets = static_cast<std::uint16_t>(size ? *size : 0);
    if (size) server.udp_payload = is_all ? octets : std::min(server.udp_payload, octets);
    return size.has_value();
  }
  if (setting.key != "proxy-allowlist") return false;
  MatchRules rules;
  for (const std::string& address : setting.values) add_address(setting.at, address, rules);
  for (const zone::AclRule& rule : finish_rules(rules))
    if (!rule.deny) server.proxy_protocol_from.push_back(*rule.address);
  return true;
}

/// `listen: INTERFACE[@PORT]`; XDP at an address means the interface that has it.
void KnotImport::take_xdp(const SettingSection& section) {
  for (const LineSetting& setting : section.settings) {
    if (setting.key != "listen") continue;
    for (const std::string& word : setting.values) {
      const std::string name = word.substr(0, word.find('@'));
      if (IpAddress::from_text(name))
        report_.note(setting.at, fmt::format("xdp: listen {}", word),
                     "server.xdp has names of interfaces alone");
      else
        out_.server.xdp.push_back({.interface = name});
    }
  }
}

void KnotImport::take_modules(const SettingSection& section, const std::string& title) {
  for (const LineSetting& setting : section.settings)
    if (setting.key == "module" || setting.key == "global-module")
      for (const std::string& reference : setting.values) take_module(setting, reference, title);
}

/// `mod-NAME`, or `mod-NAME/ID` with the settings of an item.
void KnotImport::take_module(const LineSetting& setting, std::string_view reference,
                             const std::string& title) {
  const std::string_view module = reference.substr(0, reference.find('/'));
  const std::string_view id =
      module.size() == reference.size() ? std::string_view() : reference.substr(module.size() + 1);
  const SettingSection* item = nullptr;
  if (const auto items = modules_.find(module); items != modules_.end())
    if (const auto found = items->second.find(id); found != items->second.end())
      item = &found->second;
  const std::string statement = fmt::format("{}: {}", title, reference);
  if (module == "mod-rrl" && (item != nullptr || id.empty())) {
    take_rate_limit_of(item);
    report_.note(setting.at, statement,
                 "server.rate-limit holds for all zones, and counts by kind of response");
  } else if (module != "mod-dnstap" || item == nullptr || !take_dnstap(*item)) {
    report_.add(setting.at, statement, knot_reason(module));
  }
}

void KnotImport::take_rate_limit_of(const SettingSection* module) {
  RateLimit& limit = out_.server.rate_limit;
  if (module != nullptr && is_on(module->text("dry-run"))) return;
  constexpr std::uint32_t kUsualOfKnot = 50;
  limit.responses = kUsualOfKnot;
  limit.slip = 1;
  if (module == nullptr) return;
  for (const LineSetting& setting : module->settings)
    if (setting.key == "rate-limit" || setting.key == "slip")
      static_cast<void>(take_rate_limit(setting.key == "slip" ? "slip" : "responses-per-second",
                                        setting.value(), limit));
  take_whitelist(*module);
}

void KnotImport::take_whitelist(const SettingSection& module) {
  MatchRules rules;
  const SourceLine at = place_of(module);
  for (const std::string& address : list_of(module, "whitelist")) add_address(at, address, rules);
  for (const zone::AclRule& rule : finish_rules(rules))
    if (!rule.deny) add_unique(out_.server.rate_limit.exempt, *rule.address);
}

/// `sink: unix:PATH`; others are files.
bool KnotImport::take_dnstap(const SettingSection& module) {
  constexpr std::string_view kSocket = "unix:";
  const std::string_view sink = module.text("sink");
  if (!sink.starts_with(kSocket) || !sink.substr(kSocket.size()).starts_with('/')) return false;
  const auto is_logged = [&module](std::string_view key) {
    return module.find(key) == nullptr || is_on(module.text(key));
  };
  Dnstap dnstap{.socket = std::string(sink.substr(kSocket.size())), .messages = {}};
  if (is_logged("log-queries")) dnstap.messages.push_back(Dnstap::Messages::kQueries);
  if (is_logged("log-responses")) dnstap.messages.push_back(Dnstap::Messages::kResponses);
  if (!dnstap.messages.empty()) out_.server.dnstap = std::move(dnstap);
  return true;
}

const SettingSection* KnotImport::template_of(const SettingSection& zone) const {
  const LineSetting* setting = zone.find("template");
  const auto found =
      templates_.find(setting == nullptr ? std::string_view("default") : setting->value());
  return found == templates_.end() ? nullptr : &found->second;
}

const LineSetting* KnotImport::find(const SettingSection& zone, std::string_view key) const {
  if (const LineSetting* own = zone.find(key)) return own;
  const SettingSection* base = template_of(zone);
  return base == nullptr ? nullptr : base->find(key);
}

std::vector<std::string> KnotImport::list_of(const SettingSection& section,
                                             std::string_view key) const {
  std::vector<std::string> values;
  for (const LineSetting& setting : section.settings)
    if (setting.key == key)
      values.insert(values.end(), setting.values.begin(), setting.values.end());
  return values;
}

std::vector<std::string> KnotImport::zone_list(const SettingSection& zone,
                                               std::string_view key) const {
  if (zone.find(key) != nullptr) return list_of(zone, key);
  const SettingSection* base = template_of(zone);
  return base == nullptr ? std::vector<std::string>() : list_of(*base, key);
}

std::string KnotImport::file_of(const SettingSection& zone, const dns::Name& name) {
  const LineSetting* storage = find(zone, "storage");
  const LineSetting* file = find(zone, "file");
  std::string path = join_path(storage == nullptr ? kDefaultStorage : storage->value(),
                               knot_file(file == nullptr ? "%s.zone" : file->value(), name));
  report_relative(report_, place_of(zone), path);
  return path;
}

void KnotImport::add_remote(const SourceLine& at, const std::string& id,
                            std::vector<std::string>& names) {
  const auto found = remotes_.find(id);
  if (found == remotes_.end())
    return report_.add(at, fmt::format("remote {}", id), "no such remote");
  const SettingSection& remote = found->second;
  const std::string_view key = remote.text("key");
  const std::optional<dns::Name> known = key.empty() ? std::nullopt : out_.find_key(key);
  if (!key.empty() && !known)
    return report_.add(at, fmt::format("remote {}", id), fmt::format("no such key: {}", key));
  if (is_on(remote.text("tls")) || is_on(remote.text("quic")))
    return report_.add(at, fmt::format("remote {}", id), "there is no TLS yet");
  for (const std::string& address : list_of(remote, "address")) {
    const auto endpoint = Endpoint::from_text(address);
    if (endpoint)
      add_unique(names, out_.remote(*endpoint, known));
    else
      report_.add(at, fmt::format("remote {}", id), endpoint.error().text);
  }
}

std::vector<std::string> KnotImport::remotes_of(const SettingSection& zone, std::string_view key) {
  std::vector<std::string> names;
  const LineSetting* setting = find(zone, key);
  for (const std::string& id : zone_list(zone, key)) {
    const auto group = groups_.find(id);
    if (group == groups_.end()) {
      add_remote(setting->at, id, names);
      continue;
    }
    for (const std::string& member : list_of(group->second, "remote"))
      add_remote(setting->at, member, names);
  }
  return names;
}

std::string KnotImport::signing_of(const SettingSection& zone) const {
  if (const LineSetting* signing = find(zone, "dnssec-signing");
      signing != nullptr && is_on(signing->value()))
    return "dnssec-signing";
  for (const char* key : {"module", "global-module"})
    for (const std::string& module : zone_list(zone, key))
      if (module.starts_with("mod-onlinesign")) return module;
  return {};
}

std::string_view KnotImport::role_of(const SettingSection& zone) const {
  const LineSetting* role = find(zone, "catalog-role");
  return role == nullptr ? std::string_view() : role->value();
}

/// All but those of catalogs themselves: members, and zones that are added later, may name them.
void KnotImport::take_templates() {
  for (const auto& [id, section] : templates_) {
    SettingSection zone{section.at, "zone", {}};
    zone.settings.push_back({place_of(section), "template", {id}, false});
    ZoneOptions options = options_of(zone, dns::Name());
    if (const std::string_view role = role_of(zone); is_catalog(role)) continue;
    template_names_.emplace(id, out_.add_template(id, options));
  }
}

ZoneOptions KnotImport::options_of(const SettingSection& zone, const dns::Name& name) {
  ZoneOptions options;
  options.primaries = remotes_of(zone, "master");
  options.notify = remotes_of(zone, "notify");
  take_rules(zone, name, options);
  take_changes(zone, options);
  return options;
}

/// `notify-delay` and `serial-policy`.
void KnotImport::take_changes(const SettingSection& zone, ZoneOptions& options) {
  if (const LineSetting* delay = find(zone, "notify-delay")) {
    constexpr std::uint64_t kLongest = 3600;
    if (const auto seconds = parse_number(delay->value(), 0, kLongest))
      options.notify_delay = std::chrono::seconds(*seconds);
    else
      report_.add(delay->at, "notify-delay", knot_reason("notify-delay"));
  }
  const LineSetting* policy = find(zone, "serial-policy");
  const std::string_view word = policy == nullptr ? std::string_view() : policy->value();
  if (word == "unixtime") options.serial_policy = SerialPolicy::kUnixtime;
  if (word == "dateserial") options.serial_policy = SerialPolicy::kDate;
}

void KnotImport::take_zone(const SettingSection& zone) {
  const SourceLine at = place_of(zone);
  const std::string title = title_of(zone, "domain");
  auto name = parse_name(zone.text("domain"));
  if (!name) return report_.add(at, title, name.error().text);
  if (const LineSetting* base = zone.find("template"); base != nullptr && !template_of(zone))
    report_.add(base->at, title, fmt::format("no such template: {}", base->value()));
  const std::string signing = signing_of(zone);
  const bool is_signed = signing == "dnssec-signing" && zone_list(zone, "master").empty();
  if (!signing.empty() && !is_signed)
    return report_.add(at, title, signed_reason("Knot", signing));
  ImportedZone result;
  result.name = *name;
  if (template_of(zone) != nullptr) result.group = template_of(zone)->text("id");
  result.options = options_of(zone, *name);
  take_modules(zone, title);
  if (is_catalog(role_of(zone))) return take_catalog(zone, *name, std::move(result.options));
  take_membership(zone, title, result.options);
  const bool meant_secondary = !zone_list(zone, "master").empty();
  if (!meant_secondary)
    result.file = file_of(zone, *name);
  else if (find(zone, "file") != nullptr)
    report_.add_once(at, fmt::format("{}: file", title),
                     {"Knot writes the copies of secondary zones; the zone comes by a transfer",
                      ImportEffect::kNone});
  if (is_signed && !sign(zone, title, result)) return;
  out_.add_zone(report_, at, title, std::move(result));
  report_rest(zone, title);
}

bool KnotImport::sign(const SettingSection& zone, const std::string& title, ImportedZone& result) {
  const LineSetting* policy = find(zone, "dnssec-policy");
  return take_signing(signing_.of(policy == nullptr ? "" : policy->value(), result.name),
                      place_of(zone), title, out_, report_, result);
}

/// Members have the template that is named like their group, else the first of `catalog-template`.
void KnotImport::take_catalog(const SettingSection& zone, const dns::Name& name,
                              ZoneOptions options) {
  Catalog catalog{.zone = name,
                  .role = Catalog::Role::kConsumer,
                  .primaries = options.primaries,
                  .template_name = {}};
  const std::string title = title_of(zone, "domain");
  if (role_of(zone) == "generate") {
    catalog.role = Catalog::Role::kProducer;
    catalog.primaries.clear();
    options.primaries.clear();
    catalog.template_name = out_.add_template("catalog", options);
  }
  for (const std::string& id : zone_list(zone, "catalog-template")) {
    const auto known = template_names_.find(id);
    if (known == template_names_.end()) {
      report_.add(place_of(zone), title, fmt::format("no such template: {}", id));
      continue;
    }
    SettingSection member{zone.at, "zone", {}};
    member.settings.push_back({place_of(zone), "template", {id}, false});
    if (const std::string signing = signing_of(member); !signing.empty() && !catalog.produces())
      return report_.add(place_of(zone), title, signed_members_reason("Knot", signing));
    if (catalog.template_name.empty()) catalog.template_name = known->second;
    if (is_short_text(id)) catalog.groups.push_back({id, known->second});
  }
  if (!catalog.produces())
    report_.note(place_of(zone), title, "its members are transferred from its own primaries");
  out_.add_catalog(report_, place_of(zone), title, std::move(catalog));
  report_rest(zone, title);
}

void KnotImport::take_membership(const SettingSection& zone, const std::string& title,
                                 ZoneOptions& options) {
  if (role_of(zone) != "member") return;
  const LineSetting* catalog = find(zone, "catalog-zone");
  const LineSetting* group = find(zone, "catalog-group");
  const auto name = parse_name(catalog == nullptr ? std::string_view() : catalog->value());
  if (!name || !out_.produces(*name))
    return report_.add(place_of(zone), title, "is a member of a catalog that is not here");
  options.catalog = *name;
  if (group != nullptr && is_short_text(group->value())) options.catalog_group = group->value();
}

/// Data that only Knot's journal has are in no file.
void KnotImport::report_setting(const LineSetting& setting, const std::string& title) {
  const std::string statement = fmt::format("{}: {}", title, setting.key);
  const std::string_view value = setting.value();
  const ImportReason reason = knot_reason(setting.key);
  if ((setting.key == "journal-content" && value == "all") ||
      (setting.key == "zonefile-load" && value == "none"))
    report_.add(setting.at, statement, "its data are in Knot's journal: see knotc zone-flush");
  else if (reason.effect == ImportEffect::kNone || !is_off(value))
    report_.add(setting.at, statement, reason);
}

void KnotImport::report_rest(const SettingSection& section, const std::string& title) {
  for (const LineSetting& setting : section.settings)
    if (!is_listed(kReadOfZones, setting.key)) report_setting(setting, title);
}

void KnotImport::add_address(const SourceLine& at, const std::string& text, MatchRules& matches) {
  const auto dash = text.find('-');
  MatchRules found = match_prefix(text);
  if (dash != std::string::npos)
    for (const IpPrefix& prefix :
         range_prefixes(std::string_view(text).substr(0, dash), text.substr(dash + 1)))
      found.emplace_back().rule.address = prefix;
  if (found.empty()) {
    report_.add(at, fmt::format("address {}", text), "is neither an address nor a range of them");
    found.emplace_back().unknown = true;
  }
  if (!put_before(matches, false, found)) report_.add(at, "address", "the list is too long");
}

MatchRules KnotImport::rules_of(const SettingSection& acl) {
  MatchRules addresses;
  const SourceLine at = place_of(acl);
  for (const std::string& address : list_of(acl, "address")) add_address(at, address, addresses);
  std::vector<std::string> keys = list_of(acl, "key");
  for (const std::string& id : list_of(acl, "remote")) {
    const auto remote = remotes_.find(id);
    if (remote == remotes_.end()) {
      report_.add(at, fmt::format("acl {}: remote {}", acl.text("id"), id), "no such remote");
      addresses.emplace_back().unknown = true;
      continue;
    }
    for (const std::string& address : list_of(remote->second, "address"))
      add_address(at, address.substr(0, address.find('@')), addresses);
    for (const std::string& key : list_of(remote->second, "key")) add_unique(keys, key);
  }
  const bool any_address = addresses.empty();
  if (any_address) addresses.push_back(match_any());
  MatchRules rules;
  for (const MatchRule& match : addresses) {
    if (keys.empty()) rules.push_back(match);
    for (const std::string& key : keys) {
      if (rules.size() >= kMaxMatchRules) break;
      MatchRule signed_match = match;
      signed_match.rule.key = out_.find_key(key);
      if (!signed_match.rule.key) {
        report_.add(at, fmt::format("acl {}: key {}", acl.text("id"), key), "no such key");
        signed_match.unknown = true;
      }
      if (any_address && signed_match.rule.key) signed_match.rule.address.reset();
      rules.push_back(std::move(signed_match));
    }
  }
  if (const LineSetting* protocol = acl.find("protocol")) {
    report_.add(protocol->at, fmt::format("acl {}: protocol", acl.text("id")),
                "is not a condition here");
    for (MatchRule& rule : rules) rule.unknown = true;
  }
  return rules;
}

/// Conditions `update-owner`, `update-owner-match`, `update-owner-name`, `update-type`. False when
/// they cannot be expressed.
bool KnotImport::limit_update(const SettingSection& acl, const dns::Name& zone, MatchRules& rules) {
  const std::string_view owner = acl.text("update-owner");
  const std::string_view how = acl.text("update-owner-match");
  std::vector<std::string> patterns;
  const auto add = [&](const std::string& base) {
    if (how != "sub") patterns.push_back(base);
    if (how != "equal") patterns.push_back("*." + base);
  };
  if (how == "pattern") return false;
  if (owner == "key") add("self");
  if (owner == "zone" && (how == "equal" || how == "sub")) add(dns::to_text(zone));
  if (owner == "name")
    for (const std::string& text : list_of(acl, "update-owner-name")) {
      const auto name = dns::Name::from_text(text, zone);
      if (!name) return false;
      add(dns::to_text(*name));
    }
  if (owner == "name" && patterns.empty()) return false;
  zone::AclRule limits;
  for (const std::string& pattern : patterns) {
    auto name = parse_name(pattern);
    if (!name) return false;
    add_unique(limits.names, std::move(*name));
  }
  if (!read_update_types(list_of(acl, "update-type"), limits.types)) return false;
  for (MatchRule& rule : rules) {
    rule.rule.names = limits.names;
    rule.rule.types = limits.types;
  }
  return true;
}

void KnotImport::take_rules(const SettingSection& zone, const dns::Name& name,
                            ZoneOptions& options) {
  MatchRules transfer;
  MatchRules update;
  MatchRules notify;
  MatchRules query{match_any()};
  const LineSetting* setting = find(zone, "acl");
  const std::vector<std::string> ids = zone_list(zone, "acl");
  for (auto id = ids.rbegin(); id != ids.rend(); ++id) {
    const auto acl = acls_.find(*id);
    if (acl == acls_.end()) {
      report_.add(setting->at, fmt::format("acl {}", *id), "no such acl, so nobody has access");
      return;
    }
    const bool deny = is_on(acl->second.text("deny"));
    const std::vector<std::string> actions = list_of(acl->second, "action");
    const auto concerns = [&](std::string_view action) {
      return has_word(actions, action) || (deny && actions.empty());
    };
    MatchRules rules = rules_of(acl->second);
    bool fits = !concerns("transfer") || put_before(transfer, deny, rules);
    fits = fits && (!concerns("notify") || put_before(notify, deny, rules));
    // Knot answers queries of everybody whom no rule denies.
    fits = fits && (!deny || !concerns("query") || put_before(query, deny, rules));
    if (concerns("update") && !limit_update(acl->second, name, rules)) {
      report_.add(setting->at, fmt::format("acl {}", *id), "its limits of updates are not here");
      for (MatchRule& rule : rules) rule.unknown = true;
    }
    fits = fits && (!concerns("update") || put_before(update, deny, rules));
    if (!fits) return report_.add(setting->at, fmt::format("acl {}", *id), "is too long");
  }
  options.allow_transfer = finish_rules(transfer);
  options.allow_update = finish_rules(update);
  options.allow_notify = finish_rules(notify);
  options.allow_query = finish_rules(query);
  // A secondary zone of Knot forwards updates that it may have.
  options.forward_updates = options.is_secondary() && !options.allow_update.empty();
}

}  // namespace pando::config
