#pragma once

#include <string>
#include <vector>

#include "dns/zonefile/zone_scanner.h"

namespace pando::zone {

/// Looks through a zone file for records that cannot stand with those before them at their names
/// (check_together()): a `file:line: reason` each, at most options.max_errors, none when it cannot
/// be told from the file alone. Reads the file twice: for one that is known to be refused, since a
/// zone that loads has no use for its line numbers. `options.origin` is the zone's name.
std::vector<std::string> find_broken_rules(const std::string& path,
                                           const dns::ScanOptions& options);

}  // namespace pando::zone
