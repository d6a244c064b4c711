#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/fd.h"
#include "base/result.h"
#include "ipc/packet_socket.h"

namespace pando::manager {

/// A started process: the pidfd tells of its end and takes signals without the danger of a reused
/// pid.
struct Child {
  pid_t pid = 0;
  Fd pidfd;
};
[[nodiscard]] bool has_ended(const Fd& pidfd) noexcept;
/// How an ended process ended, as "exit 0" or "signal 9"; "unknown" when it is not our child. Reaps
/// the process.
[[nodiscard]] std::string reap(int pidfd);

/// How to start one worker.
struct WorkerCommand {
  std::string binary;
  std::string run_directory;
  std::string user;  ///< `--user`: the worker becomes it; empty = stays
  std::string tls_binary{};  ///< pando-tls, which becomes the same user
};

/// The worker's program: `configured`, or pando-worker beside the running program.
[[nodiscard]] std::string worker_binary(const std::string& configured);

/// posix_spawn with default signals and an empty mask (never fork without exec). All descriptors of
/// ours are O_CLOEXEC, so the child gets 0, 1 and 2. `cpu`: pins the worker to that processor.
Result<Child> spawn_worker(const WorkerCommand& command, std::uint32_t slot,
                           std::optional<std::uint32_t> cpu);

/// The program of pando-tls beside the running program.
[[nodiscard]] std::string tls_binary();
/// As spawn_worker(), for a process of pando-tls.
Result<Child> spawn_tls(const WorkerCommand& command, std::uint32_t slot);

/// A program of the operator that verifies a zone (manager/verifier).
struct VerifierCommand {
  std::string user;                      ///< the program becomes it; empty = stays the caller's
  std::vector<std::string> words;        ///< the program's path and its arguments
  std::vector<std::string> environment;  ///< all of it, as `NAME=VALUE`
};
/// Descriptors that the process gets as 0 to 3; see manager/verifier/verifier_process.h.
using VerifierDescriptors = std::array<int, 4>;

/// Starts `/proc/self/exe --verifier`, the supervisor process of the operator's program.
Result<Child> spawn_verifier(const VerifierCommand& command,
                             const VerifierDescriptors& descriptors);

/// The manager's end of a small process that keeps the right to change users when the manager gives
/// it up: a root process, or one with CAP_SETUID and CAP_SETGID. It does nothing but start workers,
/// pando-tls and verifiers, which become the worker's user, and signal processes of that user (the manager's
/// user may not). Any thread may ask it.
class Launcher {
 public:
  /// Starts `/proc/self/exe --launcher FD`. Before the manager drops its privileges.
  static Result<Launcher> start(const WorkerCommand& command);

  /// All wait for the launcher's answer, some 100 µs.
  Result<Child> spawn(std::uint32_t slot, std::optional<std::uint32_t> cpu) const;
  Result<Child> spawn_tls(std::uint32_t slot) const;
  Status signal(int pidfd, int signal_number) const;
  /// As the free function, but whatever `command.user` says, the user is the worker's.
  Result<Child> spawn_verifier(const VerifierCommand& command,
                               const VerifierDescriptors& descriptors) const;

 private:
  explicit Launcher(Fd socket) : socket_(std::move(socket)) {}
  Result<ipc::Packet> ask(const Bytes& request, const std::vector<int>& descriptors) const;

  Fd socket_;
  /// An answer belongs to the request before it.
  std::unique_ptr<std::mutex> one_at_a_time_ = std::make_unique<std::mutex>();
};

/// Kills the process, by the launcher where this process may not; `launcher` may be null.
Status kill_process(int pidfd, const Launcher* launcher);

/// Body of `pando-manager --launcher FD`; call it first thing in main when the option is there.
/// Gives the exit code when the manager has closed its end. Workers live on.
int run_launcher(int socket);

}  // namespace pando::manager
