#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "http/observe/collector.h"
#include "http/serve/access.h"

/// The zones that the page lists, and one of them. They come from the store. The manager adds their
/// states and problems, unless it is stopped.
namespace pando::http {

/// A request for a page of zones.
struct ZoneQuery {
  std::string pattern{};              ///< as of fits_search(), for the name; empty = all
  std::optional<dns::Name> after{};   ///< the page starts after this zone
  bool problems = false;              ///< only zones that have a problem
};

/// From `search`, `after` and `problems` of a request's query string. `search` is a part of a name
/// in which "*" stands for any text and "?" for one octet. kInvalid.
Result<ZoneQuery> read_zone_query(std::string_view query);

/// At most 50 zones that the client sees: {"zones", "next", "looked", "manager"}. A page may have
/// none although `next` is not empty: some 20,000 zones are examined, and a search for problems
/// ends after a second.
Result<nlohmann::json> zone_rows_json(Collector& collector, const ZoneQuery& query,
                                      const AccessKey& client);

/// A zone, its newest changesets and its snapshots. kNotFound.
Result<nlohmann::json> zone_details_json(Collector& collector, const dns::Name& name,
                                         const AccessKey& client);

/// The row of a zone as far as the store knows it.
[[nodiscard]] ipc::ZoneRow row_of(const ZoneFacts& facts, std::uint64_t now);

}  // namespace pando::http
