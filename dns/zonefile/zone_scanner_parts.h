#pragma once

#include <string>

#include "dns/zonefile/zone_scanner.h"

namespace pando::dns {

/// Options for cutting a file for several threads.
struct PartOptions {
  unsigned threads = 0;                ///< threads beside the caller's; 0: scans one after another
  std::size_t part_octets = 1U << 20;  ///< text of one part; more when a record is longer
  std::uint64_t least_bytes = 8U << 20;  ///< a smaller file is scanned in one pass
};

/// scan_zone_file() with threads that scan parts of the file ahead. Only the caller's thread calls
/// `sink`, in the file's order; records, errors and warnings are those of scan_zone_file().
///
/// Each part is scanned with the origin and $TTL at the end of the first part, and without an
/// owner. When that assumption proves wrong, the rest of the file is scanned in one pass from
/// there. The same happens for a part with an error, a warning, an $INCLUDE or a $GENERATE.
ScanReport scan_zone_file_in_parts(const std::string& path, const ScanOptions& options,
                                   const PartOptions& parts, const RecordSink& sink);

}  // namespace pando::dns
