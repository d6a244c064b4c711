#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "config/settings/settings.h"
#include "dns/name.h"

/// Zones that are added with their content: the manager keeps it as a zone file of its own
/// (config::created_zone_path), from which the zone is loaded as from any other.
namespace pando::manager {

struct CreatedZone {
  dns::Name zone;
  std::string content;  ///< text of a zone file
};

/// Takes the member `content` out of a zone as a command gives it (RunTimeChange::add), and puts
/// the path of the file in its place. None: the zone has no content. kInvalid: it cannot have it.
/// Members' names have no escapes: ipc::ControlRequest::zones has them as they are printed.
Result<std::optional<CreatedZone>> take_content(std::string& zone, const std::string& journal);

/// Writes the files durably, but of zones that `settings` has: theirs are in use. Returns those
/// that were written; after an error all are removed.
Result<std::vector<dns::Name>> write_created_zones(std::span<const CreatedZone> zones,
                                                   const config::Settings& settings);
/// Removes the file of a zone that is not served any more; false: there was none.
bool remove_created_zone(const std::string& journal, dns::NameView zone);

}  // namespace pando::manager
