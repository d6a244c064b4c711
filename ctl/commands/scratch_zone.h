#pragma once

#include <string>

#include "base/progress.h"
#include "base/result.h"
#include "dns/zonefile/zone_scanner.h"
#include "shm/store.h"
#include "zone/builder/zone_builder.h"

/// Zone files that a command reads without a manager, into a store of its own.
namespace pando::ctl {

/// A store for one command. The file is unlinked before this function returns, so no file is left
/// however the process ends.
Result<shm::Store> scratch_store();

/// Reads the zone file at `path` into the builder, and counts the bytes in `progress`.
dns::ScanReport read_zone_file(const std::string& path, dns::ScanOptions options,
                               zone::ZoneBuilder& builder, Progress& progress);

/// The lines about a file whose zone the builder refused with `error`: the rules that it breaks, or
/// else the error itself.
std::vector<std::string> lines_about(const std::string& path, const dns::ScanOptions& options,
                                     const Error& error, Progress& progress);

}  // namespace pando::ctl
