#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "http/api/seen_zones.h"
#include "http/observe/collector.h"
#include "http/serve/access.h"

namespace pando::http {

/// A search over names of zones, owner names and data of records.
struct SearchQuery {
  std::string pattern{};  ///< "*": any text, "?": one octet; letters of any case
  std::size_t max = 100;
  bool zones = true;
  bool records = true;
};

/// From `q`, `max` and `object_type` of a request's query string. kInvalid.
Result<SearchQuery> read_search(std::string_view query);

/// Finds the objects that fit, among the zones that the client sees: at most `max`, zones first. It
/// continues from call to call, so that no search holds a thread or memory for long. A record that
/// changes meanwhile may be found as it was or as it is.
class SearchWalk {
 public:
  /// `collector` outlives this object.
  SearchWalk(Collector& collector, SearchQuery query, const AccessKey& client);
  /// Appends what one step finds, and returns whether the search continues. kFull: versions of the
  /// store follow one another too quickly.
  Result<bool> operator()(nlohmann::json& found);

 private:
  Result<bool> find_zones(nlohmann::json& found);
  Result<bool> find_records(nlohmann::json& found);
  Result<bool> next_zone();
  void add_records(const ContentPart& part, nlohmann::json& found);

  Collector* collector_;
  SearchQuery query_;
  AccessKey client_;
  std::size_t left_;  ///< objects that may still be found
  SeenZones zones_;
  std::vector<dns::Name> to_search_{};  ///< zones of a page whose records are searched, last first
  ContentPlace place_{};                ///< in the last of these
};

/// Whether all of `text` fits the pattern.
[[nodiscard]] bool fits_search(std::string_view pattern, std::string_view text) noexcept;

}  // namespace pando::http
