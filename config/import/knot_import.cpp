#include "config/import/knot_import.h"

#include <algorithm>

#include "config/import/model/import_reasons.h"
#include "config/settings/values.h"

namespace pando::config {

namespace {

constexpr std::string_view kDefaultStorage = "/var/lib/knot";

/// Settings that are read somewhere, by section.
constexpr std::string_view kReadOfZones = " domain template storage file master notify acl id ";

std::string title_of(const SettingSection& section, std::string_view key) {
  return fmt::format("{} {}", section.kind, section.text(key));
}

SourceLine place_of(const SettingSection& section) {
  return section.settings.empty() ? section.at : section.settings.front().at;
}

/// A number in brackets behind `%c` or `%l`, perhaps a range; npos if there is none.
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
  constexpr std::uint64_t kMost = 255;
  const auto first = parse_number(inner.substr(0, dash), 0, kMost);
  const auto last =
      dash == std::string_view::npos ? first : parse_number(inner.substr(dash + 1), 0, kMost);
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

bool is_on(std::string_view word) { return word == "on" || word == "true" || word == "yes"; }

}  // namespace

Status KnotImport::run(const ImportText& text) {
  const auto sections = parse_knot(text, files_, report_);
  if (!sections) return tl::unexpected<Error>(sections.error());
  sort_items(*sections);
  for (const SettingSection& section : *sections)
    if (section.kind == "zone" && !section.settings.empty()) take_zone(section);
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
    else if (kind != kinds.end())
      kind->second->insert_or_assign(std::string(section.text("id")), section);
    else
      report_.add(place_of(section), section.kind, setting_reason(section.kind));
    if (section.kind == "template") report_rest(section, title_of(section, "id"));
  }
}

void KnotImport::take_server(const SettingSection& section) {
  Server& server = out_.server;
  std::vector<Endpoint> listen;
  for (const LineSetting& setting : section.settings) {
    const std::string_view value = setting.value();
    const bool is_text = value.empty() || is_short_text(value);
    if (setting.key == "listen") {
      for (const std::string& address : setting.values) {
        const auto endpoint = Endpoint::from_text(address);
        if (endpoint)
          add_unique(listen, *endpoint);
        else
          report_.add(setting.at, fmt::format("listen {}", address), endpoint.error().text);
      }
    } else if (setting.key == "identity" && is_text) {
      server.identity = value;
    } else if (setting.key == "version" && is_text) {
      server.version = value;
    } else {
      report_.add(setting.at, fmt::format("server: {}", setting.key), setting_reason(setting.key));
    }
  }
  if (!listen.empty()) server.listen = std::move(listen);
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
    return report_.add(at, fmt::format("remote {}", id), setting_reason("tls"));
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

void KnotImport::take_zone(const SettingSection& zone) {
  const SourceLine at = place_of(zone);
  const std::string title = title_of(zone, "domain");
  auto name = parse_name(zone.text("domain"));
  if (!name) return report_.add(at, title, name.error().text);
  if (const LineSetting* base = zone.find("template"); base != nullptr && !template_of(zone))
    report_.add(base->at, title, fmt::format("no such template: {}", base->value()));
  ImportedZone result;
  result.name = *name;
  if (template_of(zone) != nullptr) result.group = template_of(zone)->text("id");
  result.options.primaries = remotes_of(zone, "master");
  result.options.notify = remotes_of(zone, "notify");
  take_rules(zone, *name, result.options);
  const bool meant_secondary = !zone_list(zone, "master").empty();
  if (!meant_secondary)
    result.file = file_of(zone, *name);
  else if (find(zone, "file") != nullptr)
    report_.add_once(at, fmt::format("{}: file", title),
                     "Knot writes the copies of secondary zones; the zone comes by a transfer");
  out_.add_zone(report_, at, title, std::move(result));
  report_rest(zone, title);
}

void KnotImport::report_rest(const SettingSection& section, const std::string& title) {
  for (const LineSetting& setting : section.settings)
    if (!is_listed(kReadOfZones, setting.key))
      report_.add(setting.at, fmt::format("{}: {}", title, setting.key),
                  setting_reason(setting.key));
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
