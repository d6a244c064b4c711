#include "worker/hardening.h"

#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <cstdlib>
#include <memory>
#include <string_view>

#include "base/build.h"
#include "ipc/privileges.h"

namespace pando::worker {

namespace {

/// Calls allowed with any arguments.
constexpr int kPlainCalls[] = {
    // sockets and files that are open already
    SCMP_SYS(read), SCMP_SYS(readv), SCMP_SYS(pread64), SCMP_SYS(write), SCMP_SYS(writev),
    SCMP_SYS(recvfrom), SCMP_SYS(recvmsg), SCMP_SYS(recvmmsg), SCMP_SYS(sendto), SCMP_SYS(sendmsg),
    SCMP_SYS(sendmmsg), SCMP_SYS(accept4), SCMP_SYS(close), SCMP_SYS(shutdown), SCMP_SYS(connect),
    SCMP_SYS(getsockname), SCMP_SYS(getpeername), SCMP_SYS(getsockopt), SCMP_SYS(setsockopt),
    SCMP_SYS(fstat), SCMP_SYS(newfstatat), SCMP_SYS(statx), SCMP_SYS(fstatfs), SCMP_SYS(statfs),
    SCMP_SYS(lseek), SCMP_SYS(fcntl), SCMP_SYS(dup),
    // the loop
    SCMP_SYS(epoll_create1), SCMP_SYS(epoll_ctl), SCMP_SYS(epoll_wait), SCMP_SYS(epoll_pwait),
    SCMP_SYS(poll), SCMP_SYS(ppoll), SCMP_SYS(eventfd2), SCMP_SYS(timerfd_create),
    SCMP_SYS(timerfd_settime), SCMP_SYS(clock_gettime), SCMP_SYS(clock_nanosleep),
    SCMP_SYS(gettimeofday), SCMP_SYS(time), SCMP_SYS(restart_syscall),
    // memory, signals, the end
    SCMP_SYS(brk), SCMP_SYS(munmap), SCMP_SYS(mremap), SCMP_SYS(madvise), SCMP_SYS(futex),
    SCMP_SYS(getrandom), SCMP_SYS(rt_sigaction), SCMP_SYS(rt_sigprocmask), SCMP_SYS(rt_sigreturn),
    SCMP_SYS(sigaltstack), SCMP_SYS(getpid), SCMP_SYS(gettid), SCMP_SYS(tgkill),
    SCMP_SYS(sched_yield), SCMP_SYS(rseq), SCMP_SYS(exit), SCMP_SYS(exit_group)};

struct FreeFilter {
  void operator()(void* filter) const noexcept { ::seccomp_release(filter); }
};
using Filter = std::unique_ptr<void, FreeFilter>;

bool allow(void* filter, int call) {
  return ::seccomp_rule_add(filter, SCMP_ACT_ALLOW, call, 0) == 0;
}
bool allow_if(void* filter, int call, const scmp_arg_cmp& condition) {
  return ::seccomp_rule_add(filter, SCMP_ACT_ALLOW, call, 1, condition) == 0;
}

bool allow_all_needed(void* filter) {
  for (const int call : kPlainCalls)
    if (!allow(filter, call)) return false;
  constexpr scmp_datum_t kWriting = O_WRONLY | O_RDWR | O_CREAT | O_TRUNC;
  return
      // Files (store, time zone) are opened for reading only.
      allow_if(filter, SCMP_SYS(openat), scmp_arg_cmp{2, SCMP_CMP_MASKED_EQ, kWriting, 0}) &&
      // No memory ever becomes executable.
      allow_if(filter, SCMP_SYS(mmap), scmp_arg_cmp{2, SCMP_CMP_MASKED_EQ, PROT_EXEC, 0}) &&
      allow_if(filter, SCMP_SYS(mprotect), scmp_arg_cmp{2, SCMP_CMP_MASKED_EQ, PROT_EXEC, 0}) &&
      // The only socket a worker opens is the one to its manager.
      allow_if(filter, SCMP_SYS(socket), scmp_arg_cmp{0, SCMP_CMP_EQ, AF_UNIX, 0}) &&
      allow_if(filter, SCMP_SYS(ioctl), scmp_arg_cmp{1, SCMP_CMP_EQ, FIONBIO, 0});
}

}  // namespace

Status forbid_inspection() {
  if (auto closed = ipc::forbid_inspection(); !closed) return closed;
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
    return fail_errno("prctl(PR_SET_NO_NEW_PRIVS)");
  return {};
}

Status filter_system_calls() {
  const char* choice = std::getenv("PANDO_SECCOMP");
  const std::string_view wish = choice == nullptr ? "" : choice;
  if (kSanitized || wish == "off") return {};
  const std::uint32_t otherwise = wish == "log" ? SCMP_ACT_LOG : SCMP_ACT_KILL_PROCESS;
  const Filter filter(::seccomp_init(otherwise));
  if (!filter) return fail(Errc::kIo, "seccomp_init failed");
  if (!allow_all_needed(filter.get())) return fail(Errc::kIo, "seccomp rules were refused");
  if (const int failed = ::seccomp_load(filter.get()); failed != 0)
    return fail(Errc::kIo, "seccomp_load: error {}", -failed);
  return {};
}

void raise_descriptor_limit() noexcept {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

Status pin_to_processor(std::uint32_t cpu) {
  if (cpu >= CPU_SETSIZE) return fail(Errc::kInvalid, "no processor {}", cpu);
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  if (::sched_setaffinity(0, sizeof set, &set) != 0) return fail_errno("sched_setaffinity");
  return {};
}

}  // namespace pando::worker
