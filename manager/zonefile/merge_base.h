#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <optional>
#include <string>

#include "zone/build/draft.h"

/// Whether a zone's file is still the one from which the zone was loaded, merged with last, or
/// written to (MergeBase in journal_payload.h).
///
/// What a file holds is told by its hash, which costs reading it. So size, modification time and
/// *stamp* are looked at first: a file is read only when its time or its stamp moved and its size
/// did not. The stamp is made of inode and change time, which no tool can set back: an edit that
/// keeps size and modification time (`cp -p`, rsync --times, a clock's tick) shows there.
///
/// A file that includes others (`$INCLUDE`) is hashed with these. Which they are stands in it
/// alone, so it has no stamp, and is read at each look.
namespace pando::manager {

/// Stands in a noted file for the stamp of one that includes others. No file has it: what it
/// includes can change without a sign in its own inode.
inline constexpr std::uint32_t kIncludesOthers = 1;

/// Time, size and stamp of a zone file, without its hash; nullopt when there is no such file. The
/// stamp is 0, which is no file's, as long as the file may change once more without a sign: its
/// change time is so near that the clock it is taken from may not have moved on. One that is noted
/// so is read at the next look, and noted with the stamp that it has then.
std::optional<zone::ZoneFileInfo> stat_source(const std::string& path);
/// The same of a file that is open.
zone::ZoneFileInfo source_from(const struct stat& status);

/// What is in a file, and in those that it includes.
struct FileContent {
  std::uint64_t hash = 0;  ///< 0: it cannot be read or scanned, or was changed meanwhile
  bool has_included = false;
};
/// Reads a file. One that includes others and has more than `most_bytes` with them is not read to
/// the end: its hash is 0.
FileContent read_content(const std::string& path, std::uint64_t most_bytes = UINT64_MAX);
/// Completes `source`, which is what stat_source() or source_from() said before it was read.
void note_content(zone::ZoneFileInfo& source, const FileContent& content) noexcept;

/// What lies at the path beside what was noted.
struct FileCheck {
  enum class Kind : std::uint8_t {
    kMissing,
    kSame,
    kTouched,  ///< the same content under another time or stamp: `now` is to be noted
    kOther,    ///< edited, or it cannot be told
  };
  Kind kind = Kind::kMissing;
  zone::ZoneFileInfo now;  ///< with the hash, if it was worked out; with kSame what was noted
  bool hashed = false;     ///< it was read
};

/// Compares. A file above `most_bytes`, with what it includes, is not read: it is kOther where its
/// hash would decide. Nor is one that is as it was in `read_before`, an earlier look's `now`. One
/// that was noted without a hash, by an earlier build, is kTouched when its stamp is the noted one
/// and it includes no others; else kOther.
FileCheck check_file(const std::string& path, const zone::ZoneFileInfo& noted,
                     std::uint64_t most_bytes = UINT64_MAX,
                     const zone::ZoneFileInfo& read_before = {});

}  // namespace pando::manager
