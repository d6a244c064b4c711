#pragma once

#include <chrono>
#include <string>
#include <thread>

#include "base/fd.h"
#include "base/result.h"
#include "manager/io/owned_directory.h"

namespace pando::manager {

/// Time for which a killed process may still hold a lock. The kernel drops the lock only after the
/// process is dismantled, and a large mapping takes a while.
inline constexpr std::chrono::milliseconds kKilledProcessTimeout{3000};

/// Repeats `attempt` while the result is kExists (another process has the lock), at most for
/// `timeout`. Blocks: for the start of the process only.
template <class Attempt>
auto retry_while_held(std::chrono::milliseconds timeout, Attempt attempt) {
  constexpr std::chrono::milliseconds kStep{10};
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  for (;;) {
    auto result = attempt();
    const bool held = !result && result.error().code == Errc::kExists;
    if (!held || std::chrono::steady_clock::now() >= deadline) return result;
    std::this_thread::sleep_for(kStep);
  }
}

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
