#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "dns/name.h"
#include "http/observe/zone_content.h"

namespace pando::http {

/// The keys of a zone that this server signs, as PowerDNS's API lists them: an array of objects of
/// type Cryptokey. They are made of the records that the zone publishes, so that no private key is
/// near. `apex` has the RRsets of the zone's apex; others are passed over.
[[nodiscard]] nlohmann::json cryptokeys_json(const dns::Name& zone,
                                             const std::vector<RRsetText>& apex);

}  // namespace pando::http
