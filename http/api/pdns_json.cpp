#include "http/api/pdns_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <ctime>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/whole_number.h"
#include "base/words.h"
#include "ipc/counter_labels.h"
#include "ipc/counters.h"

namespace pando::http {

using nlohmann::json;

namespace {

constexpr std::string_view kBase = "/api/v1/servers/localhost";
/// The PowerDNS that clients may take this server for: octodns and others go by the number.
constexpr std::string_view kApiVersion = "4.9.0";

/// The octet with these two hexadecimal digits.
std::optional<char> octet_of(std::string_view digits) {
  if (digits.size() != 2) return std::nullopt;
  const auto value = whole_number<unsigned>(digits, 16);
  if (!value) return std::nullopt;
  return static_cast<char>(*value);
}

/// Replaces `mark` and two hexadecimal digits by their octet; nothing for other digits.
std::optional<std::string> decoded(std::string_view text, char mark) {
  std::string out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != mark) {
      out += text[at];
      continue;
    }
    const auto octet = octet_of(text.substr(at + 1, 2));
    if (!octet) return std::nullopt;
    out += *octet;
    at += 2;
  }
  return out;
}

json rrset_json(const RRsetText& rrset) {
  json records = json::array();
  for (const std::string& record : rrset.records)
    records.push_back({{"content", record}, {"disabled", false}});
  return {{"name", rrset.owner},
          {"type", to_text(rrset.type)},
          {"ttl", rrset.ttl},
          {"records", std::move(records)},
          {"comments", json::array()}};
}

/// Members that each zone has. Those without a meaning here have PowerDNS's defaults.
json zone_head(const std::string& name, bool secondary, std::uint32_t serial, bool dnssec) {
  const std::string id = zone_id(name);
  return {{"id", id},
          {"name", name},
          {"type", "Zone"},
          {"url", fmt::format("{}/zones/{}", kBase, id)},
          {"kind", secondary ? "Slave" : "Master"},
          {"serial", serial},
          {"edited_serial", serial},
          {"notified_serial", serial},
          {"masters", json::array()},
          {"dnssec", dnssec},
          {"account", ""},
          {"catalog", ""},
          {"last_check", 0}};
}

bool wanted(const RRsetText& rrset, const RRsetFilter& filter) {
  return (filter.name.empty() || equal_but_for_case(rrset.owner, filter.name)) &&
         (filter.type.empty() || equal_but_for_case(to_text(rrset.type), filter.type));
}

std::uint64_t sum_of(const Observed& observed, std::size_t counter) {
  std::uint64_t sum = 0;
  for (const shm::SlotCopy& slot : observed.slots) sum += slot.counters[counter];
  return sum;
}

json item(std::string_view name, std::uint64_t value) {
  return {{"type", "StatisticItem"}, {"name", name}, {"value", fmt::format("{}", value)}};
}

/// A block of counters as a map statistic, without the zeros.
json map_item(const Observed& observed, std::string_view name, std::size_t base, std::size_t count,
              std::string (*label)(std::size_t)) {
  json values = json::array();
  for (std::size_t i = 0; i < count; ++i)
    if (const std::uint64_t value = sum_of(observed, base + i); value != 0)
      values.push_back({{"name", label(i)}, {"value", fmt::format("{}", value)}});
  return {{"type", "MapStatisticItem"}, {"name", name}, {"value", std::move(values)}};
}

/// Seconds since the start of the oldest worker.
std::uint64_t uptime_of(const Observed& observed) {
  const auto now = static_cast<std::uint64_t>(std::time(nullptr));
  std::uint64_t first = now;  // no later start counts: the clock may have been put back
  for (const shm::SlotCopy& slot : observed.slots)
    if (slot.alive && slot.started != 0) first = std::min(first, slot.started);
  return now - first;
}

}  // namespace

json server_json() {
  return {{"type", "Server"},
          {"id", kServerId},
          {"daemon_type", "authoritative"},
          {"version", fmt::format("{}-pando-{}", kApiVersion, PANDO_VERSION)},
          {"url", kBase},
          {"config_url", fmt::format("{}/config{{/config_setting}}", kBase)},
          {"zones_url", fmt::format("{}/zones{{/zone}}", kBase)}};
}

json zone_json(const ZoneFacts& zone) {
  json object = zone_head(zone.name, zone.secondary, zone.serial, zone.has_denial);
  object["last_check"] = zone.last_ok;
  return object;
}

json zone_json(const ZoneContent& zone, const RRsetFilter& filter) {
  json object = zone_head(zone.apex, zone.secondary, zone.serial, zone.has_denial);
  object["last_check"] = zone.last_check;
  object["api_rectify"] = false;
  object["nsec3narrow"] = false;
  object["nsec3param"] = "";
  object["presigned"] = zone.has_denial;
  object["soa_edit"] = "";
  object["soa_edit_api"] = "DEFAULT";
  object["master_tsig_key_ids"] = json::array();
  object["slave_tsig_key_ids"] = json::array();
  if (filter.without) return object;
  json rrsets = json::array();
  for (const RRsetText& rrset : zone.rrsets)
    if (wanted(rrset, filter)) rrsets.push_back(rrset_json(rrset));
  object["rrsets"] = std::move(rrsets);
  return object;
}

json statistics_json(const Observed& observed) {
  using ipc::Counter;
  const auto of = [&observed](Counter counter) {
    return sum_of(observed, ipc::counter_index(counter));
  };
  const auto rcode = [&observed](std::uint16_t number) {
    return sum_of(observed, ipc::rcode_index(number));
  };
  json items = json::array();
  items.push_back(item("uptime", uptime_of(observed)));  // PowerDNS-Admin needs it
  items.push_back(item("udp-queries", of(Counter::kQueriesUdp)));
  items.push_back(item("tcp-queries", of(Counter::kQueriesTcp) + of(Counter::kQueriesTls)));
  items.push_back(item("udp-answers-bytes", of(Counter::kAnswerOctetsUdp)));
  items.push_back(item("open-tcp-connections", of(Counter::kTcpOpen)));
  items.push_back(item("servfail-packets", rcode(2)));
  items.push_back(item("corrupt-packets", rcode(1)));
  items.push_back(item("dnsupdate-queries", of(Counter::kForwardedUpdates)));
  items.push_back(item("incoming-notifications", of(Counter::kForwardedNotifies)));
  items.push_back(map_item(observed, "response-by-qtype", ipc::kTypeBase, ipc::kTypes,
                           ipc::type_label));
  items.push_back(map_item(observed, "response-by-rcode", ipc::kRcodeBase, ipc::kRcodes,
                           ipc::rcode_label));
  return items;
}

json masters_json(const std::vector<std::string>& primaries) {
  json masters = json::array();
  for (const std::string& text : primaries) {
    const auto at = text.rfind('@');
    const std::string address = text.substr(0, at);
    const std::string port = at == std::string::npos ? "53" : text.substr(at + 1);
    const bool is_v6 = address.find(':') != std::string::npos;
    if (port == "53")
      masters.push_back(address);
    else
      masters.push_back((is_v6 ? "[" + address + "]" : address) + ":" + port);
  }
  return masters;
}

std::string zone_text(const ZoneContent& zone) {
  std::string text;
  for (const RRsetText& rrset : zone.rrsets)
    for (const std::string& record : rrset.records)
      text += fmt::format("{}\t{}\tIN\t{}\t{}\n", rrset.owner, rrset.ttl, to_text(rrset.type),
                          record);
  return text;
}

std::string zone_id(std::string_view name) {
  std::string id;
  for (const char c : name) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '-' ||
                       c == '_' || c == '*';
    id += plain ? std::string(1, c) : fmt::format("={:02X}", static_cast<unsigned char>(c));
  }
  return id;
}

Result<dns::Name> name_of_id(std::string_view id) {
  const auto path = decoded(id, '%');
  const auto name = path ? decoded(*path, '=') : std::nullopt;
  if (!name || name->empty()) return fail(Errc::kInvalid, "'{}' is no zone's id", id);
  return dns::Name::from_text(*name);
}

std::string query_value(std::string_view query, std::string_view key) {
  while (!query.empty()) {
    const std::string_view part = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(part.size() + 1, query.size()));
    const auto equals = part.find('=');
    if (part.substr(0, equals) != key || equals == part.npos) continue;
    return decoded(part.substr(equals + 1), '%').value_or("");
  }
  return "";
}

}  // namespace pando::http
