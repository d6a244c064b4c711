#pragma once

#include <chrono>
#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "manager/io/owned_directory.h"
#include "manager/support/lock_timeout.h"

namespace pando::manager {

/// "One manager works in this folder": an exclusive lock on a file in the folder, for the life of
/// the process. The kernel drops the lock however the process ends, so nothing is left to clean up.
///
/// The lock is on a file, not on the folder itself. The run directory is open to all users, and any
/// user who may read a folder may lock it. The lock file is 0600.
class DirectoryLock {
 public:
  DirectoryLock() = default;
  /// Locks the file `name` in `directory`, which makes the file if there is none. kExists, with the
  /// folder and the other process, when the lock is still held after `timeout`.
  static Result<DirectoryLock> take(const OwnedDirectory& directory, const std::string& name,
                                    std::chrono::milliseconds timeout = kKilledProcessTimeout);

 private:
  explicit DirectoryLock(Fd file) noexcept : file_(std::move(file)) {}
  Fd file_;
};

}  // namespace pando::manager
