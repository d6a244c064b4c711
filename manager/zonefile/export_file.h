#pragma once

#include "manager/zonefile/zone_writing.h"
#include "zone/build/draft.h"

/// A primary zone's own file, written anew from what is served. Journal and file must never
/// disagree about what is in it, so it takes three steps:
///
/// 1. write_export(): the text lies beside the file, whole and durable, as `FILE.export`;
/// 2. the journal and the store note the time and size of that as those of the zone's file;
/// 3. finish_export(): it takes the file's name.
///
/// A process that is killed before 2 leaves the old file, which is the noted one, and one too many.
/// Killed after 2 it leaves the noted file under its first name: whoever looks for the zone's file
/// (a start, a reload, the next export) first calls finish_export().
namespace pando::manager {

/// Writes `zone` beside its file `path`, with the mode and, where that is allowed, the owner of the
/// file that it is to replace. Gives its time and size. Errors name the file; kDenied when the name
/// could not be taken over later. The folder must exist.
Result<zone::ZoneFileInfo> write_export(Files& files, const zone::ZoneView& zone,
                                        const std::string& path);
/// Takes back what write_export() did.
void drop_export(Files& files, const std::string& path);
/// When `noted` is what lies beside `path`, it becomes `path`: true. A file that was changed after
/// it was written is kept as `FILE.edited.N`, with an error in the log. False: nothing to do.
Result<bool> finish_export(Files& files, const std::string& path, const zone::ZoneFileInfo& noted);

/// Writes `zone` to a file that is nobody's source. An existing one is replaced only when it holds
/// an export of the same zone (kExists), so that no mistyped name costs other data.
Status write_zone_to(Files& files, const zone::ZoneView& zone, const std::string& path);

}  // namespace pando::manager
