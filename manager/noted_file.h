#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <optional>
#include <string>

#include "zone/draft.h"

/// Whether a zone's file is still the one from which the zone was loaded, merged with last, or
/// written to (FileState in journal_payload.h).
///
/// What a file holds is told by its hash, which costs reading it. So size, modification time and
/// *stamp* are looked at first: a file is read only when its time or its stamp moved and its size
/// did not. The stamp is made of inode and change time, which no tool can set back: an edit that
/// keeps size and modification time (`cp -p`, rsync --times, a clock's tick) shows there.
namespace pando::manager {

/// Time, size and stamp of a zone file, without its hash; nullopt when there is no such file. The
/// stamp is 0, which is no file's, as long as the file may change once more without a sign: its
/// change time is so near that the clock it is taken from may not have moved on.
std::optional<zone::ZoneSource> stat_source(const std::string& path);
/// The same of a file that is open.
zone::ZoneSource source_from(const struct stat& status);

/// The hash of what is in a file; 0 when it cannot be read, or was changed meanwhile.
std::uint64_t hash_file(const std::string& path);

/// What lies at the path beside what was noted.
struct FileCheck {
  enum class Kind : std::uint8_t {
    kMissing,
    kSame,     ///< or nothing speaks against it
    kTouched,  ///< the same content under another time or stamp: `now` is to be noted
    kOther,    ///< edited, or it cannot be told
  };
  Kind kind = Kind::kMissing;
  zone::ZoneSource now;  ///< with the hash, if it was worked out; with kSame what was noted
  bool hashed = false;
};

/// Compares. A file above `most_octets` is not read: it is kOther where its hash would decide.
FileCheck check_file(const std::string& path, const zone::ZoneSource& noted,
                     std::uint64_t most_octets = UINT64_MAX);

}  // namespace pando::manager
