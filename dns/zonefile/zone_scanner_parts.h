#pragma once

#include <string>

#include "dns/zonefile/zone_scanner.h"

namespace pando::dns {

/// How a file is cut for several threads.
struct PartOptions {
  unsigned threads = 0;                  ///< that scan beside the caller's; 0: one after another
  std::size_t part_octets = 1U << 20;    ///< text of one part; more when a record is longer
  std::uint64_t least_bytes = 8U << 20;  ///< a smaller file is scanned in one go
};

/// scan_zone_file() with threads that scan parts of the file ahead. `sink` is called by the
/// caller's thread alone, in the file's order; records, errors and warnings are those of
/// scan_zone_file().
///
/// A part is scanned as if the text before it had left origin and $TTL as the first part did, and
/// no owner. Where that proves wrong, or a part has an error, a warning, an $INCLUDE or a
/// $GENERATE, the rest of the file is scanned in one go from there.
ScanReport scan_zone_file_in_parts(const std::string& path, const ScanOptions& options,
                                   const PartOptions& parts, const RecordSink& sink);

}  // namespace pando::dns
