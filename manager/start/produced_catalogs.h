#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "config/settings/settings.h"
#include "dns/name.h"

/// The files of produced catalog zones (RFC 9432). A produced catalog is a zone with a file that
/// the manager writes, so it is loaded, merged, journalled and sent like any other zone.
namespace pando::manager {

/// The zone file of a catalog with its members: the zones whose option `catalog` names it. A
/// member's label is a hash of its name, so it is the same at each start.
[[nodiscard]] std::string catalog_text(const config::Catalog& catalog,
                                       const config::ZoneTable& zones);

/// Writes files that are missing, without members: a zone needs a file to be loaded. A file that
/// cannot be written leaves that catalog without data, and a warning in the log.
void make_missing_catalogs(const config::Settings& settings);

/// Writes each catalog's file unless it has that text. `settings` have all zones. Returns the
/// catalogs whose file is another now. Any thread may call it.
Result<std::vector<dns::Name>> write_catalogs(const config::Settings& settings);

}  // namespace pando::manager
