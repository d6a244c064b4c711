#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace pando::manager {

/// A started process: the pidfd tells of its end and takes signals without the danger of a reused
/// pid.
struct Child {
  pid_t pid = 0;
  Fd pidfd;
};

/// How to start one worker.
struct WorkerCommand {
  std::string binary;
  std::string run_directory;
  std::string user;                  ///< `--user`: the worker drops to it; empty = stays
  std::optional<std::uint32_t> cpu;  ///< `--cpu`
};

/// posix_spawn with clean signals and mask; descriptors are all O_CLOEXEC but 0, 1, 2.
Result<Child> spawn_worker(const WorkerCommand& command, std::uint32_t slot);

/// The manager's end of a small root process that outlives the manager's drop of privileges and
/// does nothing but start workers under the worker's user and signal those it started or whose
/// pidfd it is given (a `pando` user may not signal a `pando-worker` process).
class Launcher {
 public:
  /// Starts `/proc/self/exe --launcher FD`. Only as root, before drop_privileges().
  static Result<Launcher> start(const WorkerCommand& command);
  Result<Child> spawn(std::uint32_t slot, std::optional<std::uint32_t> cpu);
  Status signal(int pidfd, int signal_number);

 private:
  explicit Launcher(Fd socket) noexcept : socket_(std::move(socket)) {}
  Fd socket_;
};

/// Body of `pando-manager --launcher FD`; call first thing in main when the option is there. Gives
/// the exit code when the manager has closed its end.
int run_launcher(int socket);

/// Gives up root for `user` (name or number) and its groups for good, keeping only
/// CAP_NET_BIND_SERVICE (sockets of workers added later bind port 53). Verified afterwards.
Status drop_privileges(const std::string& user);

/// The user's id by name or number.
Result<std::uint32_t> user_id(const std::string& user);

}  // namespace pando::manager
