#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace pando::manager {

/// A started process: the pidfd tells of its end and takes signals without the danger of a reused
/// pid.
struct Child {
  pid_t pid = 0;
  Fd pidfd;
};
[[nodiscard]] bool has_ended(const Fd& pidfd) noexcept;

/// How to start one worker.
struct WorkerCommand {
  std::string binary;
  std::string run_directory;
  std::string user;  ///< `--user`: the worker becomes it; empty = stays
};

/// The worker's program: `configured`, or pando-worker beside the running program.
[[nodiscard]] std::string worker_binary(const std::string& configured);

/// posix_spawn with default signals and an empty mask (never fork without exec). All descriptors of
/// ours are O_CLOEXEC, so the child gets 0, 1 and 2. `cpu`: pins the worker to that processor.
Result<Child> spawn_worker(const WorkerCommand& command, std::uint32_t slot,
                           std::optional<std::uint32_t> cpu);

/// The manager's end of a small process that keeps the right to change users when the manager gives
/// it up: a root process, or one with CAP_SETUID and CAP_SETGID. It does nothing but start workers,
/// which become the worker's user, and signal processes of that user (the manager's user may not).
class Launcher {
 public:
  /// Starts `/proc/self/exe --launcher FD`. Before the manager drops its privileges.
  static Result<Launcher> start(const WorkerCommand& command);

  /// Both wait for the launcher's answer, some 100 µs.
  Result<Child> spawn(std::uint32_t slot, std::optional<std::uint32_t> cpu) const;
  Status signal(int pidfd, int signal_number) const;

 private:
  explicit Launcher(Fd socket) noexcept : socket_(std::move(socket)) {}
  Fd socket_;
};

/// Body of `pando-manager --launcher FD`; call it first thing in main when the option is there.
/// Gives the exit code when the manager has closed its end. Workers live on.
int run_launcher(int socket);

}  // namespace pando::manager
