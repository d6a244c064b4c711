#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "dns/name.h"
#include "http/observe/zone_content.h"

namespace pando::http {

/// The keys of a zone that this server signs, as PowerDNS's API lists them: an array of objects of
/// type Cryptokey. They are made of the records that the zone publishes, so that no private key is
/// near. `apex` has the RRsets of the zone's apex; others are passed over.
[[nodiscard]] nlohmann::json cryptokeys_json(const dns::Name& zone,
                                             const std::vector<RRsetText>& apex);

/// Checks a POST of a key, by which panels switch signing on. The server makes a CSK of the algorithm
/// of the policy `default`; `ksk` means the same to clients that ask for one key alone, as to
/// PowerDNS. kInvalid: it asks for another key, or brings one. kCorrupt: no JSON.
[[nodiscard]] Status check_new_key(std::string_view body);

}  // namespace pando::http
