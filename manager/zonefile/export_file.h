#pragma once

#include "manager/zonefile/zone_writing.h"
#include "zone/draft/draft.h"

/// Export of a primary zone: replaces the zone's own file by the served data. Journal and file must
/// never disagree about the file's content, so an export takes three steps:
///
/// 1. write_export() writes the text beside the file, whole and durable, as `FILE.export`.
/// 2. The journal and the store record the size and time of `FILE.export` as the merge base.
/// 3. finish_export() renames `FILE.export` to `FILE`.
///
/// A crash before step 2 leaves the old file, which is still the merge base, and a stray
/// `FILE.export`. A crash after step 2 leaves the merge base under its temporary name. Every reader
/// of the zone file (a start, a reload, the next export) therefore calls finish_export() first.
namespace pando::manager {

/// Writes `zone` beside its file `path`, with the mode and, where permitted, the owner of the old
/// file. Returns the size, time, stamp and hash of the new file. Errors name the file; kDenied: the
/// later rename could not succeed. The folder must exist.
Result<zone::ZoneFileInfo> write_export(Files& files, const zone::ZoneView& zone,
                                        const std::string& path);
/// Removes the file that write_export() wrote.
void drop_export(Files& files, const std::string& path);
/// Renames `FILE.export` to `path` if `base` (the merge base) describes `FILE.export`. Returns
/// true after a rename and false when nothing was to do. If `path` was edited after the export was
/// written, the edit is kept as `FILE.edited.N` and an error is logged.
Result<bool> finish_export(Files& files, const std::string& path, const zone::ZoneFileInfo& base);

/// Writes `zone` to a file that is not the source of any zone. An existing file is replaced only if
/// it is an export of the same zone (else kExists). A mistyped name must not destroy other data.
Status write_zone_to(Files& files, const zone::ZoneView& zone, const std::string& path);
/// Writes and syncs the same text from the start of `file`, which somebody else has opened.
Status write_zone_into(StoreFile& file, const zone::ZoneView& zone);

}  // namespace pando::manager
