#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "config/settings/settings.h"
#include "dns/name.h"

namespace pando::http {

/// A zone to be added: a primary one with its content, or a secondary one with its primaries.
struct NewZone {
  dns::Name name;
  std::string content;                 ///< text of a zone file; empty: a secondary zone
  std::vector<std::string> primaries;  ///< names of remotes
  std::string template_name{};         ///< empty: none is named
  /// Lines of `content` before the client's own text; none without a text.
  std::optional<std::size_t> lines_before{};
  bool is_signed = false;  ///< by the policy `default`
};

/// The members of a PUT to a zone. A member that is absent stays as it is.
struct ZoneChange {
  std::optional<std::vector<std::string>> primaries{};  ///< names of remotes
  std::optional<bool> is_signed{};
};

/// Reads the content of a POST to the list of zones, by the rules of PowerDNS. A zone without a SOA
/// gets one, with the serial YYYYMMDD01 of `today` (seconds since 1970). Addresses of `masters` are
/// those of `remotes`. kCorrupt: no JSON. kInvalid: a rule is broken. kFull: too many records.
Result<NewZone> read_new_zone(std::string_view body, const std::vector<config::Remote>& remotes,
                              std::uint64_t today);

/// Reads the content of a PUT to a zone, by the rules of PowerDNS. Members without a place here
/// change nothing, as in a new zone. `secondary`: the zone has primaries. kCorrupt as above.
/// kInvalid: a rule is broken, or the change is not possible.
Result<ZoneChange> read_zone_change(std::string_view body, const dns::Name& zone, bool secondary,
                                    const std::vector<config::Remote>& remotes);

}  // namespace pando::http
