#include "config/import/named/named_import.h"

#include <algorithm>

#include "config/import/model/import_reasons.h"
#include "config/settings/values.h"

namespace pando::config {

namespace {

/// Statements that zones use, wherever they stand.
constexpr std::string_view kZoneKeywords =
    " type file primaries masters allow-query allow-notify allow-update allow-transfer "
    "update-policy also-notify notify directory masterfile-format allow-update-forwarding zone "
    "notify-delay serial-update-method dnssec-policy auto-dnssec inline-signing key-directory "
    "sig-validity-interval ";

bool is_zone_keyword(std::string_view keyword) { return is_listed(kZoneKeywords, keyword); }

std::string first_word(const NamedStatement* statement) {
  return statement == nullptr ? std::string() : statement->lower(1);
}

/// A blank in a zone's name: the text of its quotation marks goes on too far.
bool has_blank(std::string_view name) {
  return name.find_first_of(" \t\r\n") != std::string_view::npos;
}

bool is_yes(std::string_view word) { return word == "yes" || word == "true" || word == "1"; }
bool is_no(std::string_view word) { return word == "no" || word == "false" || word == "0"; }

std::string zone_title(const NamedStatement& statement) {
  return fmt::format("zone {}", statement.word(1));
}

/// A list with nobody in it.
bool is_nobody(const NamedStatement& statement) {
  const NamedBlock* block = statement.block();
  return block == nullptr || block->empty() ||
         (block->size() == 1 && block->front().word(0) == "none");
}

/// Whether a statement is a switch that is off, or a list of nobody.
bool is_without_effect(const NamedStatement& statement) {
  const NamedBlock* block = statement.block();
  return block == nullptr ? is_off(statement.lower(1)) : is_nobody(statement);
}

/// Whether a list of clients has everybody in it.
bool is_anybody(const NamedStatement& statement) {
  const NamedBlock* block = statement.block();
  return block != nullptr && block->size() == 1 && lower_case(block->front().word(0)) == "any";
}

/// Takes a text of the server; false if it is not usable.
bool take_text(std::string_view value, std::string& out) {
  const bool absent = lower_case(value) == "none" || value.empty();
  if (!absent && is_short_text(value)) out = value;
  return absent || is_short_text(value);
}

}  // namespace

const NamedStatement* NamedImport::Scope::find(std::string_view keyword) const noexcept {
  for (const NamedBlock* block : {zone, view, options})
    if (const NamedStatement* found = find_statement(block, keyword)) return found;
  return nullptr;
}

Status NamedImport::run(const ImportText& text) {
  const auto top = parse_named(text, files_, report_);
  if (!top) return tl::unexpected<Error>(top.error());
  take_top(*top);
  const NamedStatement* options = find_statement(&*top, "options");
  const NamedBlock* block = options == nullptr ? nullptr : options->block();
  if (block != nullptr) take_options(*block);
  if (listens_v4_ || listens_v6_ || port_ != kDnsPort) {
    std::vector<Endpoint> everywhere = default_listen();
    for (Endpoint& endpoint : everywhere) endpoint.port = port_;
    std::vector<Endpoint>& listen = out_.server.listen;
    listen = listens_v4_ ? listen_v4_ : std::vector{everywhere.front()};
    const std::vector<Endpoint> v6 = listens_v6_ ? listen_v6_ : std::vector{everywhere.back()};
    for (const Endpoint& endpoint : v6) add_unique(listen, endpoint);
    if (listen.empty()) {
      listen = everywhere;
      report_.add(options->at, "listen-on", "leaves no address: the default is all addresses");
    }
  }
  if (const NamedStatement* sink = find_statement(block, "dnstap-output")) take_dnstap(*sink);
  take_views(*top, block);
  return {};
}

/// Keys come first, because lists of remotes and rules refer to them.
void NamedImport::take_top(const NamedBlock& block) {
  for (const NamedStatement& statement : block) {
    const std::string_view keyword = statement.word(0);
    const bool later = is_listed(" options view zone ", keyword);
    if (later && statement.blocks.size() != 1 && statement.lower(2) != "in-view")
      report_.add(statement.at, fmt::format("{} {}", keyword, statement.word(1)),
                  "has not one block; is a semicolon missing?");
    if (!later && !lists_.take(statement) && !signing_.take(statement))
      report_absent(statement, std::string(keyword));
    if (keyword == "view" && statement.block() != nullptr)
      for (const NamedStatement& inner : *statement.block())
        if (!is_zone_keyword(inner.word(0))) static_cast<void>(lists_.take(inner));
  }
}

void NamedImport::take_options(const NamedBlock& block) {
  find_response_policies(block);
  find_catalogs(block);
  if (const NamedStatement* port = find_statement(&block, "port")) port_ = port_in(port->word(1));
  for (const NamedStatement& statement : block) take_server_setting(statement);
}

void NamedImport::find_response_policies(const NamedBlock& block) {
  const NamedStatement* policies = find_statement(&block, "response-policy");
  if (policies == nullptr || policies->block() == nullptr) return;
  for (const NamedStatement& policy : *policies->block())
    policy_zones_.insert(policy.lower(policy.word(0) == "zone" ? 1 : 0));
}

/// `zone "NAME" default-primaries { … };` for each catalog that is consumed.
void NamedImport::find_catalogs(const NamedBlock& block) {
  const NamedStatement* catalogs = find_statement(&block, "catalog-zones");
  if (catalogs == nullptr || catalogs->block() == nullptr) return;
  for (const NamedStatement& entry : *catalogs->block())
    if (entry.word(0) == "zone") catalogs_.insert_or_assign(entry.lower(1), entry);
}

void NamedImport::report_absent(const NamedStatement& statement, const std::string& title) {
  const ImportReason reason = named_reason(statement.word(0));
  const bool changes = reason.effect == ImportEffect::kAnswers;
  if (!changes || !is_without_effect(statement)) report_.add(statement.at, title, reason);
}

/// `dnstap-output unix "PATH"`. BIND says in `dnstap` which messages it sends there.
void NamedImport::take_dnstap(const NamedStatement& sink) {
  if (sink.lower(1) != "unix" || !sink.word(2).starts_with('/'))
    return report_.add(sink.at, "dnstap-output", named_reason("dnstap"));
  out_.server.dnstap.emplace().socket = sink.word(2);
}

/// Version, identity, and the source address of transfers.
bool NamedImport::take_server_text(const NamedStatement& statement) {
  const std::string_view keyword = statement.word(0);
  const std::string_view value = statement.word(1);
  Server& server = out_.server;
  if (keyword == "version") return take_text(value, server.version);
  if (keyword == "hostname") return take_text(value, server.identity);
  if (keyword == "server-id")
    return statement.lower(1) != "hostname" && take_text(value, server.identity);
  return (keyword == "transfer-source" || keyword == "transfer-source-v6") &&
         take_transfer_source(value, server);
}

void NamedImport::take_server_setting(const NamedStatement& statement) {
  const std::string_view keyword = statement.word(0);
  const std::string value = statement.lower(1);
  Server& server = out_.server;
  if (is_zone_keyword(keyword)) return;
  if (keyword == "listen-on") return take_listen(statement, false);
  if (keyword == "listen-on-v6") return take_listen(statement, true);
  if (keyword == "rate-limit") return take_rate_limits(statement);
  if (is_listed(" port catalog-zones session-keyname dnstap-output ", keyword)) return;
  if (take_server_text(statement)) return;
  if (keyword == "minimal-responses" && (is_yes(value) || is_no(value))) {
    server.minimal_responses = is_yes(value);
    return;
  }
  if (keyword == "max-udp-size")
    if (const auto size = parse_number(value, 512, 4096)) {
      server.udp_payload = static_cast<std::uint16_t>(*size);
      return;
    }
  if ((keyword == "recursion" || keyword == "querylog") && is_no(value)) return;
  report_absent(statement, std::string(keyword));
}

void NamedImport::take_listen(const NamedStatement& statement, bool ipv6) {
  std::vector<Endpoint>& list = ipv6 ? listen_v6_ : listen_v4_;
  (ipv6 ? listens_v6_ : listens_v4_) = true;
  std::uint16_t port = port_;
  for (std::size_t i = 1; i < statement.words.size(); i += 2) {
    port = statement.lower(i) == "port" ? port_in(statement.word(i + 1), 0) : 0;
    if (port == 0)
      return report_.add(statement.at, statement.word(0), "is plain DNS with a port alone");
  }
  if (statement.block() == nullptr) return;
  for (const NamedStatement& element : *statement.block()) {
    const std::string_view word = element.word(0);
    if (word == "none") return;
    const auto address = IpAddress::from_text(word);
    if (word == "any")
      add_unique(list, {default_listen()[ipv6 ? 1 : 0].address, port});
    else if (word == "localhost")
      add_unique(list, {*IpAddress::from_text(ipv6 ? "::1" : "127.0.0.1"), port});
    else if (address && address->is_v4() != ipv6)
      add_unique(list, {*address, port});
    else
      report_.add(element.at, fmt::format("{} {}{}", statement.word(0), word, element.word(1)),
                  "server.listen has addresses alone");
  }
}

void NamedImport::take_rate_limits(const NamedStatement& statement) {
  if (statement.block() == nullptr) return;
  for (const NamedStatement& member : *statement.block()) {
    const std::string title = fmt::format("rate-limit: {}", member.word(0));
    if (take_rate_limit(member.word(0), member.word(1), out_.server.rate_limit)) continue;
    if (member.word(0) == "log-only" && is_yes(member.lower(1)))
      report_.add(member.at, title, "responses are limited, not only counted");
    else if (member.word(0) == "exempt-clients" && member.block() != nullptr)
      take_exempt(member, title);
    else
      report_.note(member.at, title, "one limit holds for all kinds: see server.rate-limit");
  }
}

/// Prefixes of clients without limit; conditions of other kinds are reported.
void NamedImport::take_exempt(const NamedStatement& statement, const std::string& title) {
  for (const zone::AclRule& rule : lists_.acl_of(statement)) {
    if (!rule.deny && rule.address && !rule.key)
      out_.server.rate_limit.exempt.push_back(*rule.address);
    else
      report_.add(statement.at, title, "server.rate-limit.exempt has prefixes alone");
  }
}

void NamedImport::take_views(const NamedBlock& top, const NamedBlock* options) {
  const auto is_view = [](const NamedStatement& s) { return s.word(0) == "view"; };
  const auto views = std::count_if(top.begin(), top.end(), is_view);
  for (const NamedStatement& statement : top) {
    if (statement.word(0) == "zone") take_zone(statement, nullptr, options);
    if (!is_view(statement) || statement.block() == nullptr) continue;
    if (views == 1) {
      take_view(statement, options);
      continue;
    }
    for (const NamedStatement& zone : *statement.block())
      if (zone.word(0) == "zone")
        report_.add(
            zone.at, zone_title(zone),
            fmt::format("is in view {}, one of {}; views are not there", statement.word(1), views));
  }
}

/// The only view is as good as none, if everybody sees it.
void NamedImport::take_view(const NamedStatement& view, const NamedBlock* options) {
  find_response_policies(*view.block());
  find_catalogs(*view.block());
  for (const NamedStatement& statement : *view.block()) {
    const std::string_view keyword = statement.word(0);
    if (keyword == "zone")
      take_zone(statement, view.block(), options);
    else if (!is_zone_keyword(keyword) && keyword != "key" && keyword != "server" &&
             keyword != "acl")
      report_of_view(statement, fmt::format("view {}: {}", view.word(1), keyword));
  }
}

/// Clients that a view does not have were refused.
void NamedImport::report_of_view(const NamedStatement& statement, const std::string& title) {
  if (statement.word(0).starts_with("match-") && is_anybody(statement)) return;
  if (statement.word(0) == "catalog-zones") return;
  report_absent(statement, title);
}

std::string NamedImport::type_of(const NamedStatement& statement) const {
  const std::string type = first_word(find_statement(statement.block(), "type"));
  const bool plain = reader_ == NamedReader::kPdns && (type.empty() || type == "native");
  if (plain || type == "master") return "primary";
  return type == "slave" ? "secondary" : type;
}

std::string NamedImport::refusal_of(const NamedStatement& statement) const {
  const std::string zone_class = statement.lower(2);
  if (zone_class == "ch" || zone_class == "chaos" || zone_class == "hs" || zone_class == "hesiod")
    return "is not of class IN";
  if (zone_class == "in-view" || find_statement(statement.block(), "in-view") != nullptr)
    return "is in another view; views are not there";
  if (policy_zones_.contains(statement.lower(1)))
    return "is a response policy, which a resolver needs";
  if (has_blank(statement.word(1))) return "has a blank in its name; is a quotation mark missing?";
  if (statement.block() == nullptr) return "has no block";
  const std::string type = type_of(statement);
  if (type == "primary" || type == "secondary") return {};
  if (type.empty()) return "has no type";
  return fmt::format("zones of type {} are not served", type);
}

NamedSigningScope NamedImport::signing_in(const Scope& scope) const {
  if (reader_ != NamedReader::kBind) return {};
  return {.policy = scope.find("dnssec-policy"),
          .automatic = scope.find("auto-dnssec"),
          .in_line = scope.find("inline-signing"),
          .validity = scope.find("sig-validity-interval"),
          .key_directory = scope.find("key-directory"),
          .directory = scope.find("directory")};
}

void NamedImport::take_zone(const NamedStatement& statement, const NamedBlock* view,
                            const NamedBlock* options) {
  if (std::string refusal = refusal_of(statement); !refusal.empty()) {
    const bool is_hint = type_of(statement) == "hint";  // for a resolver, not for clients
    return report_.add(statement.at, zone_title(statement),
                       {refusal, is_hint ? ImportEffect::kNone : ImportEffect::kAnswers});
  }
  auto name = parse_name(statement.word(1));
  if (!name) return report_.add(statement.at, zone_title(statement), name.error().text);
  const Scope scope{statement.block(), view, options};
  if (const auto entry = catalogs_.find(statement.lower(1)); entry != catalogs_.end())
    return take_catalog(statement, entry->second, scope, std::move(*name));
  const NamedSigningScope signing = signing_in(scope);
  const std::string title = zone_title(statement);
  const bool is_signed = !signing.statement().empty();
  if (is_signed && type_of(statement) == "secondary")
    return report_.add(statement.at, title, signed_reason("BIND", signing.statement()));
  ImportedZone zone = zone_of(statement, scope, *name);
  if (is_signed &&
      !take_signing(signing_.of(signing, *name), statement.at, title, out_, report_, zone))
    return;
  out_.add_zone(report_, statement.at, title, std::move(zone));
  report_rest(statement);
}

/// BIND gives member zones the settings of the view or of the options.
void NamedImport::take_catalog(const NamedStatement& statement, const NamedStatement& entry,
                               const Scope& scope, dns::Name name) {
  Catalog catalog{.zone = std::move(name),
                  .role = Catalog::Role::kConsumer,
                  .primaries = {},
                  .template_name = {}};
  if (type_of(statement) == "secondary") catalog.primaries = primaries_of(scope);
  for (const char* word : {"default-primaries", "default-masters"}) {
    if (std::ranges::find(entry.words, word) == entry.words.end() || entry.block() == nullptr)
      continue;
    if (lists_.remotes_of(entry) != catalog.primaries)
      report_.add(entry.at, fmt::format("catalog-zones: {} {}", entry.word(1), word),
                  "members come from the primaries of the catalog itself");
  }
  const NamedBlock nothing;
  const Scope of_members{&nothing, scope.view, scope.options};
  if (const std::string signing = signing_in(of_members).statement(); !signing.empty())
    return report_.add(statement.at, zone_title(statement), signed_members_reason("BIND", signing));
  ZoneOptions options;
  options.primaries = catalog.primaries;
  take_zone_access(statement.at, of_members, options);
  take_notify(statement, of_members, options);
  options.primaries.clear();
  catalog.template_name = out_.add_template("members", options);
  out_.add_catalog(report_, statement.at, zone_title(statement), std::move(catalog));
}

std::vector<std::string> NamedImport::primaries_of(const Scope& scope) {
  std::vector<std::string> primaries;
  for (const std::string_view word : {"primaries", "masters"})
    if (const NamedStatement* list = find_statement(scope.zone, word))
      primaries = lists_.remotes_of(*list);
  return primaries;
}

ImportedZone NamedImport::zone_of(const NamedStatement& statement, const Scope& scope,
                                  dns::Name name) {
  ImportedZone zone;
  zone.name = std::move(name);
  const NamedStatement* file = find_statement(scope.zone, "file");
  const NamedStatement* format = scope.find("masterfile-format");
  if (type_of(statement) == "secondary") {
    zone.options.primaries = primaries_of(scope);
    if (file != nullptr)
      report_.add_once(file->at, fmt::format("{}: file", zone_title(statement)),
                       {"BIND writes the copies of secondary zones; the zone comes by a transfer",
                        ImportEffect::kNone});
  } else if (file != nullptr) {
    const NamedStatement* folder = scope.find("directory");
    zone.file = join_path(folder == nullptr ? "" : folder->word(1), file->word(1));
    report_relative(report_, file->at, zone.file);
    if (format != nullptr && format->lower(1) != "text")
      report_.add(statement.at, zone_title(statement),
                  "convert its file: named-compilezone -f raw -F text");
  }
  take_zone_access(statement.at, scope, zone.options);
  take_notify(statement, scope, zone.options);
  take_changes(scope, zone.options);
  return zone;
}

void NamedImport::take_zone_access(const SourceLine& at, const Scope& scope, ZoneOptions& zone) {
  if (const auto* query = scope.find("allow-query")) zone.allow_query = lists_.acl_of(*query);
  if (const auto* transfer = scope.find("allow-transfer"))
    zone.allow_transfer = lists_.acl_of(*transfer);
  else if (reader_ == NamedReader::kBind)
    report_.add_once(at, "allow-transfer",
                     {"is absent: BIND before 9.20 allows transfers to everybody, here nobody"});
  if (const auto* notified = scope.find("allow-notify"))
    zone.allow_notify = lists_.acl_of(*notified);
  if (zone.is_secondary()) {
    const NamedStatement* forwarded = scope.find("allow-update-forwarding");
    if (forwarded == nullptr || is_nobody(*forwarded)) return;
    zone.allow_update = lists_.acl_of(*forwarded);
    // Without rules every signed update would be forwarded.
    zone.forward_updates = !zone.allow_update.empty();
    return;
  }
  if (const auto* policy = find_statement(scope.zone, "update-policy"))
    zone.allow_update = lists_.policy_of(*policy, session_key_name(scope));
  else if (const auto* update = scope.find("allow-update"))
    zone.allow_update = lists_.acl_of(*update);
}

std::string NamedImport::session_key_name(const Scope& scope) {
  const NamedStatement* name = find_statement(scope.options, "session-keyname");
  return std::string(name == nullptr ? "local-ddns" : name->word(1));
}

/// `notify-delay` and `serial-update-method`.
void NamedImport::take_changes(const Scope& scope, ZoneOptions& zone) {
  if (const NamedStatement* delay = scope.find("notify-delay")) {
    constexpr std::uint64_t kLongest = 3600;
    if (const auto seconds = parse_number(delay->word(1), 0, kLongest))
      zone.notify_delay = std::chrono::seconds(*seconds);
    else
      report_.note(delay->at, "notify-delay", "see zones[].notify-delay, at most an hour");
  }
  const NamedStatement* method = scope.find("serial-update-method");
  const std::string word = method == nullptr ? std::string() : method->lower(1);
  if (word == "unixtime") zone.serial_policy = SerialPolicy::kUnixtime;
  if (word == "date") zone.serial_policy = SerialPolicy::kDate;
}

void NamedImport::take_notify(const NamedStatement& statement, const Scope& scope,
                              ZoneOptions& zone) {
  const NamedStatement* notify = scope.find("notify");
  const std::string mode = notify == nullptr ? "yes" : notify->lower(1);
  const bool primaries_only = mode == "primary-only" || mode == "master-only";
  if (is_no(mode) || (primaries_only && zone.is_secondary())) return;
  if (const NamedStatement* also = scope.find("also-notify"))
    zone.notify = lists_.remotes_of(*also);
  if (mode != "explicit" && !zone.is_secondary())
    report_.add_once(statement.at, "notify",
                     {"servers of NS records are not notified: name them in zones[].notify",
                      ImportEffect::kNone});
}

void NamedImport::report_rest(const NamedStatement& statement) {
  for (const NamedStatement& member : *statement.block())
    if (!is_zone_keyword(member.word(0)))
      report_absent(member, fmt::format("{}: {}", zone_title(statement), member.word(0)));
}

}  // namespace pando::config
