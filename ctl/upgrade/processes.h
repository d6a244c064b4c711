#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

/// Programs that pandoctl starts, and processes of others.
namespace pando::ctl {

/// Runs a program to its end, with our standard error and without its output. Fails if it cannot be
/// started, or ends with another exit code than 0.
Status run_program(const std::vector<std::string>& command);
/// The same without its errors, for a program that warns of what we did on purpose.
Status run_silently(const std::vector<std::string>& command);

/// A program that was started as the leader of a session of its own: it lives on without us.
class StartedProgram {
 public:
  /// Output and errors go to `log`.
  static Result<StartedProgram> start(const std::vector<std::string>& command, const Fd& log);
  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  /// Exit code, once it has ended; 128 + signal after a signal.
  [[nodiscard]] std::optional<int> exit_code();

 private:
  explicit StartedProgram(pid_t pid) noexcept : pid_(pid) {}
  pid_t pid_;
  std::optional<int> exit_code_;
};

/// The systemd unit of which the process is the main process, "pando-manager.service". Empty: it
/// is none. kIo: it is of a unit, and systemd does not say which process is the main one.
Result<std::string> unit_of(pid_t pid);

/// Reads all units' files anew, and gives `unit` these settings ("[Service]" and lines after it).
/// The settings hold until the next reading, even if this process ends before it asks for one.
Status set_until_next_reading(const std::string& unit, const std::string& settings);

/// The program file of a process, as the kernel knows it. After a replacement of the file it is the
/// path of the new one. For root, and for processes that may be inspected.
Result<std::string> program_of(pid_t pid);

/// The process's own descriptor `number`, with the rights that it was opened with. A path such as
/// /proc/PID/fd/2 would be opened anew, with this process's rights. Not for files of /proc and
/// /sys, where the user who writes counts.
Result<Fd> descriptor_of(const Fd& pidfd, int number);

/// The user whose rights the process has; kNotFound when there is no such process.
Result<uid_t> user_of(pid_t pid);

}  // namespace pando::ctl
