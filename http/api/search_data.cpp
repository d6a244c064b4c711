#include "http/api/search_data.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/whole_number.h"
#include "base/words.h"
#include "http/api/pdns_json.h"

namespace pando::http {

using nlohmann::json;

namespace {

constexpr std::size_t kMostZones = 100'000;
constexpr std::size_t kMostResults = 10'000;
/// Text of zones that one search reads. A server with more is searched by `pandoctl zone read`.
constexpr std::size_t kMostBytes = std::size_t{64} << 20;

/// With and without its final dot: clients search for both.
bool fits_name(std::string_view pattern, std::string_view name) noexcept {
  return fits_search(pattern, name) || fits_search(pattern, name.substr(0, name.size() - 1));
}

void add_records(const ZoneContent& zone, const SearchQuery& query, json& found) {
  for (const RRsetText& rrset : zone.rrsets) {
    const bool named = fits_name(query.pattern, rrset.owner);
    for (const std::string& record : rrset.records) {
      if (found.size() >= query.max) return;
      if (!named && !fits_search(query.pattern, record)) continue;
      found.push_back({{"object_type", "record"},
                       {"zone_id", zone_id(zone.apex)},
                       {"zone", zone.apex},
                       {"name", rrset.owner},
                       {"type", to_text(rrset.type)},
                       {"ttl", rrset.ttl},
                       {"content", record},
                       {"disabled", false}});
    }
  }
}

std::size_t bytes_of(const ZoneContent& zone) {
  std::size_t bytes = 0;
  for (const RRsetText& rrset : zone.rrsets) {
    bytes += rrset.owner.size();
    for (const std::string& record : rrset.records) bytes += record.size();
  }
  return bytes;
}

Status search_records(Collector& collector, const std::vector<dns::Name>& zones,
                      const SearchQuery& query, json& found) {
  std::size_t left = kMostBytes;
  for (const dns::Name& zone : zones) {
    if (found.size() >= query.max) return {};
    const auto content = collector.read_zone(zone, left);
    if (!content && content.error().code == Errc::kFull)
      return fail(Errc::kFull, "the zones are too large to be searched: {}", content.error().text);
    if (!content) continue;  // gone meanwhile, or without data
    left -= std::min(left, bytes_of(*content));
    add_records(*content, query, found);
  }
  return {};
}

}  // namespace

bool fits_search(std::string_view pattern, std::string_view text) noexcept {
  std::size_t at = 0, in_pattern = 0;
  std::size_t star_end = 0, behind_star = 0;  // 0: no "*" yet
  while (at < text.size()) {
    if (in_pattern < pattern.size() && pattern[in_pattern] == '*') {
      star_end = at;
      behind_star = ++in_pattern;
    } else if (in_pattern < pattern.size() &&
               (pattern[in_pattern] == '?' ||
                lower_case(pattern[in_pattern]) == lower_case(text[at]))) {
      ++at;
      ++in_pattern;
    } else if (behind_star != 0) {
      at = ++star_end;
      in_pattern = behind_star;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', in_pattern) == pattern.npos;
}

Result<SearchQuery> read_search(std::string_view query) {
  SearchQuery search;
  search.pattern = query_value(query, "q");
  if (search.pattern.empty()) return fail(Errc::kInvalid, "Query q can't be blank");
  if (const std::string max = query_value(query, "max"); !max.empty()) {
    search.max = std::min(whole_number<std::size_t>(max).value_or(0), kMostResults);
    if (search.max == 0) return fail(Errc::kInvalid, "Invalid value for maximum entries");
  }
  const std::string type = query_value(query, "object_type");
  if (!type.empty() && type != "all" && type != "zone" && type != "record" && type != "comment")
    return fail(Errc::kInvalid, "object_type must be one of: all, zone, record, comment");
  const bool all = type.empty() || type == "all";
  search.zones = all || type == "zone";
  search.records = all || type == "record";
  return search;
}

Result<json> search_data(Collector& collector, const SearchQuery& query, const AccessKey& client) {
  const auto all = collector.read_zones(kMostZones);
  if (!all) return tl::unexpected<Error>(all.error());
  json found = json::array();
  std::vector<dns::Name> seen;
  for (const ZoneFacts& zone : *all) {
    const auto name = dns::Name::from_text(zone.name);
    if (!name || !client.sees(*name)) continue;
    seen.push_back(*name);
    if (query.zones && found.size() < query.max && fits_name(query.pattern, zone.name))
      found.push_back(
          {{"object_type", "zone"}, {"zone_id", zone_id(zone.name)}, {"name", zone.name}});
  }
  if (!query.records) return found;
  if (auto done = search_records(collector, seen, query, found); !done) return pass(done);
  return found;
}

}  // namespace pando::http
