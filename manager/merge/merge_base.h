#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <optional>
#include <string>

#include "zone/draft/draft.h"

/// Tells whether a zone's file is still its merge base (MergeBase in journal_payload.h). The merge
/// base is the file that the zone was loaded from, last merged with, or last exported to.
///
/// The content hash decides, but costs reading the file. So size, modification time and *stamp* are
/// compared first. A file is read only if time or stamp differ and the size does not. The stamp is
/// a hash of inode and change time, which no tool can set back. An edit that keeps size and
/// modification time (`cp -p`, rsync --times, a clock's tick) therefore changes the stamp.
///
/// A file with `$INCLUDE` is hashed together with the included files. The names of these files are
/// known only from reading, so such a file has no stamp and is read at each check.
namespace pando::manager {

/// Replaces the stamp in the merge base if the file includes others. No file has this value as a
/// stamp: an included file can change without a trace in the inode of the including file.
inline constexpr std::uint32_t kIncludesOthers = 1;

/// Time, size and stamp of a zone file, without the hash; nullopt: no such file. A change time
/// close to now gives stamp 0 (no file has it), because the file could change again within one
/// clock tick. A merge base with stamp 0 is read at the next check and gets the stamp of that
/// moment.
std::optional<zone::ZoneFileInfo> stat_source(const std::string& path);
/// Same as stat_source(), for an open file.
zone::ZoneFileInfo source_from(const struct stat& status);

/// Content of a file and its included files.
struct FileContent {
  std::uint64_t hash = 0;  ///< 0: unreadable, not scannable, or changed while being read
  bool has_included = false;
};
/// Reads and hashes a file. A file that includes others is given up (hash 0) once it and its
/// included files exceed `most_bytes`.
FileContent read_content(const std::string& path, std::uint64_t most_bytes = UINT64_MAX);
/// Adds the content to `source`, the result of stat_source() or source_from() before reading.
void add_content(zone::ZoneFileInfo& source, const FileContent& content) noexcept;

/// The file at a path, compared with the merge base.
struct FileCheck {
  enum class Kind : std::uint8_t {
    kMissing,
    kSame,
    kTouched,  ///< same content with another time or stamp: record `now` as the merge base
    kOther,    ///< edited, or undecidable
  };
  Kind kind = Kind::kMissing;
  /// the present file, with the hash if computed; with kSame the merge base
  zone::ZoneFileInfo now;
  bool hashed = false;  ///< the file was read
};

/// Compares the file at `path` with the merge base `base`. Where the hash would decide, a file
/// above `most_bytes` (with its included files) is not read and is kOther. A file unchanged since
/// `read_before`, the `now` of an earlier check, is not read again.
FileCheck check_file(const std::string& path, const zone::ZoneFileInfo& base,
                     std::uint64_t most_bytes = UINT64_MAX,
                     const zone::ZoneFileInfo& read_before = {});

/// The same for a file that was read: `now` has its hash, or 0 if there is none. Never kMissing.
FileCheck compare_content(const zone::ZoneFileInfo& now, const zone::ZoneFileInfo& base);

}  // namespace pando::manager
