#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

/// The folder that `pandoctl backup` makes: `manifest.json`, `store.dump`, and the saved files
/// below `files/`, each under its absolute path (docs/reference/pandoctl.md).
namespace pando::ctl {

inline constexpr std::uint32_t kBackupFormat = 1;

struct SavedFile {
  std::string path;  ///< absolute, where it was and goes back to
  std::string user;  ///< its owner; empty = a user without a name
  std::string group;
  std::uint32_t mode = 0;         ///< permission bits
  std::int64_t modified_ns = 0;   ///< since 1970
  std::uint64_t bytes = 0;
  std::uint64_t hash = 0;  ///< ContentHash of what the backup has
};

struct Manifest {
  std::string program;        ///< version of pandoctl
  std::uint64_t made = 0;     ///< seconds since 1970
  std::string configuration;  ///< path of that saved file
  std::vector<std::string> included;  ///< paths of the saved files that it includes
  std::uint64_t dump_bytes = 0;
  std::uint64_t dump_hash = 0;  ///< ContentHash
  std::vector<SavedFile> files;
  std::vector<std::string> keys_left_out;   ///< keys whose secret is not in the configuration
  std::vector<std::string> files_of_keys;   ///< for each of them, the file where it belongs
  std::vector<std::string> files_left_out;  ///< files with secrets
  std::vector<std::string> files_missing;   ///< zone files that were not there
};

/// A backup's folder. It is open, so that nobody can put another one in its place.
struct BackupFolder {
  Fd fd;
  std::string path;  ///< for messages
};

/// Writes the manifest of `folder`; it is on disk then.
Status write_manifest(const Manifest& manifest, const BackupFolder& folder);
/// kNotFound: `folder` has no manifest. kUnsupported: one of a later format. kCorrupt: damaged.
Result<Manifest> read_manifest(const BackupFolder& folder);

/// Where the folder has the file that was at this absolute path: a path in the folder.
[[nodiscard]] std::string saved_path(const std::string& path);
inline constexpr const char* kSavedDump = "store.dump";

}  // namespace pando::ctl
