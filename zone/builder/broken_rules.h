#pragma once

#include <string>
#include <vector>

#include "dns/zonefile/zone_scanner.h"

namespace pando::zone {

/// Searches a zone file for records that break a rule together with earlier records of their names
/// (check_together()). Returns a `file:line: reason` each, at most options.max_errors; none when
/// the file alone does not show the fault. The file is read twice, so this is for files known to be
/// refused: a zone that loads needs no line numbers. `options.origin` is the zone's name.
std::vector<std::string> find_broken_rules(const std::string& path,
                                           const dns::ScanOptions& options);

}  // namespace pando::zone
