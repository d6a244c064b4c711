#pragma once

#include <string>
#include <string_view>

#include "manager/io/store_file.h"
#include "zone/read/store_view.h"

/// Zones as text on disk. For pool threads: the version that a zone is part of must be pinned.
namespace pando::manager {

/// Writes a loaded zone in presentation format from the start of `file`: a line with `comment`, the
/// SOA, all others. Gives the hash of the text (base/content_hash.h). kCorrupt when the zone has
/// another number of records than it says.
Result<std::uint64_t> write_zone_text(StoreFile& file, const zone::ZoneView& zone,
                                      std::string_view comment);

/// The same to a file of its own. After a crash at any moment `path` holds the old or the new
/// contents; a missing directory is made.
Result<std::uint64_t> write_zone_file(Files& files, const zone::ZoneView& zone,
                                      const std::string& path);

/// What the name of a file that is being written ends with.
inline constexpr const char* kPartial = ".partial";

}  // namespace pando::manager
