#include "manager/workers/watched_process.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace pando::manager {

Status WatchedProcess::kill(const Launcher* launcher) {
  const int pidfd = pidfd_.native_handle();
  if (::syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, nullptr, 0) == 0) return {};
  if (launcher == nullptr) return fail_errno("pidfd_send_signal");
  return launcher->signal(pidfd, SIGKILL);
}

std::string WatchedProcess::reap() {
  siginfo_t info{};
  if (::waitid(static_cast<idtype_t>(P_PIDFD), static_cast<id_t>(pidfd_.native_handle()), &info,
               WEXITED | WNOHANG) != 0 ||
      info.si_pid == 0)
    return "unknown";
  return fmt::format("{} {}", info.si_code == CLD_EXITED ? "exit" : "signal", info.si_status);
}

}  // namespace pando::manager
