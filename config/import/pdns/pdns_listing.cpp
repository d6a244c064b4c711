#include "config/import/pdns/pdns_listing.h"

#include <algorithm>
#include <array>
#include <unordered_set>
#include <utility>

#include "config/settings/settings.h"
#include "dns/zonefile/zone_scanner.h"

namespace pando::config {

namespace {

/// Folder of the zone files, beside the configuration.
constexpr std::string_view kFolder = "zones/";

constexpr std::string_view kBadForm =
    "is no line of 'pdnsutil list-zone': owner, TTL, IN, type and data with tabs between them";

std::string_view without_end(std::string_view line) {
  while (!line.empty() && (line.back() == '\r' || line.back() == ' ' || line.back() == '\t'))
    line.remove_suffix(1);
  return line;
}

/// Owner, TTL, class, type; the rest of the line is data. False when the form is another one.
bool split_record(std::string_view line, std::array<std::string_view, 4>& fields) {
  for (std::string_view& field : fields) {
    const std::size_t tab = line.find('\t');
    if (tab == std::string_view::npos || tab == 0) return false;
    field = line.substr(0, tab);
    line.remove_prefix(tab + 1);
  }
  return !line.empty() && lower_case(fields[2]) == "in";
}

/// "All zonecount: 5", and other lines that pdnsutil prints for people.
bool is_remark(std::string_view line) {
  return line.starts_with(';') || line.starts_with("All zonecount:");
}

std::string_view owner_of(std::string_view line) { return line.substr(0, line.find('\t')); }

bool is_soa(std::string_view type) { return lower_case(type) == "soa"; }

Result<dns::Name> absolute_name(std::string_view text) {
  return dns::Name::from_text(text, dns::NameView());
}

/// The file of a zone; empty when none can be named after it. Every other
/// file ends in `.zone`, so `root-zone` is free.
std::string file_of(dns::NameView zone) {
  if (zone.is_root()) return fmt::format("{}root-zone", kFolder);
  const auto name = zone_file_name(zone);
  return name ? fmt::format("{}{}", kFolder, *name) : std::string();
}

/// The reason of a scanner's error, which has the place before it.
std::string reason_of(const std::string& error, std::string_view label) {
  const std::string text = error.substr(std::min(label.size() + 1, error.size()));
  const std::size_t at = text.find(": ");
  return at == std::string::npos ? text : text.substr(at + 2);
}

}  // namespace

void PdnsListing::run(const ImportText& text) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";  // of UTF-8
  std::string_view rest = text.text;
  if (rest.starts_with(kMark)) rest.remove_prefix(kMark.size());
  for (int line = 1; !rest.empty(); ++line) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    take_line({text.name, line}, without_end(rest.substr(0, end)));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  finish();
  if (!zone_files_.empty())
    report_.add({text.name, 1}, "zones",
                "a listing does not tell which of them PowerDNS signs: 'pdnsutil list-keys' names "
                "these; transfer them instead");
}

void PdnsListing::finish() {
  take_zone();
  report_missing();
}

void PdnsListing::take_line(const SourceLine& at, std::string_view text) {
  if (text.empty() || is_remark(text)) return;
  if (text == kHeader) return take_zone();
  std::array<std::string_view, 4> fields{};
  if (text.front() != '$' && split_record(text, fields))
    return lines_.push_back({at, std::string(text), std::string(fields[3])});
  const bool one_word = text.find_first_of(" \t$") == std::string_view::npos;
  if (one_word && absolute_name(text)) return named_.emplace_back(at, std::string(text)), void();
  lines_.push_back({at, std::string(text), {}});
  bad(lines_.back(), kBadForm);
}

void PdnsListing::take_row(const SourceLine& at, std::string text, std::string type) {
  lines_.push_back({at, std::move(text), std::move(type)});
}

void PdnsListing::bad(const Line& line, std::string_view reason) {
  constexpr std::size_t kShown = 60;
  report_.add(line.at, std::string_view(line.text).substr(0, kShown), reason);
  ++bad_;
}

void PdnsListing::begin_zone(const SourceLine& at, std::string_view name) {
  take_line(at, kHeader);
  name_ = name;
}

/// The SOA record of the zone `name`, or of any where that is empty; the end, reported, if none is.
PdnsListing::Lines::const_iterator PdnsListing::find_soa(const Lines& lines,
                                                         const std::string& name) {
  const auto wanted = absolute_name(name);
  const auto is_zone_soa = [&](const Line& line) {
    if (!is_soa(line.type)) return false;
    const auto owner = absolute_name(owner_of(line.text));
    return name.empty() || (owner && wanted && *owner == *wanted);
  };
  auto soa = std::find_if(lines.begin(), lines.end(), is_zone_soa);
  if (soa != lines.end()) {
    if (const auto zone = absolute_name(owner_of(soa->text)); !zone) {
      bad(*soa, zone.error().text);
      soa = lines.end();
    }
    return soa;
  }
  const auto other =
      std::find_if(lines.begin(), lines.end(), [](const Line& line) { return is_soa(line.type); });
  if (other == lines.end())
    bad(lines.front(), "no SOA record follows: this is no whole zone");
  else
    bad(*other, fmt::format("is no SOA record of its zone, {}", name));
  return lines.end();
}

/// Makes the file of the zone whose lines have all come.
void PdnsListing::take_zone() {
  const Lines lines = std::exchange(lines_, {});
  const std::string name = std::exchange(name_, {});
  if (lines.empty()) return;
  const auto soa = find_soa(lines, name);
  std::string statement = fmt::format("zone {}", name.empty() ? "?" : name);
  std::string text(kHeader);
  text += '\n';
  dns::Name zone;
  if (soa != lines.end()) {
    zone = *absolute_name(owner_of(soa->text));
    statement = fmt::format("zone {}", dns::to_text(zone));
    listed_.push_back(zone);
    // The SOA first: people expect it there.
    if (!take_record(*soa, zone, text)) ++bad_;
    for (const Line& line : lines) {
      if (&line == &*soa || line.type.empty()) continue;
      if (is_soa(line.type))
        bad(line, name.empty() ? "is a second SOA record: '$ORIGIN .' has to stand before each zone"
                               : "is a second SOA record in its zone");
      else if (!take_record(line, zone, text))
        ++bad_;
    }
  }
  const SourceLine at = lines.front().at;
  if (const std::size_t count = std::exchange(bad_, 0); count > 0)
    return report_.add(at, statement,
                       fmt::format("is not taken over: {} of its lines are bad", count));
  put_zone(at, statement, zone, std::move(text));
}

void PdnsListing::put_zone(const SourceLine& at, const std::string& statement,
                           const dns::Name& name, std::string text) {
  ImportedZone imported;
  imported.name = name;
  imported.file = file_of(name);
  if (imported.file.empty()) return report_.add(at, statement, "no file can have its name");
  const std::string file = imported.file;
  const std::size_t before = out_.zones().size();
  out_.add_zone(report_, at, statement, std::move(imported));
  if (out_.zones().size() > before) zone_files_.push_back({file, std::move(text)});
}

/// Appends the line, which is read as in a zone file. False when it is bad, which is reported.
bool PdnsListing::take_record(const Line& line, dns::NameView zone, std::string& text) {
  constexpr std::size_t kShown = 60;
  const std::string_view shown = std::string_view(line.text).substr(0, kShown);
  if (!dns::rrtype_from_text(line.type)) {
    report_.add(line.at, shown, fmt::format("no other server has the type {}", line.type));
    return true;
  }
  const auto name = absolute_name(owner_of(line.text));
  if (!name) {
    report_.add(line.at, shown, name.error().text);
    return false;
  }
  if (!name->view().is_at_or_below(zone)) {
    report_.note(line.at, shown, fmt::format("is outside of zone {}", dns::to_text(zone)));
    return true;
  }
  dns::ScanOptions options;
  options.allow_include = false;
  dns::ScanState state;
  std::size_t records = 0;
  bool same = true;  // no field may hold more than itself
  const dns::RRType type = *dns::rrtype_from_text(line.type);
  const dns::ScanReport report = dns::scan_zone_range(
      line.text, "line", options, state, [&](const dns::ScannedRecord& record) -> Status {
        ++records;
        same = same && record.owner == *name && record.type == type;
        return {};
      });
  if (report.ok() && records == 1 && same) {
    text += line.text;
    text += '\n';
    return true;
  }
  report_.add(line.at, shown,
              report.ok() ? std::string(kBadForm) : reason_of(report.errors.front(), "line"));
  return false;
}

void PdnsListing::report_missing() {
  const auto hash = [](const dns::Name& name) { return dns::hash_name(name); };
  const std::unordered_set<dns::Name, decltype(hash)> there(listed_.begin(), listed_.end(),
                                                            listed_.size() + 1, hash);
  for (const auto& [at, name] : named_)
    if (!there.contains(*absolute_name(name)))
      report_.add(at, name, "is named and has no records: add what 'pdnsutil list-zone' prints");
}

}  // namespace pando::config
