#include "config/import/import_yaml.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <set>

#include "config/import/match_list.h"

namespace pando::config {

namespace {

/// Words that are no text to some reader of YAML.
constexpr std::array<std::string_view, 10> kSpecialWords{"null", "true", "false", "yes", "no",
                                                         "on",   "off",  "y",     "n",   "default"};

bool is_plain(std::string_view text) {
  const auto is_word = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  if (text.empty() || (!is_word(text.front()) && text.front() != '/')) return false;
  const std::string lower = lower_case(text);
  if (std::find(kSpecialWords.begin(), kSpecialWords.end(), lower) != kSpecialWords.end())
    return false;
  return std::all_of(text.begin(), text.end(), [&](char c) {
    return is_word(c) || c == '.' || c == '_' || c == '/' || c == '-' || c == '@';
  });
}

/// A scalar, in double quotes where a plain one could mean something else.
std::string scalar(std::string_view text) {
  if (is_plain(text)) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    if (static_cast<unsigned char>(c) < 0x20)
      quoted += fmt::format("\\x{:02x}", static_cast<unsigned>(c));
    else
      quoted += c;
  }
  return quoted + '"';
}

std::string name_scalar(dns::NameView name) {
  std::string text = dns::to_text(name);
  if (text.size() > 1) text.pop_back();
  return scalar(text);
}

template <class List, class Show>
std::string flow_list(const List& list, Show show) {
  std::string text;
  for (const auto& item : list) text += (text.empty() ? "" : ", ") + show(item);
  return "[" + text + "]";
}

/// An address alone has no length.
std::string prefix_text(const IpPrefix& prefix) {
  constexpr std::uint8_t kHostLength = 128;
  return prefix.length == kHostLength ? to_text(prefix.address) : to_text(prefix);
}

std::string rule_text(const zone::AclRule& rule) {
  std::string text;
  const auto add = [&text](std::string_view key, const std::string& value) {
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", key, value);
  };
  if (rule.key) add("key", name_scalar(*rule.key));
  if (rule.address) add("address", scalar(prefix_text(*rule.address)));
  if (rule.deny) add("deny", "true");
  if (!rule.names.empty())
    add("names", flow_list(rule.names, [](const dns::Name& name) { return name_scalar(name); }));
  if (!rule.types.empty())
    add("types", flow_list(rule.types, [](dns::RRType type) { return dns::to_text(type); }));
  return "{" + text + "}";
}

void write_rules(std::string& out, std::string_view key, const zone::Acl& acl) {
  if (acl.empty()) {
    out += fmt::format("    {}: []\n", key);
    return;
  }
  out += fmt::format("    {}:\n", key);
  for (const zone::AclRule& rule : acl) out += fmt::format("      - {}\n", rule_text(rule));
}

bool is_everybody(const zone::Acl& acl) {
  return acl == ZoneOptions().allow_query ||
         (acl.size() == 1 && acl.front() == match_any().rule);
}

/// The lines of a zone or template for its options; none for the defaults.
std::string options_text(const ZoneOptions& options) {
  std::string out;
  const auto write_names = [&out](std::string_view key, const std::vector<std::string>& names) {
    if (!names.empty()) out += fmt::format("    {}: {}\n", key, flow_list(names, scalar));
  };
  write_names("primaries", options.primaries);
  if (!is_everybody(options.allow_query)) write_rules(out, "allow-query", options.allow_query);
  if (!options.allow_transfer.empty()) write_rules(out, "allow-transfer", options.allow_transfer);
  if (!options.allow_update.empty()) write_rules(out, "allow-update", options.allow_update);
  if (!options.allow_notify.empty()) write_rules(out, "allow-notify", options.allow_notify);
  write_names("notify", options.notify);
  if (options.forward_updates) out += "    forward-updates: true\n";
  return out;
}

void write_rate_limit(std::string& out, const RateLimit& limit) {
  const RateLimit usual;
  if (limit == usual) return;
  out += fmt::format("  rate-limit:\n    responses: {}\n", limit.responses);
  if (limit.slip != usual.slip) out += fmt::format("    slip: {}\n", limit.slip);
  if (limit.ipv4_prefix != usual.ipv4_prefix)
    out += fmt::format("    ipv4-prefix: {}\n", limit.ipv4_prefix);
  if (limit.ipv6_prefix != usual.ipv6_prefix)
    out += fmt::format("    ipv6-prefix: {}\n", limit.ipv6_prefix);
}

std::string server_text(const Server& server) {
  const Server usual;
  std::string out;
  if (server.listen != usual.listen) {
    out += "  listen:\n";
    for (const Endpoint& endpoint : server.listen)
      out += fmt::format("    - {}\n", scalar(to_text(endpoint)));
  }
  if (!server.identity.empty()) out += fmt::format("  identity: {}\n", scalar(server.identity));
  if (!server.version.empty()) out += fmt::format("  version: {}\n", scalar(server.version));
  if (server.udp_payload != usual.udp_payload)
    out += fmt::format("  udp-payload: {}\n", server.udp_payload);
  if (server.minimal_responses != usual.minimal_responses) out += "  minimal-responses: false\n";
  if (server.md5) out += "  md5: true\n";
  write_rate_limit(out, server.rate_limit);
  return out.empty() ? out : "server:\n" + out;
}

std::string keys_text(const ImportedConfiguration& imported, bool with_secrets) {
  std::string out;
  const std::vector<SecretFile> files = secret_files(imported);
  for (std::size_t i = 0; i < files.size(); ++i) {
    const ImportedKey& key = imported.keys()[i];
    out += fmt::format("  - name: {}\n    algorithm: {}\n", name_scalar(key.name),
                       scalar(dns::to_text(key.algorithm)));
    if (with_secrets && !key.secret.empty())
      out += fmt::format("    secret: {}\n", scalar(key.secret));
    else
      out += fmt::format("    secret-file: {}\n", scalar(files[i].name));
  }
  return out.empty() ? out : "keys:\n" + out;
}

std::string remotes_text(const std::vector<Remote>& remotes) {
  std::string out;
  for (const Remote& remote : remotes) {
    const auto show = [](const Endpoint& endpoint) { return scalar(to_text(endpoint)); };
    out += fmt::format("  - name: {}\n    address: {}\n", scalar(remote.name),
                       flow_list(remote.address, show));
    if (remote.key) out += fmt::format("    key: {}\n", name_scalar(*remote.key));
  }
  return out.empty() ? out : "remotes:\n" + out;
}

/// Options that two zones or more have become a template, named like the pattern of the first.
class Templates {
 public:
  explicit Templates(const std::vector<ImportedZone>& zones) {
    std::map<std::string, std::size_t> users;
    for (const ImportedZone& zone : zones) ++users[options_text(zone.options)];
    for (const ImportedZone& zone : zones) {
      std::string options = options_text(zone.options);
      if (options.empty() || users[options] < 2 || names_.contains(options)) continue;
      const std::string name = free_name(zone.group);
      text_ += fmt::format("  - name: {}\n{}", scalar(name), options);
      names_.emplace(std::move(options), name);
    }
  }

  [[nodiscard]] std::string text() const { return text_.empty() ? text_ : "templates:\n" + text_; }
  /// The zone's options: a reference, or the options themselves.
  [[nodiscard]] std::string reference(const ZoneOptions& options) const {
    std::string lines = options_text(options);
    const auto found = names_.find(lines);
    if (found == names_.end()) return lines;
    return fmt::format("    template: {}\n", scalar(found->second));
  }

 private:
  /// "default" would apply to every zone.
  std::string free_name(const std::string& wanted) {
    constexpr std::size_t kMaxName = 100;
    std::string name = is_plain(wanted) && wanted.size() <= kMaxName ? wanted : "group";
    const std::string base = name;
    while (!used_.insert(name).second) name = fmt::format("{}-{}", base, ++number_);
    return name;
  }

  std::map<std::string, std::string> names_;  // options' lines → name
  std::set<std::string> used_;
  std::size_t number_ = 1;
  std::string text_;
};

}  // namespace

std::vector<SecretFile> secret_files(const ImportedConfiguration& imported) {
  std::vector<SecretFile> files;
  std::set<std::string> used;
  for (const ImportedKey& key : imported.keys()) {
    std::string base = lower_case(dns::to_text(key.name));
    base.pop_back();
    for (char& c : base)
      if (!is_plain(std::string("a") + c) || c == '/' || c == '@') c = '_';
    constexpr std::size_t kMaxFileName = 200;
    base.resize(std::min(base.size(), kMaxFileName));
    if (base.empty() || base.front() == '.') base.insert(0, "key");
    std::string name = base + ".key";
    for (int number = 2; !used.insert(name).second; ++number)
      name = fmt::format("{}-{}.key", base, number);
    files.push_back({std::move(name), key.secret});
  }
  return files;
}

std::string write_yaml(const ImportedConfiguration& imported, std::string_view comment,
                       bool with_secrets) {
  const Templates templates(imported.zones());
  std::string out = fmt::format("# {}\n", comment);
  out += server_text(imported.server);
  out += keys_text(imported, with_secrets);
  out += remotes_text(imported.remotes());
  out += templates.text();
  if (imported.zones().empty()) return out + "zones: []\n";
  out += "zones:\n";
  for (const ImportedZone& zone : imported.zones()) {
    out += fmt::format("  - name: {}\n", name_scalar(zone.name));
    if (!zone.file.empty()) out += fmt::format("    file: {}\n", scalar(zone.file));
    out += templates.reference(zone.options);
  }
  return out;
}

}  // namespace pando::config
