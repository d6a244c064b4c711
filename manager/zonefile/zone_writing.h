#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "manager/io/store_file.h"
#include "zone/read/store_view.h"

/// Writes zones as text. For background threads; the caller keeps the zone's version pinned.
namespace pando::manager {

/// Writes a loaded zone in presentation format from the start of `file`: a line with `comment`, the
/// SOA, then the other records. Returns the hash of the text (base/content_hash.h). kCorrupt: the
/// zone's records do not match its record count.
Result<std::uint64_t> write_zone_text(StoreFile& file, const zone::ZoneView& zone,
                                      std::string_view comment);

/// Same, to a file at `path`. After a crash at any moment `path` holds the old or the new content.
/// A missing directory is created.
Result<std::uint64_t> write_zone_file(Files& files, const zone::ZoneView& zone,
                                      const std::string& path);

/// A zone and the path of its file.
struct ZoneFileToWrite {
  zone::ZoneView zone;
  std::string path;
};

/// Same for several zones, with files in one directory. Many files are synced by one sync of their
/// file system, since a sync of each would cost more than all else. Results in the order of
/// `zones`.
std::vector<Result<std::uint64_t>> write_zone_files(Files& files,
                                                    std::span<const ZoneFileToWrite> zones);

/// Suffix of a file that is still being written.
inline constexpr const char* kPartial = ".partial";

}  // namespace pando::manager
