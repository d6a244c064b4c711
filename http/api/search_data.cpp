#include "http/api/search_data.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/whole_number.h"
#include "base/words.h"
#include "http/api/pdns_json.h"

namespace pando::http {

using nlohmann::json;

namespace {

constexpr std::size_t kMaxResults = 10'000;
/// Text, and parts of zones, that one step reads: some 10 ms.
constexpr std::size_t kBytesOfStep = std::size_t{1} << 20;
constexpr std::size_t kPartsOfStep = 256;

/// With and without its final dot: clients search for both.
bool fits_name(std::string_view pattern, std::string_view name) noexcept {
  return fits_search(pattern, name) || fits_search(pattern, name.substr(0, name.size() - 1));
}

std::size_t bytes_of(const ContentPart& part) {
  std::size_t bytes = 0;
  for (const RRsetText& rrset : part.rrsets) {
    bytes += rrset.owner.size();
    for (const std::string& record : rrset.records) bytes += record.size();
  }
  return bytes;
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
    search.max = std::min(whole_number<std::size_t>(max).value_or(0), kMaxResults);
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

SearchWalk::SearchWalk(Collector& collector, SearchQuery query, const AccessKey& client)
    : collector_(&collector),
      query_(std::move(query)),
      client_(client),
      left_(query_.max),
      zones_(collector, client) {}

Result<bool> SearchWalk::operator()(json& found) {
  return query_.zones ? find_zones(found) : find_records(found);
}

Result<bool> SearchWalk::find_zones(json& found) {
  const auto zones = zones_.next();
  if (!zones) return tl::unexpected<Error>(zones.error());
  for (const ZoneFacts& zone : *zones) {
    if (left_ == 0) return false;
    if (!fits_name(query_.pattern, zone.name)) continue;
    --left_;
    found.push_back(
        {{"object_type", "zone"}, {"zone_id", zone_id(zone.name)}, {"name", zone.name}});
  }
  if (!zones_.at_end()) return true;
  query_.zones = false;
  zones_ = SeenZones(*collector_, client_);
  return left_ != 0 ? find_records(found) : false;
}

Result<bool> SearchWalk::find_records(json& found) {
  if (!query_.records) return false;
  std::size_t bytes = 0;
  for (std::size_t parts = 0; parts < kPartsOfStep && bytes < kBytesOfStep; ++parts) {
    const auto more = next_zone();
    if (!more || !*more) return more;
    const auto part = collector_->read_zone_part(to_search_.back(), place_);
    if (!part && part.error().code == Errc::kFull) return tl::unexpected<Error>(part.error());
    if (!part || part->next.phase == ContentPlace::Phase::kEnd) {
      to_search_.pop_back();  // gone meanwhile, or without data
      place_ = {};
    } else {
      place_ = part->next;
    }
    if (!part) continue;
    bytes += bytes_of(*part);
    add_records(*part, found);
    if (left_ == 0) return false;
  }
  return true;
}

/// Whether there is a zone to be searched.
Result<bool> SearchWalk::next_zone() {
  while (to_search_.empty()) {
    if (zones_.at_end()) return false;
    const auto zones = zones_.next();
    if (!zones) return tl::unexpected<Error>(zones.error());
    for (auto zone = zones->rbegin(); zone != zones->rend(); ++zone)
      if (auto name = dns::Name::from_text(zone->name)) to_search_.push_back(*name);
  }
  return true;
}

void SearchWalk::add_records(const ContentPart& part, json& found) {
  for (const RRsetText& rrset : part.rrsets) {
    const bool named = fits_name(query_.pattern, rrset.owner);
    for (const std::string& record : rrset.records) {
      if (!named && !fits_search(query_.pattern, record)) continue;
      if (left_ == 0) return;
      --left_;
      found.push_back({{"object_type", "record"},
                       {"zone_id", zone_id(part.apex)},
                       {"zone", part.apex},
                       {"name", rrset.owner},
                       {"type", to_text(rrset.type)},
                       {"ttl", rrset.ttl},
                       {"content", record},
                       {"disabled", false}});
    }
  }
}

}  // namespace pando::http
