#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "ctl/view/output.h"

namespace pando::ctl {

struct BackupRequest {
  std::string config;      ///< path of the configuration
  std::string folder;      ///< which the backup makes; it must not be there
  bool with_keys = false;  ///< with secrets of keys, and with private keys
  /// Has the running manager write a dump to this absolute path.
  std::function<Status(const std::string& path)> write_dump;
};

/// Copies all that a server needs to go on somewhere else into one folder, for its owner alone: a
/// dump of the store, the configuration, its lists, zone files and keys, and the lists that the
/// manager keeps beside the journal. The folder has its name only when it is whole and on disk.
/// Returns kDone or kFailed.
int backup(const BackupRequest& request, Output output);

/// Puts the files of a backup back to their places, and the dump where the next manager finds it.
/// All saved files are checked first. Nothing is changed where a manager runs, a live store is
/// left, or a file that differs is in the way; `replace` allows the last. Returns kDone or kFailed.
int restore(const std::string& folder, bool replace, Output output);

}  // namespace pando::ctl
