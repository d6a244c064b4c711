#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "base/result.h"
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

/// The objects that fit, among the zones that the client sees: at most `max`, zones first. kFull:
/// the zones are too large to be looked through.
Result<nlohmann::json> search_data(Collector& collector, const SearchQuery& query,
                                   const AccessKey& client);

/// Whether all of `text` fits the pattern.
[[nodiscard]] bool fits_search(std::string_view pattern, std::string_view text) noexcept;

}  // namespace pando::http
