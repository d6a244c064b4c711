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

/// Writes files that are missing: a zone needs a file to be loaded. `settings` have all zones, since
/// a catalog without some of its members would take these away from its consumers. A file that
/// cannot be written leaves its catalog as it is served, and a warning in the log.
void make_missing_catalogs(const config::Settings& settings);

struct WrittenCatalogs {
  std::vector<dns::Name> changed;  ///< their files are others now
  Status status;                   ///< the first error; the other catalogs are written all the same
};

/// Writes each catalog's file unless it has that text. `settings` have all zones. Any thread may
/// call it.
[[nodiscard]] WrittenCatalogs write_catalogs(const config::Settings& settings);

}  // namespace pando::manager
