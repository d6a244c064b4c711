#include "config/import/model/import_yaml.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <set>

#include "config/import/model/match_list.h"
#include "config/settings/shown_value.h"
#include "config/settings/yaml_scalar.h"
#include "dns/mnemonics.h"

namespace pando::config {

namespace {

void write_rules(std::string& out, std::string_view key, const zone::Acl& acl) {
  if (acl.empty()) {
    out += fmt::format("    {}: []\n", key);
    return;
  }
  out += fmt::format("    {}:\n", key);
  for (const zone::AclRule& rule : acl) out += fmt::format("      - {}\n", rule_yaml(rule));
}

bool is_everybody(const zone::Acl& acl) {
  return acl == ZoneOptions().allow_query || (acl.size() == 1 && acl.front() == match_any().rule);
}

std::string word_of(SerialPolicy policy) {
  if (policy == SerialPolicy::kUnixtime) return "unixtime";
  return policy == SerialPolicy::kDate ? "date" : "increment";
}

/// The lines of a zone or template for its options; none for the defaults.
std::string options_text(const ZoneOptions& options) {
  std::string out;
  const auto write_names = [&out](std::string_view key, const std::vector<std::string>& names) {
    if (!names.empty()) out += fmt::format("    {}: {}\n", key, flow_list(names, yaml_scalar));
  };
  write_names("primaries", options.primaries);
  if (!is_everybody(options.allow_query)) write_rules(out, "allow-query", options.allow_query);
  if (!options.allow_transfer.empty()) write_rules(out, "allow-transfer", options.allow_transfer);
  if (!options.allow_update.empty()) write_rules(out, "allow-update", options.allow_update);
  if (!options.allow_notify.empty()) write_rules(out, "allow-notify", options.allow_notify);
  write_names("notify", options.notify);
  const ZoneOptions usual;
  const auto write_other = [&out](std::string_view key, const Shown& value,
                                  const Shown& default_value) {
    if (value && value != default_value) out += fmt::format("    {}: {}\n", key, *value);
  };
  write_other("notify-delay", shown(options.notify_delay), shown(usual.notify_delay));
  write_other("serial-policy", word_of(options.serial_policy), word_of(usual.serial_policy));
  write_other("export-interval", shown(options.export_interval), shown(usual.export_interval));
  write_other("catalog", shown(options.catalog), {});
  if (!options.catalog_group.empty())
    out += fmt::format("    catalog-group: {}\n", yaml_scalar(options.catalog_group));
  if (options.forward_updates) out += "    forward-updates: true\n";
  if (!options.dnssec.empty()) out += fmt::format("    dnssec: {}\n", yaml_scalar(options.dnssec));
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
  if (!limit.exempt.empty()) out += fmt::format("    exempt: {}\n", *shown(limit.exempt));
}

void write_xdp(std::string& out, const std::vector<XdpInterface>& interfaces) {
  if (!interfaces.empty()) out += "  xdp:\n";
  for (const XdpInterface& each : interfaces)
    out += fmt::format("    - interface: {}\n", yaml_scalar(each.interface));
}

void write_dnstap(std::string& out, const std::optional<Dnstap>& dnstap) {
  if (!dnstap) return;
  out += fmt::format("  dnstap:\n    socket: {}\n", yaml_scalar(dnstap->socket));
  if (dnstap->messages == Dnstap().messages) return;
  std::vector<std::string> words;
  if (dnstap->has(Dnstap::Messages::kQueries)) words.emplace_back("queries");
  if (dnstap->has(Dnstap::Messages::kResponses)) words.emplace_back("responses");
  if (dnstap->has(Dnstap::Messages::kUpdates)) words.emplace_back("updates");
  out += fmt::format("    messages: {}\n", flow_list(words, yaml_scalar));
}

std::string server_text(const Server& server) {
  const Server usual;
  std::string out;
  if (server.listen != usual.listen) {
    out += "  listen:\n";
    for (const Endpoint& endpoint : server.listen)
      out += fmt::format("    - {}\n", yaml_scalar(to_text(endpoint)));
  }
  if (!server.identity.empty())
    out += fmt::format("  identity: {}\n", yaml_scalar(server.identity));
  if (!server.version.empty()) out += fmt::format("  version: {}\n", yaml_scalar(server.version));
  if (server.udp_payload != usual.udp_payload)
    out += fmt::format("  udp-payload: {}\n", server.udp_payload);
  if (server.minimal_responses != usual.minimal_responses) out += "  minimal-responses: false\n";
  if (server.md5) out += "  md5: true\n";
  if (!server.proxy_protocol_from.empty())
    out += fmt::format("  proxy-protocol-from: {}\n", *shown(server.proxy_protocol_from));
  if (server.transfer_source)
    out += fmt::format("  transfer-source: {}\n", *shown(*server.transfer_source));
  write_xdp(out, server.xdp);
  write_dnstap(out, server.dnstap);
  write_rate_limit(out, server.rate_limit);
  return out.empty() ? out : "server:\n" + out;
}

std::string keys_text(const ImportedConfiguration& imported, bool with_secrets) {
  std::string out;
  const std::vector<SecretFile> files = secret_files(imported);
  for (std::size_t i = 0; i < files.size(); ++i) {
    const ImportedKey& key = imported.keys()[i];
    out += fmt::format("  - name: {}\n    algorithm: {}\n", yaml_name(key.name),
                       yaml_scalar(dns::to_text(key.algorithm)));
    if (!key.session_file.empty())
      out += fmt::format("    session-file: {}\n", yaml_scalar(key.session_file));
    else if (with_secrets && !key.secret.empty())
      out += fmt::format("    secret: {}\n", yaml_scalar(key.secret));
    else
      out += fmt::format("    secret-file: {}\n", yaml_scalar(files[i].name));
  }
  return out.empty() ? out : "keys:\n" + out;
}

std::string remotes_text(const std::vector<Remote>& remotes) {
  std::string out;
  for (const Remote& remote : remotes) {
    const auto show = [](const Endpoint& endpoint) { return yaml_scalar(to_text(endpoint)); };
    out += fmt::format("  - name: {}\n    address: {}\n", yaml_scalar(remote.name),
                       flow_list(remote.address, show));
    if (remote.key) out += fmt::format("    key: {}\n", yaml_name(*remote.key));
  }
  return out.empty() ? out : "remotes:\n" + out;
}

std::string policies_text(const std::vector<DnssecPolicy>& policies) {
  std::string out;
  for (const DnssecPolicy& policy : policies) {
    const DnssecPolicy usual;
    const auto write_time = [&out](std::string_view key, Duration time, Duration usual_time) {
      if (time != usual_time) out += fmt::format("    {}: {}\n", key, *shown(time));
    };
    out += fmt::format("  - name: {}\n    algorithm: {}\n", yaml_scalar(policy.name),
                       dns::mnemonic_of(dns::kDnssecAlgorithms, policy.algorithm));
    write_time("validity", policy.validity, usual.validity);
    write_time("refresh", policy.refresh, usual.refresh);
    write_time("propagation", policy.propagation, usual.propagation);
    write_time("parent-ds-ttl", policy.parent_ds_ttl, usual.parent_ds_ttl);
    if (policy.nsec3 != usual.nsec3)
      out += fmt::format("    nsec3: {}\n", policy.nsec3 == Nsec3Use::kOptOut ? "opt-out" : "on");
    if (!policy.cds) out += "    cds: false\n";
    if (!policy.make_keys) out += "    make-keys: false\n";
  }
  return out.empty() ? out : "dnssec-policies:\n" + out;
}

/// Templates of the other server, and options that two zones or more have: such a template is
/// named like the pattern of the first zone.
class Templates {
 public:
  explicit Templates(const ImportedConfiguration& imported) : free_(imported.template_names()) {
    for (const ImportedTemplate& each : imported.templates())
      add(each.name, options_text(each.options));
    std::map<std::string, std::size_t> users;
    for (const ImportedZone& zone : imported.zones()) ++users[options_text(zone.options)];
    for (const ImportedZone& zone : imported.zones()) {
      const std::string options = options_text(zone.options);
      if (!options.empty() && users[options] > 1 && !names_.contains(options))
        add(free_.take(zone.group), options);
    }
  }

  [[nodiscard]] std::string text() const { return text_.empty() ? text_ : "templates:\n" + text_; }
  /// The zone's options: a reference, or the options themselves.
  [[nodiscard]] std::string reference(const ZoneOptions& options) const {
    std::string lines = options_text(options);
    const auto found = names_.find(lines);
    if (found == names_.end()) return lines;
    return fmt::format("    template: {}\n", yaml_scalar(found->second));
  }

 private:
  void add(const std::string& name, const std::string& options) {
    text_ += fmt::format("  - name: {}\n{}", yaml_scalar(name), options);
    if (!options.empty()) names_.emplace(options, name);
  }

  std::map<std::string, std::string> names_;  // options' lines → name
  TemplateNames free_;
  std::string text_;
};

std::string catalogs_text(const std::vector<Catalog>& catalogs) {
  std::string out;
  for (const Catalog& catalog : catalogs) {
    out += fmt::format("  - zone: {}\n    role: {}\n", yaml_name(catalog.zone),
                       catalog.produces() ? "producer" : "consumer");
    if (!catalog.primaries.empty())
      out += fmt::format("    primaries: {}\n", flow_list(catalog.primaries, yaml_scalar));
    if (!catalog.template_name.empty())
      out += fmt::format("    template: {}\n", yaml_scalar(catalog.template_name));
    if (!catalog.groups.empty()) out += "    groups:\n";
    for (const CatalogGroup& group : catalog.groups)
      out += fmt::format("      - name: {}\n        template: {}\n", yaml_scalar(group.name),
                         yaml_scalar(group.template_name));
  }
  return out.empty() ? out : "catalogs:\n" + out;
}

}  // namespace

std::vector<SecretFile> secret_files(const ImportedConfiguration& imported) {
  std::vector<SecretFile> files;
  std::set<std::string> used;
  for (const ImportedKey& key : imported.keys()) {
    if (!key.session_file.empty()) {
      files.emplace_back();
      continue;
    }
    std::string base = lower_case(dns::to_text(key.name));
    base.pop_back();
    for (char& c : base)
      if (!is_plain_scalar(std::string("a") + c) || c == '/' || c == '@') c = '_';
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
  const Templates templates(imported);
  std::string out = fmt::format("# {}\n", comment);
  out += server_text(imported.server);
  out += keys_text(imported, with_secrets);
  out += remotes_text(imported.remotes());
  out += policies_text(imported.policies());
  out += catalogs_text(imported.catalogs());
  out += templates.text();
  if (imported.zones().empty()) return out + "zones: []\n";
  out += "zones:\n";
  for (const ImportedZone& zone : imported.zones()) {
    out += fmt::format("  - name: {}\n", yaml_name(zone.name));
    if (!zone.file.empty()) out += fmt::format("    file: {}\n", yaml_scalar(zone.file));
    out += templates.reference(zone.options);
  }
  return out;
}

}  // namespace pando::config
