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

/// Length of the first character of a text in presentation format: `\\DDD`, `\\x` or itself.
std::size_t character_at(std::string_view text) {
  if (text.front() != '\\' || text.size() == 1) return 1;
  return text[1] >= '0' && text[1] <= '9' && text.size() >= 4 ? 4 : 2;
}

/// PowerDNS takes a text without quotes for one string, and cuts strings above 255 octets.
std::string txt_rdata(std::string_view content) {
  constexpr std::size_t kMaxOctets = 255;  // RFC 1035 §3.3
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
    } else if (quoted && octets++ == kMaxOctets) {
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

/// The name for a mailbox: `a.b@example.org` is `a\\.b.example.org`. Text without `@` stays.
std::string mailbox_name(std::string_view text) {
  std::string name;
  while (!text.empty() && text.front() != '@') {
    const std::size_t length = character_at(text);
    if (text.front() == '.') name += '\\';
    name += text.substr(0, length);
    text.remove_prefix(length);
  }
  return text.empty() ? std::string() : fmt::format("{}.{}", name, text.substr(1));
}

/// The name of a zone or record as text; the root's is empty in the database.
std::string_view shown_name(std::string_view name) { return name.empty() ? "." : name; }

bool is_true(std::string_view text) {
  return text == "1" || text == "t" || lower_case(text) == "true";
}

/// The beginning of a kind of metadata, and the reason why it is not taken over.
constexpr std::pair<std::string_view, ImportReason> kMetadata[] = {
    {"ALLOW-AXFR-FROM", {"write the rule into the zone's allow-transfer"}},
    {"TSIG-ALLOW-AXFR", {"write the rule into the zone's allow-transfer"}},
    {"ALLOW-DNSUPDATE-FROM", {"write the rule into the zone's allow-update"}},
    {"TSIG-ALLOW-DNSUPDATE", {"write the rule into the zone's allow-update"}},
    {"FORWARD-DNSUPDATE", {"see zones[].forward-updates"}},
    {"AXFR-MASTER-TSIG", {"name the key with the zone's primaries"}},
    {"AXFR-SOURCE", {"see server.transfer-source, one address for all"}},
    {"ENABLE-LUA-RECORDS", {"LUA records have no counterpart"}},
    {"LUA-AXFR-SCRIPT", {"there is no scripting"}},
    {"GSS-", {"there is no GSS-TSIG"}},
    {"SIGNALING-ZONE", {"records of signalling zones are not made"}},
    {"ALSO-NOTIFY", {"write the server into the zone's notify", ImportEffect::kNone}},
    {"NOTIFY-DNSUPDATE", {"NOTIFY follows each change", ImportEffect::kNone}},
    {"SLAVE-RENOTIFY", {"NOTIFY follows each change", ImportEffect::kNone}},
    {"SOA-EDIT", {"see zones[].serial-policy", ImportEffect::kNone}},
    {"API-RECTIFY", {"zones need no rectification", ImportEffect::kNone}},
    {"IXFR", {"IXFR is always there", ImportEffect::kNone}},
    {"PUBLISH-C", {"see dnssec-policies[].cds", ImportEffect::kNone}},
    {"RFC1123-CONFORMANCE", {"see pandoctl zone check", ImportEffect::kNone}},
    {"X-", {"is for programs beside PowerDNS", ImportEffect::kNone}},
};

ImportReason reason_of_metadata(std::string_view kind) {
  const auto row = std::ranges::find_if(
      kMetadata, [kind](const auto& each) { return kind.starts_with(each.first); });
  return row == std::end(kMetadata) ? ImportReason{"has no counterpart"} : row->second;
}

bool is_catalog(std::string_view kind) { return kind == "producer" || kind == "consumer"; }

bool is_secondary(std::string_view kind) { return kind == "slave" || kind == "secondary"; }

}  // namespace

Status PdnsDatabase::run(const ImportText& text) {
  if (SqlDump::is_binary_dump(text.text))
    return fail(Errc::kInvalid,
                "{}:1: is no text: 'pg_restore -f FILE' writes that of a dump of PostgreSQL, "
                "'.dump' of sqlite3 that of a database of SQLite",
                *text.name);
  SqlDump dump(text, pdns_tables());
  auto read = dump.run([this](std::string_view table, const SqlRow& row) { take(table, row); });
  if (!read) return read;
  if (zones_.empty())
    return fail(Errc::kInvalid, "{}:1: no dump of PowerDNS's database: it has no zones",
                *text.name);
  report_remarks();
  for (const Zone& zone : zones_)
    if (zone.is_known && is_catalog(zone.kind)) put_catalog(zone);
  for (const Zone& zone : zones_) put_zone(zone);
  listing_.finish();
  sign_zones();
  join_catalogs();
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
  if (table == "cryptokeys") signing_.take_key(row);
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
  if (place == places_.end() || !zones_[place->second].is_known) return id;
  return shown_name(zones_[place->second].name);
}

/// A second row of a number may be the same zone again, or a dump that somebody has put together.
void PdnsDatabase::take_zone(const SqlRow& row) {
  const std::string_view id = row.text("id");
  const std::string_view name = row.text("name");
  const std::string statement = fmt::format("zone {}", shown_name(name));
  if (id.empty()) return report_.add(row.at(), statement, "has no number, so it has no records");
  Zone& zone = zone_of(id);
  if (zone.is_known && lower_case(zone.name) == lower_case(name))
    return report_.note(row.at(), statement, "is there a second time: its first row counts");
  if (zone.is_known) {
    zone.has_rivals = true;
    return report_.add(row.at(), statement,
                       fmt::format("is not taken over: zone {} has its number, {}, too",
                                   shown_name(zone.name), id));
  }
  zone.is_known = true;
  zone.id = id;
  zone.catalog = row.text("catalog");
  zone.at = row.at();
  zone.name = name;
  zone.kind = lower_case(row.text("type"));
  zone.primaries = row.text("master");
}

/// A row without a type marks an empty non-terminal, which a zone file needs not.
void PdnsDatabase::take_record(const SqlRow& row) {
  if (row.text("type").empty()) return;
  const std::string_view shown = shown_name(row.text("name"));
  const std::string statement = fmt::format("{} {}", shown, row.text("type"));
  if (is_true(row.text("disabled"))) return report_.note(row.at(), statement, "is disabled");
  const std::string type = lower_case(row.text("type"));
  const std::string_view ttl = row.is_null("ttl") ? "3600" : row.text("ttl");
  std::string line =
      fmt::format("{}\t{}\tIN\t{}\t{}", shown, ttl, row.text("type"), rdata_of(row, type));
  for (const char end : {'\r', '\n'}) std::replace(line.begin(), line.end(), end, '\0');  // is bad
  zone_of(row.text("domain_id"))
      .records.push_back({row.at(), std::move(line), std::string(row.text("type"))});
}

/// RDATA as text: the priority of MX and SRV has a column of its own.
std::string PdnsDatabase::rdata_of(const SqlRow& row, std::string_view type) {
  const std::string_view content = row.text("content");
  if (type == "soa") return soa_rdata(row);
  if (type == "txt" || type == "spf") return txt_rdata(content);
  const std::size_t fields = type == "mx" ? 2 : type == "srv" ? 4 : 0;
  if (fields == 0 || fields_of(content).size() >= fields) return std::string(content);
  const std::string_view priority = row.text("prio");
  return fmt::format("{} {}", priority.empty() ? "0" : priority, content);
}

/// PowerDNS completed a short SOA up to 4.3, and read a mailbox with `@` up to 4.4. Later ones
/// refuse the first, and serve the `@`.
std::string PdnsDatabase::soa_rdata(const SqlRow& row) {
  const std::string mail = fmt::format("hostmaster.{}", row.text("name"));
  const std::array<std::string_view, 7> defaults{
      "a.misconfigured.dns.server.invalid", mail, "0", "10800", "3600", "604800", "3600"};
  const std::string statement = fmt::format("{} SOA", shown_name(row.text("name")));
  std::vector<std::string> fields = fields_of(row.text("content"));
  if (const std::size_t given = fields.size(); given < defaults.size()) {
    fields.insert(fields.end(), defaults.begin() + static_cast<std::ptrdiff_t>(given),
                  defaults.end());
    report_.note(row.at(), statement,
                 fmt::format("has {} of 7 fields: the others are PowerDNS's defaults", given));
  }
  if (std::string name = mailbox_name(fields[1]); !name.empty()) {
    report_.add(row.at(), statement,
                fmt::format("{} is written as {}: recent versions of PowerDNS serve the '@'",
                            fields[1], name));
    fields[1] = std::move(name);
  }
  if (fields[2] == "0")
    report_.add(row.at(), statement,
                "has the serial 0, which PowerDNS before 4.2 replaced by the time of the last "
                "change: secondaries may need a higher one");
  return fmt::format("{}", fmt::join(fields, " "));
}

void PdnsDatabase::take_metadata(const SqlRow& row) {
  const std::string_view kind = row.text("kind");
  if (kind == "PRESIGNED") {
    if (is_true(row.text("content"))) presigned_.emplace(row.text("domain_id"));
    return;
  }
  if (signing_.take_metadata(row)) return;
  remarks_.push_back({row.at(), std::string(row.text("domain_id")),
                      fmt::format(": {} {}", kind, row.text("content")), reason_of_metadata(kind)});
}

void PdnsDatabase::put_zone(const Zone& zone) {
  const std::string statement = fmt::format("zone {}", shown_name(zone.name));
  if (!zone.is_known)
    return report_.add(zone.records.front().at, "records", "the table domains has not their zone");
  if (zone.has_rivals)
    return report_.add(zone.at, statement,
                       "is not taken over: another zone has its number, and the records have no "
                       "other mark");
  // With PRESIGNED PowerDNS signs nothing, whatever keys it has.
  const bool is_signed = signing_.signs(zone.id) && !presigned_.contains(zone.id);
  if (is_signed && (is_secondary(zone.kind) || is_catalog(zone.kind)))
    return report_.add(zone.at, statement, signed_reason("PowerDNS", "cryptokeys"));
  if (is_secondary(zone.kind)) return put_secondary(zone);
  if (is_catalog(zone.kind)) return;  // put_catalog() has it
  if (presigned_.contains(zone.id))
    return report_.add(zone.at, statement,
                       "is left out: it is signed (PRESIGNED), and a dump has no NSEC or NSEC3 "
                       "records. Transfer it from PowerDNS");
  if (zone.records.empty()) return report_.add(zone.at, statement, "has no records");
  listing_.begin_zone(zone.at, shown_name(zone.name));
  for (const Record& record : zone.records) listing_.take_row(record.at, record.line, record.type);
}

/// Zones that have come become members of the catalogs that are produced here.
void PdnsDatabase::join_catalogs() {
  std::unordered_map<std::string, const Zone*> members;
  for (const Zone& zone : zones_)
    if (!zone.catalog.empty()) members.emplace(lower_case(zone.name), &zone);
  for (ImportedZone& imported : out_.zones()) {
    std::string name = dns::to_text(imported.name.folded());
    name.pop_back();
    const auto member = members.find(name);
    if (member == members.end()) continue;
    const auto catalog = dns::Name::from_text(member->second->catalog);
    if (catalog && out_.produces(*catalog))
      imported.options.catalog = *catalog;
    else
      report_.add(member->second->at, fmt::format("zone {}", name),
                  fmt::format("no such catalog: {}", member->second->catalog));
  }
}

/// Zones that have come get the policy by which they are signed here, or leave again.
void PdnsDatabase::sign_zones() {
  std::unordered_map<std::string, const Zone*> signed_zones;
  for (const Zone& zone : zones_)
    if (zone.is_known && signing_.signs(zone.id) && !presigned_.contains(zone.id))
      signed_zones.emplace(lower_case(zone.name), &zone);
  if (signed_zones.empty()) return;
  std::erase_if(out_.zones(), [&](ImportedZone& imported) {
    std::string name = dns::to_text(imported.name.folded());
    name.pop_back();
    const auto found = signed_zones.find(name);
    if (found == signed_zones.end()) return false;
    const Zone& zone = *found->second;
    const std::string statement = fmt::format("zone {}", shown_name(zone.name));
    return !take_signing(signing_.of(zone.id, imported.name), zone.at, statement, out_, report_,
                         imported);
  });
}

void PdnsDatabase::put_catalog(const Zone& zone) {
  const std::string statement = fmt::format("zone {}", shown_name(zone.name));
  const auto name = dns::Name::from_text(shown_name(zone.name));
  if (!name) return report_.add(zone.at, statement, name.error().text);
  Catalog catalog{
      .zone = *name, .role = Catalog::Role::kProducer, .primaries = {}, .template_name = {}};
  if (zone.kind == "consumer") {
    catalog.role = Catalog::Role::kConsumer;
    catalog.primaries = pdns_remotes(zone.primaries, zone.at, statement + ": ", out_, report_);
  }
  out_.add_catalog(report_, zone.at, statement, std::move(catalog));
}

/// The records of a secondary zone come by a transfer.
void PdnsDatabase::put_secondary(const Zone& zone) {
  const std::string statement = fmt::format("zone {}", shown_name(zone.name));
  const auto name = dns::Name::from_text(shown_name(zone.name));
  if (!name) return report_.add(zone.at, statement, name.error().text);
  ImportedZone imported;
  imported.name = *name;
  imported.options.primaries =
      pdns_remotes(zone.primaries, zone.at, statement + ": ", out_, report_);
  if (imported.options.primaries.empty())
    return report_.add(zone.at, statement, "is a secondary zone without primaries");
  out_.add_zone(report_, zone.at, statement, std::move(imported));
}

}  // namespace pando::config
