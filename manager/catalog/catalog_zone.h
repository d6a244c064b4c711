#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "dns/name.h"
#include "zone/read/store_view.h"

namespace pando::manager {

/// One member zone of a catalog (RFC 9432 §4.1).
struct CatalogMember {
  dns::Name zone;
  std::string id;                         ///< the unique label of the member's node, in lower case
  std::vector<std::string> groups{};      ///< values of the property "group" (§4.4.2), in order
  std::optional<dns::Name> new_catalog{};  ///< the property "coo": may take the zone over (§4.4.1)
  bool operator==(const CatalogMember&) const = default;
};

/// The members of a catalog zone in the order of their labels. Properties that are not known are
/// left out (§4.2). kInvalid: the catalog is broken and must not be used (§5.1): it lacks version
/// "2", or a member has several PTR records, or two members are one zone.
Result<std::vector<CatalogMember>> read_catalog(const zone::ZoneView& catalog);

}  // namespace pando::manager
