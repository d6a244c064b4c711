#include "config/import/model/imported.h"

#include <algorithm>
#include <utility>

#include "config/settings/values.h"
#include "config/settings/yaml_scalar.h"
#include "dns/encoding.h"

namespace pando::config {

namespace {

constexpr std::size_t kMaxShownBytes = 200;  // of one word of a hostile file in a line
/// A third of the loader's limit, because YAML replaces each invalid octet by three.
constexpr std::size_t kMaxImportedPath = 1365;

std::string one_line(std::string_view text) {
  std::string shown(text.substr(0, kMaxShownBytes));
  for (char& c : shown)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = '?';
  if (text.size() > kMaxShownBytes) shown += "...";
  return shown;
}

bool is_path(std::string_view text) {
  return text.size() <= kMaxImportedPath && std::none_of(text.begin(), text.end(), [](char c) {
           return static_cast<unsigned char>(c) < 0x20 || c == 0x7F;
         });
}

}  // namespace

std::string to_text(const Omission& omission) {
  return fmt::format("{}:{}: {}: {}", omission.file, omission.line, omission.statement,
                     omission.reason);
}

void ImportReport::add(const SourceLine& at, std::string_view statement,
                       const ImportReason& reason) {
  // Notes leave room for the others, because those decide about the exit code.
  const bool is_note = reason.effect == ImportEffect::kNone;
  if (omissions_.size() >= (is_note ? kMaxOmissions / 2 : kMaxOmissions)) return;
  Omission omission{at.file ? *at.file : std::string(), at.line, one_line(statement),
                    one_line(reason.text), reason.effect};
  if (lines_.insert(to_text(omission)).second) omissions_.push_back(std::move(omission));
}

void ImportReport::add_once(const SourceLine& at, std::string_view statement,
                            const ImportReason& reason) {
  if (once_.emplace(reason.text).second) add(at, statement, reason);
}

std::vector<Omission> ImportReport::omissions() const {
  std::vector<Omission> ranked = omissions_;
  std::ranges::stable_partition(
      ranked, [](const Omission& omission) { return omission.effect == ImportEffect::kAnswers; });
  return ranked;
}

void ImportedConfiguration::add_key(ImportReport& report, const SourceLine& at,
                                    std::string_view name, std::string_view algorithm,
                                    std::string_view secret) {
  const std::string statement = fmt::format("key {}", name);
  auto parsed = parse_name(name);
  if (!parsed) return report.add(at, statement, parsed.error().text);
  if (find_key(name)) return report.add(at, statement, "a key of this name is there already");
  std::string method = lower_case(algorithm);
  if (method.ends_with('.')) method.pop_back();
  if (method.starts_with("hmac-md5")) method = "hmac-md5";
  if (method.starts_with("hmacsha")) method.insert(4, "-");
  if (method.starts_with("sha") || method == "md5") method.insert(0, "hmac-");  // NSD
  const auto known = dns::tsig_algorithm_from_text(method.empty() ? "hmac-md5" : method);
  if (!known) return report.add(at, statement, known.error().text);
  if (*known == dns::TsigAlgorithm::kMd5) {
    server.md5 = true;
    report.note(at, statement, "hmac-md5 is allowed by server.md5: change to hmac-sha256");
  }
  const auto octets = decode_base64(secret);
  const bool usable = octets && !octets->empty() && is_path(secret);
  if (!usable) report.add(at, statement, "the secret is not base64: put one into the key's file");
  key_names_.insert(*parsed);
  keys_.push_back({at, *parsed, *known, usable ? std::string(secret) : std::string()});
}

dns::Name ImportedConfiguration::session_key(std::string_view name) {
  if (const auto known = find_key(name)) return *known;
  const dns::Name key = *parse_name(name);
  key_names_.insert(key);
  keys_.push_back({{}, key, dns::TsigAlgorithm::kSha256, {}, "/run/pando/session.key"});
  return key;
}

std::optional<dns::Name> ImportedConfiguration::find_key(std::string_view name) const {
  const auto parsed = parse_name(name);
  if (!parsed) return std::nullopt;
  const auto found = key_names_.find(*parsed);
  if (found == key_names_.end()) return std::nullopt;
  return *found;
}

std::string ImportedConfiguration::remote(const Endpoint& address,
                                          const std::optional<dns::Name>& key) {
  std::string name = address.port == kDnsPort ? to_text(address.address) : to_text(address);
  if (key) name += fmt::format(" {}", dns::to_text(*key));
  // A remote's name has at most 255 octets (config/readers.cpp), a key's name alone may have more.
  constexpr std::size_t kMaxRemoteName = 200;
  if (name.size() > kMaxRemoteName) {
    const auto hash = dns::hash_name(*key);
    name = fmt::format("{} {:016x}", to_text(address), hash);
  }
  if (remote_index_.emplace(name, remotes_.size()).second)
    remotes_.push_back({name, {address}, key, std::nullopt});
  return name;
}

void ImportedConfiguration::add_zone(ImportReport& report, const SourceLine& at,
                                     std::string_view statement, ImportedZone zone) {
  if (!is_path(zone.file)) return report.add(at, statement, "its file name is not usable");
  if (zone.file.empty() && !zone.options.is_secondary())
    return report.add(at, statement, "a zone has neither a file nor primaries");
  if (!zone_names_.insert(zone.name).second)
    return report.add(at, statement, "a zone of this name is there already");
  zones_.push_back(std::move(zone));
}

std::string TemplateNames::take(std::string_view wanted) {
  constexpr std::size_t kMaxName = 100;
  const bool is_usable = is_plain_scalar(wanted) && wanted.size() <= kMaxName;
  const std::string base(is_usable ? wanted : "group");
  std::string name = base;
  while (!used_.insert(name).second) name = fmt::format("{}-{}", base, ++number_);
  return name;
}

std::string ImportedConfiguration::add_template(std::string_view wanted,
                                                const ZoneOptions& options) {
  templates_.push_back({template_names_.take(wanted), options});
  return templates_.back().name;
}

std::string ImportedConfiguration::add_policy(DnssecPolicy wanted) {
  std::string name = std::exchange(wanted.name, {});
  for (char& c : name)
    if (!is_plain_scalar(std::string("a") + c)) c = '_';
  for (const DnssecPolicy& known : policies_) {
    const bool has_name = known.name == name || known.name.starts_with(name + "-");
    DnssecPolicy same = known;
    same.name.clear();
    if (has_name && same == wanted) return known.name;
  }
  wanted.name = policy_names_.take(name);
  policies_.push_back(std::move(wanted));
  return policies_.back().name;
}

void ImportedConfiguration::add_catalog(ImportReport& report, const SourceLine& at,
                                        std::string_view statement, Catalog catalog) {
  constexpr std::size_t kMaxProduced = 200;  // as config/checks.cpp: its name is that of a file
  const std::string name = dns::to_text(catalog.zone);
  if (!catalog.produces() && catalog.primaries.empty())
    return report.add(at, statement, "is a catalog of a file: only catalogs of primaries are read");
  if (catalog.produces() &&
      (name.size() > kMaxProduced || name.find_first_of("/\\") != std::string::npos))
    return report.add(at, statement, "the name of a produced catalog is that of a file");
  if (!zone_names_.insert(catalog.zone).second)
    return report.add(at, statement, "a zone of this name is there already");
  catalogs_.push_back(std::move(catalog));
}

bool ImportedConfiguration::produces(const dns::Name& zone) const noexcept {
  return std::ranges::any_of(catalogs_, [&zone](const Catalog& catalog) {
    return catalog.produces() && catalog.zone == zone;
  });
}

std::uint16_t port_in(std::string_view text, std::uint16_t otherwise) {
  const auto port = parse_number(text, 1, 65535);
  return port ? static_cast<std::uint16_t>(*port) : otherwise;
}

bool take_rate_limit(std::string_view name, std::string_view value, RateLimit& limit) {
  const auto number = parse_number(value, 0, 1'000'000);
  if (!number) return false;
  const auto count = static_cast<std::uint32_t>(*number);
  if (name == "responses-per-second")
    limit.responses = count;
  else if (name == "slip" && count <= 100)
    limit.slip = count;
  else if (name == "ipv4-prefix-length" && count >= 1 && count <= 32)
    limit.ipv4_prefix = count;
  else if (name == "ipv6-prefix-length" && count >= 1 && count <= 128)
    limit.ipv6_prefix = count;
  else
    return false;
  return true;
}

bool take_transfer_source(std::string_view address, Server& server) {
  if (is_listed(" * 0.0.0.0 :: ", address)) return true;
  const auto parsed = IpAddress::from_text(address);
  if (!parsed || (server.transfer_source && *server.transfer_source != *parsed)) return false;
  server.transfer_source = *parsed;
  return true;
}

bool take_identity(std::string_view text, std::string& identity) {
  if (!is_short_text(text)) return false;
  identity = text;
  return true;
}

bool take_identity_digits(std::string_view digits, std::string& identity) {
  const auto octets = dns::hex_decode(digits);
  return octets && take_identity(std::string_view(reinterpret_cast<const char*>(octets->data()),
                                                  octets->size()),
                                 identity);
}

std::string join_path(std::string_view folder, std::string_view file) {
  if (file.empty() || file.front() == '/' || folder.empty()) return std::string(file);
  while (file.starts_with("./")) file.remove_prefix(2);
  return fmt::format("{}{}{}", folder, folder.back() == '/' ? "" : "/", file);
}

std::string signed_members_reason(std::string_view server, std::string_view how) {
  return fmt::format(
      "is left out: {} signs its members ({}). Transfer them: let {} stay as their hidden primary",
      server, how, server);
}

std::string signed_reason(std::string_view server, std::string_view how,
                          std::string_view obstacle) {
  return fmt::format(
      "is left out: {} signs it ({}), {}. Transfer it: let {} stay as its hidden primary", server,
      how, obstacle, server);
}

void report_relative(ImportReport& report, const SourceLine& at, std::string_view file) {
  if (!file.empty() && file.front() != '/')
    report.add_once(at, fmt::format("file {}", file),
                    {"is relative to a folder that is not known: here to that of the result"});
}

bool is_short_text(std::string_view text) noexcept {
  constexpr std::size_t kMaxText = 255;  // as config/readers.cpp
  return !text.empty() && text.size() <= kMaxText &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c < 0x7F; });
}

}  // namespace pando::config
