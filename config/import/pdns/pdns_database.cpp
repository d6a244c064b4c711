#include "config/import/pdns/pdns_database.h"

#include <algorithm>
#include <array>
#include <utility>

#include "config/import/pdns/pdns_words.h"

namespace pando::config {

namespace {

/// The tables of PowerDNS's own schemas. Dumps mostly have the definitions, which then count.
SqlDump::Tables pdns_tables() {
  return {
      {"domains", {"id", "name", "master", "last_check", "type", "notified_serial", "account"}},
      {"records",
       {"id", "domain_id", "name", "type", "content", "ttl", "prio", "disabled", "ordername",
        "auth"}},
      {"domainmetadata", {"id", "domain_id", "kind", "content"}},
      {"cryptokeys", {"id", "domain_id", "flags", "active", "published", "content"}},
      {"tsigkeys", {"id", "name", "algorithm", "secret"}},
  };
}

/// Octets of a text in presentation format that one character stands for: `\\DDD`, `\\x` or itself.
std::size_t character_at(std::string_view text) {
  if (text.front() != '\\' || text.size() == 1) return 1;
  return text[1] >= '0' && text[1] <= '9' && text.size() >= 4 ? 4 : 2;
}

/// PowerDNS takes a text without quotes for one string, and cuts strings above 255 octets.
std::string txt_rdata(std::string_view content) {
  constexpr std::size_t kMostOctets = 255;  // RFC 1035 §3.3
  std::string text;
  if (!content.starts_with('"')) {
    for (const char c : content) {
      if (c == '"' || c == '\\') text += '\\';
      text += c;
    }
    text = fmt::format("\"{}\"", text);
    content = {};
  }
  const std::string whole = content.empty() ? std::move(text) : std::string(content);
  std::string result;
  bool quoted = false;
  std::size_t octets = 0;
  for (std::string_view rest = whole; !rest.empty();) {
    const std::size_t length = rest.front() == '"' ? 1 : character_at(rest);
    if (rest.front() == '"') {
      quoted = !quoted;
      octets = 0;
    } else if (quoted && octets++ == kMostOctets) {
      result += "\" \"";
      octets = 1;
    }
    if (rest.front() == '\n')
      result += "\\010";
    else if (rest.front() == '\r')
      result += "\\013";
    else
      result += rest.substr(0, length);
    rest.remove_prefix(length);
  }
  return result;
}

std::size_t words_in(std::string_view text) { return words_of(text).size(); }

/// PowerDNS completes a short SOA by its own defaults.
std::string whole_soa(std::string_view content) {
  constexpr std::array<std::string_view, 7> kDefaults{
      "a.misconfigured.dns.server.invalid", "hostmaster", "0", "10800", "3600", "604800", "3600"};
  std::string text(content);
  for (std::size_t i = words_in(content); i < kDefaults.size(); ++i) {
    if (!text.empty()) text += ' ';
    text += kDefaults[i];
  }
  return text;
}

/// RDATA as text: the priority of MX and SRV has a column of its own.
std::string rdata_of(const SqlRow& row, std::string_view type) {
  const std::string_view content = row.text("content");
  if (type == "soa") return whole_soa(content);
  if (type == "txt" || type == "spf") return txt_rdata(content);
  const std::size_t words = type == "mx" ? 2 : type == "srv" ? 4 : 0;
  if (words == 0 || words_in(content) >= words) return std::string(content);
  const std::string_view priority = row.text("prio");
  return fmt::format("{} {}", priority.empty() ? "0" : priority, content);
}

bool is_true(std::string_view text) {
  return text == "1" || text == "t" || lower_case(text) == "true";
}

constexpr std::string_view kSigned =
    "is signed by PowerDNS, and a dump has no signatures: transfer the zone";

std::string_view reason_of_metadata(std::string_view kind) {
  if (kind == "ALLOW-AXFR-FROM" || kind == "TSIG-ALLOW-AXFR")
    return "write the rule into the zone's allow-transfer";
  if (kind == "ALLOW-DNSUPDATE-FROM" || kind == "TSIG-ALLOW-DNSUPDATE")
    return "write the rule into the zone's allow-update";
  if (kind == "ALSO-NOTIFY") return "write the server into the zone's notify";
  if (kind == "PRESIGNED") return "is signed: transfer the zone, to have its signatures";
  if (kind == "AXFR-MASTER-TSIG") return "name the key with the zone's primaries";
  return "has no counterpart";
}

bool is_secondary(std::string_view kind) { return kind == "slave" || kind == "secondary"; }

}  // namespace

Status PdnsDatabase::run(const ImportText& text) {
  SqlDump dump(text, pdns_tables());
  auto read = dump.run([this](std::string_view table, const SqlRow& row) { take(table, row); });
  if (!read) return read;
  if (zones_.empty())
    return fail(Errc::kInvalid, "{}:1: no dump of PowerDNS's database: it has no zones",
                *text.name);
  report_remarks();
  put_zones();
  return {};
}

void PdnsDatabase::take(std::string_view table, const SqlRow& row) {
  if (!row.is_whole())
    return report_.add(row.at(), table, "a row has not as many values as the table has columns");
  if (table == "domains") return take_zone(row);
  if (table == "records") return take_record(row);
  if (table == "domainmetadata") return take_metadata(row);
  if (table == "tsigkeys")
    return out_.add_key(report_, row.at(), row.text("name"), row.text("algorithm"),
                        row.text("secret"));
  if (table == "cryptokeys" && signed_.insert(std::string(row.text("domain_id"))).second)
    remarks_.push_back({row.at(), std::string(row.text("domain_id")), {}, kSigned});
}

void PdnsDatabase::report_remarks() {
  for (const Remark& remark : remarks_)
    report_.add(remark.at, fmt::format("zone {}{}", name_of(remark.id), remark.text),
                remark.reason);
}

PdnsDatabase::Zone& PdnsDatabase::zone_of(std::string_view id) {
  const auto [place, is_new] = places_.try_emplace(std::string(id), zones_.size());
  if (is_new) zones_.emplace_back();
  return zones_[place->second];
}

std::string_view PdnsDatabase::name_of(std::string_view id) const {
  const auto place = places_.find(std::string(id));
  return place == places_.end() ? id : std::string_view(zones_[place->second].name);
}

void PdnsDatabase::take_zone(const SqlRow& row) {
  Zone& zone = zone_of(row.text("id"));
  zone.at = row.at();
  zone.name = row.text("name");
  zone.kind = lower_case(row.text("type"));
  zone.primaries = row.text("master");
}

/// A row without a type marks an empty non-terminal, which a zone file needs not.
void PdnsDatabase::take_record(const SqlRow& row) {
  if (row.text("type").empty()) return;
  const std::string_view shown = row.text("name");
  const std::string statement = fmt::format("{} {}", shown, row.text("type"));
  if (is_true(row.text("disabled"))) return report_.add(row.at(), statement, "is disabled");
  const std::string type = lower_case(row.text("type"));
  const std::string_view ttl = row.is_null("ttl") ? "3600" : row.text("ttl");
  std::string line = fmt::format("{}\t{}\tIN\t{}\t{}", shown.empty() ? "." : shown, ttl,
                                 row.text("type"), rdata_of(row, type));
  for (const char end : {'\r', '\n'}) std::replace(line.begin(), line.end(), end, '\0');  // is bad
  zone_of(row.text("domain_id"))
      .records.push_back({row.at(), std::move(line), std::string(row.text("type"))});
}

void PdnsDatabase::take_metadata(const SqlRow& row) {
  const std::string_view kind = row.text("kind");
  remarks_.push_back({row.at(), std::string(row.text("domain_id")),
                      fmt::format(": {} {}", kind, row.text("content")), reason_of_metadata(kind)});
}

void PdnsDatabase::put_zones() {
  PdnsListing listing(out_, report_);
  for (const Zone& zone : zones_) {
    if (zone.name.empty()) {
      report_.add(zone.records.empty() ? zone.at : zone.records.front().at, "records",
                  "the table domains has not their zone");
      continue;
    }
    if (is_secondary(zone.kind)) {
      put_secondary(zone);
      continue;
    }
    if (zone.kind == "producer" || zone.kind == "consumer")
      report_.add(zone.at, fmt::format("zone {}", zone.name),
                  "is a catalog: its zone is taken over, its meaning needs the section catalogs");
    if (zone.records.empty()) {
      report_.add(zone.at, fmt::format("zone {}", zone.name), "has no records");
      continue;
    }
    listing.take_line(zone.at, PdnsListing::kHeader);
    for (const Record& record : zone.records) listing.take_row(record.at, record.line, record.type);
  }
  listing.finish();
  zone_files_ = listing.take_files();
}

/// The records of a secondary zone come by a transfer.
void PdnsDatabase::put_secondary(const Zone& zone) {
  const std::string statement = fmt::format("zone {}", zone.name);
  const auto name = dns::Name::from_text(zone.name);
  if (!name) return report_.add(zone.at, statement, name.error().text);
  ImportedZone imported;
  imported.name = *name;
  for (const std::string& word : words_of(zone.primaries)) {
    const auto endpoint = pdns_endpoint(word, kPdnsPort);
    if (endpoint)
      add_unique(imported.options.primaries, out_.remote(*endpoint, std::nullopt));
    else
      report_.add(zone.at, fmt::format("{}: {}", statement, word), endpoint.error().text);
  }
  if (imported.options.primaries.empty())
    return report_.add(zone.at, statement, "is a secondary zone without primaries");
  out_.add_zone(report_, zone.at, statement, std::move(imported));
}

}  // namespace pando::config
