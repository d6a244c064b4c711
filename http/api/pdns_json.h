#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "dns/name.h"
#include "http/observe/observed.h"
#include "http/observe/zone_content.h"

/// The objects of the PowerDNS Authoritative HTTP API, version 1.
namespace pando::http {

/// The only server that there is; PowerDNS calls its own so, too.
inline constexpr std::string_view kServerId = "localhost";

[[nodiscard]] nlohmann::json server_json();
/// An element of the list of zones.
[[nodiscard]] nlohmann::json zone_json(const ZoneFacts& zone);
/// A zone with its RRsets; with a name, and maybe a type, only those.
struct RRsetFilter {
  bool without = false;  ///< no RRsets at all
  std::string name{};    ///< with final dot; empty = all
  std::string type{};    ///< mnemonic; empty = all
};
[[nodiscard]] nlohmann::json zone_json(const ZoneContent& zone, const RRsetFilter& filter);
/// `masters` of a secondary zone, whose primaries are ADDRESS@PORT. A port of 53 is left out.
[[nodiscard]] nlohmann::json masters_json(const std::vector<std::string>& primaries);
[[nodiscard]] nlohmann::json statistics_json(const Observed& observed);
/// The zone as text: a line for each record.
[[nodiscard]] std::string zone_text(const ZoneContent& zone);

/// A zone's id: its name with final dot; octets that a path cannot have, and "=", as =XX.
[[nodiscard]] std::string zone_id(std::string_view name);
/// The name in a path: as zone_id() writes it or with %XX, with or without the final dot. kInvalid.
Result<dns::Name> name_of_id(std::string_view id);
/// The value of `key` in a query string; empty when absent or malformed.
[[nodiscard]] std::string query_value(std::string_view query, std::string_view key);

}  // namespace pando::http
