#include "http/api/new_zone.h"

#include <fmt/chrono.h>

#include <algorithm>
#include <ctime>
#include <iterator>

#include "base/words.h"
#include "dns/rdata/rdata.h"
#include "http/api/json_request.h"
#include "http/api/rrset_patch.h"

namespace pando::http {

using nlohmann::json;

namespace {

/// PowerDNS's `default-ttl`, and its name of a primary server that nobody gave.
constexpr unsigned kDefaultTtl = 3600;
constexpr std::string_view kNoServer = "a.misconfigured.dns.server.invalid.";

Result<dns::Name> canonical_name(std::string_view text) {
  if (!text.ends_with('.'))
    return fail(Errc::kInvalid, "DNS Name {} is not canonical", shown(text));
  auto name = dns::Name::from_text(text);
  if (!name) return fail(Errc::kInvalid, "{}: {}", shown(text), name.error().text);
  return name;
}

/// The texts of an array; none where there is no such member.
Result<std::vector<std::string>> texts_of(const json& document, std::string_view key) {
  std::vector<std::string> texts;
  const json* list = member(document, key);
  if (list == nullptr) return texts;
  if (!list->is_array()) return fail(Errc::kInvalid, "Key '{}' is not an Array", key);
  for (const json& element : *list) {
    if (!element.is_string()) return fail(Errc::kInvalid, "Key '{}': not a String", key);
    texts.push_back(element);
  }
  return texts;
}

/// Whether the zone has primaries elsewhere.
Result<bool> is_secondary(const json& document) {
  auto text = text_of(document, "kind");
  if (!text) return pass(text);
  const std::string kind = lower_case(*text);
  if (kind == "slave" || kind == "secondary") return true;
  if (kind == "native" || kind == "master" || kind == "primary") return false;
  return fail(Errc::kInvalid, "kind {} is not possible here", shown(*text));
}

/// Whether the zone is to be signed; none: the document does not say.
std::optional<bool> dnssec_of(const json& document) {
  const json* dnssec = member(document, "dnssec");
  if (dnssec == nullptr || !dnssec->is_boolean()) return std::nullopt;
  return dnssec->get<bool>();
}

/// Refuses members that ask for something which the server does not do.
Status check_refused(const json& document, bool secondary) {
  if (secondary && dnssec_of(document).value_or(false))
    return fail(Errc::kInvalid, "'dnssec' of a Slave zone is set in the configuration");
  for (const char* key : {"nsec3param", "catalog"})
    if (const json* value = member(document, key); value != nullptr && *value != "")
      return fail(Errc::kInvalid, "'{}' is not possible here", key);
  return {};
}

Result<std::string> remote_at(std::string_view address,
                              const std::vector<config::Remote>& remotes) {
  // PowerDNS writes ADDRESS or ADDRESS:PORT, IPv6 in brackets before a port.
  std::string text(address);
  if (const auto bracket = text.find("]:"); text.starts_with('[') && bracket != std::string::npos)
    text = text.substr(1, bracket - 1) + "@" + text.substr(bracket + 2);
  else if (std::ranges::count(text, ':') == 1)
    text[text.find(':')] = '@';
  const auto wanted = Endpoint::from_text(text);
  if (!wanted) return fail(Errc::kInvalid, "masters: {} is no address", shown(address));
  for (const config::Remote& remote : remotes)
    if (std::ranges::find(remote.address, *wanted) != remote.address.end()) return remote.name;
  return fail(Errc::kInvalid, "masters: no remote of the configuration has the address {}",
              shown(address));
}

void add_record(std::string& text, dns::NameView owner, std::uint32_t ttl, dns::RRType type,
                std::string_view rdata) {
  fmt::format_to(std::back_inserter(text), "{} {} IN {} {}\n", dns::to_text(owner), ttl,
                 dns::to_text(type), rdata.empty() ? "\\# 0" : rdata);
}

/// Records of a primary zone as its client gave them.
class Content {
 public:
  explicit Content(dns::Name zone) : zone_(std::move(zone)) {}

  Status take(const json& document) {
    auto servers = texts_of(document, "nameservers");
    if (!servers) return pass(servers);
    for (const std::string& text : *servers) {
      auto server = canonical_name(text);
      if (!server) return pass(server);
      servers_.push_back(dns::to_text(*server));
    }
    const json* text = member(document, "zone");
    const json* rrsets = member(document, "rrsets");
    if (text != nullptr && rrsets != nullptr && !rrsets->empty())
      return fail(Errc::kInvalid, "You cannot give rrsets AND zone data as text");
    if (text != nullptr) {
      if (!text->is_string()) return fail(Errc::kInvalid, "Key 'zone' is not a String");
      text_ = *text;
      // One line makes up to millions of records, which would delay all other changes. PowerDNS
      // refuses it as well, unless `max-generate-steps` says otherwise.
      if (lower_case(text_).find("$generate") != std::string::npos)
        return fail(Errc::kInvalid, "Key 'zone' has $GENERATE");
      text_ += '\n';
      is_text_ = has_soa_ = has_servers_ = true;  // a text is always a whole zone
      return {};
    }
    return rrsets == nullptr ? Status() : take_rrsets(*rrsets);
  }

  [[nodiscard]] std::string finish(std::uint64_t today) const {
    std::string all;
    if (!has_soa_) {
      const auto day = fmt::gmtime(static_cast<std::time_t>(today));
      add_record(all, zone_, kDefaultTtl, dns::RRType::kSOA,
                 fmt::format("{} hostmaster{}{} {:%Y%m%d}01 10800 3600 604800 3600",
                             servers_.empty() ? kNoServer : std::string_view(servers_[0]),
                             zone_.view().is_root() ? "" : ".", dns::to_text(zone_), day));
    }
    for (const std::string& server : servers_)
      add_record(all, zone_, kDefaultTtl, dns::RRType::kNS, server);
    // No zone is served without servers, which panels give it later.
    if (servers_.empty() && !has_servers_)
      add_record(all, zone_, kDefaultTtl, dns::RRType::kNS, kNoServer);
    return all + text_;  // last: a line without an owner or a TTL may take those of a server
  }
  /// Lines of finish() before the client's own text; none without a text.
  [[nodiscard]] std::optional<std::size_t> lines_before() const noexcept {
    return is_text_ ? std::optional(servers_.size()) : std::nullopt;
  }

 private:
  Status take_rrsets(const json& rrsets) {
    if (!rrsets.is_array()) return fail(Errc::kInvalid, "Key 'rrsets' is not an Array");
    json replaced = rrsets;  // in a new zone there is nothing else to do
    for (json& rrset : replaced)
      if (rrset.is_object()) rrset["changetype"] = "REPLACE";
    auto changes = read_rrsets(replaced, zone_);
    if (!changes) return pass(changes);
    for (const RRsetChange& change : *changes) {
      has_soa_ = has_soa_ || change.type == dns::RRType::kSOA;
      const bool is_apex_ns = change.type == dns::RRType::kNS && change.owner == zone_;
      has_servers_ = has_servers_ || (is_apex_ns && !change.rdatas.empty());
      for (const Bytes& rdata : change.rdatas)
        add_record(text_, change.owner, change.ttl.value_or(kDefaultTtl), change.type,
                   dns::rdata_to_text(change.type, rdata));
    }
    return {};
  }

  dns::Name zone_;
  std::vector<std::string> servers_;
  std::string text_;
  bool is_text_ = false;
  bool has_soa_ = false;
  bool has_servers_ = false;  ///< NS records of the zone, in text_
};

/// The names of the remotes that `masters` has the addresses of.
Result<std::vector<std::string>> primaries_of(const json& document,
                                              const std::vector<config::Remote>& remotes) {
  auto masters = texts_of(document, "masters");
  if (!masters) return pass(masters);
  std::vector<std::string> primaries;
  for (const std::string& address : *masters) {
    auto remote = remote_at(address, remotes);
    if (!remote) return pass(remote);
    if (std::ranges::find(primaries, *remote) == primaries.end())
      primaries.push_back(std::move(*remote));
  }
  if (primaries.empty()) return fail(Errc::kInvalid, "a Slave zone needs 'masters'");
  return primaries;
}

Result<NewZone> secondary_zone(const json& document, NewZone zone,
                               const std::vector<config::Remote>& remotes) {
  for (const char* key : {"rrsets", "nameservers", "zone"})
    if (const json* value = member(document, key); value != nullptr && !value->empty())
      return fail(Errc::kInvalid, "Zone data MUST NOT be given for Slave zones");
  auto primaries = primaries_of(document, remotes);
  if (!primaries) return pass(primaries);
  zone.primaries = std::move(*primaries);
  return zone;
}

/// A zone keeps its name, its kind, and whether its records come from elsewhere.
Status check_kept(const json& document, const dns::Name& zone, bool secondary) {
  if (member(document, "name") != nullptr) {
    auto text = text_of(document, "name");
    if (!text) return pass(text);
    auto name = canonical_name(*text);
    if (!name) return pass(name);
    if (!(*name == zone)) return fail(Errc::kInvalid, "the name of a zone cannot be changed");
  }
  if (member(document, "kind") == nullptr) return {};
  auto wanted = is_secondary(document);
  if (!wanted) return pass(wanted);
  if (*wanted == secondary) return {};
  return fail(Errc::kInvalid, "a {} zone cannot become a {} one: remove it, and add it anew",
              secondary ? "Slave" : "Master", secondary ? "Master" : "Slave");
}

}  // namespace

Result<NewZone> read_new_zone(std::string_view body, const std::vector<config::Remote>& remotes,
                              std::uint64_t today) {
  const auto document = read_document(body);
  if (!document) return tl::unexpected<Error>(document.error());
  auto text = text_of(*document, "name");
  if (!text) return pass(text);
  auto name = canonical_name(*text);
  if (!name) return pass(name);
  auto secondary = is_secondary(*document);
  if (!secondary) return pass(secondary);
  if (auto fine = check_refused(*document, *secondary); !fine) return pass(fine);
  NewZone zone{.name = *name, .content = {}, .primaries = {}};
  if (*secondary) return secondary_zone(*document, std::move(zone), remotes);
  Content content(*name);
  if (auto taken = content.take(*document); !taken) return pass(taken);
  zone.content = content.finish(today);
  zone.lines_before = content.lines_before();
  zone.is_signed = dnssec_of(*document).value_or(false);
  return zone;
}

Result<ZoneChange> read_zone_change(std::string_view body, const dns::Name& zone, bool secondary,
                                    const std::vector<config::Remote>& remotes) {
  const auto document = read_document(body);
  if (!document) return tl::unexpected<Error>(document.error());
  if (!document->is_object()) return fail(Errc::kInvalid, "a zone is an Object");
  if (auto kept = check_kept(*document, zone, secondary); !kept) return pass(kept);
  if (auto fine = check_refused(*document, secondary); !fine) return pass(fine);
  if (const json* rrsets = member(*document, "rrsets"); rrsets != nullptr && !rrsets->empty())
    return fail(Errc::kInvalid, "records are changed by PATCH");
  ZoneChange change;
  if (!secondary) change.is_signed = dnssec_of(*document);
  const json* masters = member(*document, "masters");
  if (masters == nullptr || (!secondary && masters->empty())) return change;
  if (!secondary) return fail(Errc::kInvalid, "a Master zone has no 'masters'");
  auto primaries = primaries_of(*document, remotes);
  if (!primaries) return pass(primaries);
  change.primaries = std::move(*primaries);
  return change;
}

}  // namespace pando::http
