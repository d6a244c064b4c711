#include "sandbox/hardening.h"

#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <string_view>

#include "base/build.h"
#include "base/fd.h"
#include "ipc/privileges.h"

namespace pando::sandbox {

namespace {

/// Calls allowed with any arguments. Many work on sockets that the manager and the worker's
/// successor use, too. A call that changes a socket permanently must not be here.
constexpr int kPlainCalls[] = {
    // sockets and files that are open already
    SCMP_SYS(read), SCMP_SYS(readv), SCMP_SYS(pread64), SCMP_SYS(write), SCMP_SYS(writev),
    SCMP_SYS(recvfrom), SCMP_SYS(recvmsg), SCMP_SYS(recvmmsg), SCMP_SYS(sendto), SCMP_SYS(sendmsg),
    SCMP_SYS(sendmmsg), SCMP_SYS(accept4), SCMP_SYS(close), SCMP_SYS(connect),
    SCMP_SYS(getsockname), SCMP_SYS(getpeername), SCMP_SYS(getsockopt), SCMP_SYS(fstat),
    SCMP_SYS(fstatfs),
    // the loop
    SCMP_SYS(epoll_create1), SCMP_SYS(epoll_ctl), SCMP_SYS(epoll_wait), SCMP_SYS(epoll_pwait),
    SCMP_SYS(poll), SCMP_SYS(ppoll), SCMP_SYS(eventfd2), SCMP_SYS(timerfd_create),
    SCMP_SYS(timerfd_settime), SCMP_SYS(clock_gettime), SCMP_SYS(clock_nanosleep),
    SCMP_SYS(gettimeofday), SCMP_SYS(time), SCMP_SYS(restart_syscall),
    // memory, signals, the end
    SCMP_SYS(brk), SCMP_SYS(munmap), SCMP_SYS(mremap), SCMP_SYS(futex), SCMP_SYS(getrandom),
    SCMP_SYS(rt_sigaction), SCMP_SYS(rt_sigprocmask), SCMP_SYS(rt_sigreturn),
    SCMP_SYS(sigaltstack), SCMP_SYS(getpid), SCMP_SYS(gettid), SCMP_SYS(sched_yield),
    SCMP_SYS(rseq), SCMP_SYS(exit), SCMP_SYS(exit_group)};

struct FreeFilter {
  void operator()(void* filter) const noexcept { ::seccomp_release(filter); }
};
using Filter = std::unique_ptr<void, FreeFilter>;

template <class... Conditions>
bool allow(void* filter, int call, const Conditions&... conditions) {
  return ::seccomp_rule_add(filter, SCMP_ACT_ALLOW, call, sizeof...(conditions), conditions...) ==
         0;
}
/// For calls of libraries that go on without: they must not end the process.
bool refuse(void* filter, int call, int error) {
  return ::seccomp_rule_add(filter, SCMP_ACT_ERRNO(static_cast<std::uint32_t>(error)), call, 0) ==
         0;
}
/// The call does nothing and returns 0.
bool succeed(void* filter, int call, const scmp_arg_cmp& condition) {
  return ::seccomp_rule_add(filter, SCMP_ACT_ERRNO(0), call, 1, condition) == 0;
}
scmp_arg_cmp equals(unsigned argument, std::uint64_t value) {
  return {argument, SCMP_CMP_EQ, value, 0};
}
scmp_arg_cmp without(unsigned argument, std::uint64_t bits) {
  return {argument, SCMP_CMP_MASKED_EQ, bits, 0};
}

/// Descriptors 0 to 2 are the manager's and all workers', too. The kernel reads 32 bits of a
/// descriptor, so greater-than of all 64 could be met with the number 2.
bool allow_above_standard(void* filter, int call, const scmp_arg_cmp& condition) {
  constexpr std::uint64_t kNumber = 0xFFFF'FFFF;
  if (!allow(filter, call, scmp_arg_cmp{0, SCMP_CMP_MASKED_EQ, kNumber, 3}, condition))
    return false;
  for (std::uint64_t bit = 4; bit < kNumber; bit <<= 1)
    if (!allow(filter, call, scmp_arg_cmp{0, SCMP_CMP_MASKED_EQ, bit, bit}, condition))
      return false;
  return true;
}

bool allow_sockets(void* filter) {
  // The only socket that the process opens is the one to its manager.
  return allow(filter, SCMP_SYS(socket), equals(0, AF_UNIX),
               equals(1, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC), equals(2, 0)) &&
         // Reading from a listening socket must not be shut: nothing would open it again. The log
         // may be a socket, which all processes write to.
         allow_above_standard(filter, SCMP_SYS(shutdown), equals(1, SHUT_WR)) &&
         // Asio asks for it. All sockets are non-blocking already, and the flag is not the worker's
         // alone: a socket that blocks would hold the other workers that have it.
         succeed(filter, SCMP_SYS(ioctl), equals(1, FIONBIO)) &&
         // A filter or a lock on it (SO_LOCK_FILTER) would outlive the worker.
         refuse(filter, SCMP_SYS(setsockopt), EPERM);
}

bool allow_pairs(void* filter) {
  return allow(filter, SCMP_SYS(socketpair), equals(0, AF_UNIX),
               equals(1, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC), equals(2, 0));
}

bool allow_files(void* filter) {
  // No locks: the kernel does not show whose a lock is, and a filter cannot see its position.
  // Nor may a descriptor of the log get another number.
  for (const std::uint64_t command : {F_DUPFD_CLOEXEC, F_GETFD, F_GETFL})
    if (!allow_above_standard(filter, SCMP_SYS(fcntl), equals(1, command))) return false;
  // All files come from the manager, by descriptor. Size, owner and times of any other file do not
  // concern a worker, and Landlock does not govern them. A filter cannot see whether a path is
  // empty, so own code has file_status(), and libraries get the error of a missing right.
  return refuse(filter, SCMP_SYS(openat), EACCES) &&
         refuse(filter, SCMP_SYS(newfstatat), EACCES) && refuse(filter, SCMP_SYS(statx), EACCES);
}

bool allow_memory(void* filter) {
  // MADV_REMOVE would punch holes in files.
  for (const std::uint64_t advice :
       {MADV_DONTNEED, MADV_FREE, MADV_HUGEPAGE, MADV_NOHUGEPAGE, MADV_DONTDUMP})
    if (!allow(filter, SCMP_SYS(madvise), equals(2, advice))) return false;
  // No memory ever becomes executable. Memory that is neither private nor a file's, and memory that
  // grows like a stack, would escape limit_memory().
  return allow(filter, SCMP_SYS(mmap), without(2, PROT_EXEC),
               without(3, MAP_SHARED | MAP_GROWSDOWN)) &&
         allow(filter, SCMP_SYS(mmap), without(2, PROT_EXEC),
               without(3, MAP_ANONYMOUS | MAP_GROWSDOWN)) &&
         allow(filter, SCMP_SYS(mprotect), without(2, PROT_EXEC));
}

bool allow_all_needed(void* filter) {
  for (const int call : kPlainCalls)
    if (!allow(filter, call)) return false;
  // abort() and raise().
  const auto own = static_cast<std::uint64_t>(::getpid());
  return allow(filter, SCMP_SYS(tgkill), equals(0, own)) && allow_sockets(filter) &&
         allow_files(filter) && allow_memory(filter);
}

bool is_regular_file(int fd) {
  struct stat status{};
  return ::fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
}

// Landlock (landlock(7)) by raw calls: Debian 12's headers are older than most of it.
struct LandlockRules {
  std::uint64_t files;
  std::uint64_t network;
  std::uint64_t scope;
};
constexpr long kCreateRuleset = 444;
constexpr long kRestrictSelf = 446;
constexpr unsigned kAskVersion = 1;

/// All rights that the kernel's version of Landlock knows. Nothing is allowed in exchange.
LandlockRules rules_of(long version) {
  constexpr std::array<unsigned, 6> kFileRights{0, 13, 14, 15, 15, 16};
  const auto known = static_cast<std::size_t>(std::min<long>(version, 5));
  LandlockRules rules{};
  rules.files = (std::uint64_t{1} << kFileRights[known]) - 1;
  constexpr std::uint64_t kBindAndConnectTcp = 3;
  constexpr std::uint64_t kAbstractSocketsAndSignals = 3;
  if (version >= 4) rules.network = kBindAndConnectTcp;
  if (version >= 6) rules.scope = kAbstractSocketsAndSignals;
  return rules;
}

/// The kernel takes the struct by its length of that version.
std::size_t bytes_of_rules(long version) {
  return sizeof(std::uint64_t) * (version >= 6 ? 3 : version >= 4 ? 2 : 1);
}

}  // namespace

Status forbid_inspection() {
  if (auto closed = ipc::forbid_inspection(); !closed) return closed;
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
    return fail_errno("prctl(PR_SET_NO_NEW_PRIVS)");
  return {};
}

Status filter_system_calls(SocketPairs pairs) {
  const char* choice = std::getenv("PANDO_SECCOMP");
  const std::string_view wish = choice == nullptr ? "" : choice;
  if (kSanitized || wish == "off") return {};
  const std::uint32_t otherwise = wish == "log" ? SCMP_ACT_LOG : SCMP_ACT_KILL_PROCESS;
  const Filter filter(::seccomp_init(otherwise));
  if (!filter) return fail(Errc::kIo, "seccomp_init failed");
  if (!allow_all_needed(filter.get()) ||
      (pairs == SocketPairs::kAllowed && !allow_pairs(filter.get())))
    return fail(Errc::kIo, "seccomp rules were refused");
  if (const int failed = ::seccomp_load(filter.get()); failed != 0)
    return fail(Errc::kIo, "seccomp_load: error {}", -failed);
  return {};
}

Status forbid_files(std::uint64_t max_file_bytes) {
  // Large values are an error of write(2), as a full disk is.
  std::signal(SIGXFSZ, SIG_IGN);
  if (!is_regular_file(STDOUT_FILENO) && !is_regular_file(STDERR_FILENO)) {
    const rlimit limit{max_file_bytes, max_file_bytes};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return fail_errno("setrlimit(RLIMIT_FSIZE)");
  }
  const long version = ::syscall(kCreateRuleset, nullptr, 0, kAskVersion);
  if (kSanitized || version < 1) return {};  // a kernel without Landlock: the filter stays
  const LandlockRules rules = rules_of(version);
  const Fd ruleset(
      static_cast<int>(::syscall(kCreateRuleset, &rules, bytes_of_rules(version), 0)));
  if (!ruleset) return fail_errno("landlock_create_ruleset");
  if (::syscall(kRestrictSelf, ruleset.get(), 0) != 0) return fail_errno("landlock_restrict_self");
  return {};
}

Status limit_memory() {
  constexpr std::uint64_t kAnyway = std::uint64_t{512} << 20;
  constexpr std::uint64_t kShare = 4;
  if (kSanitized) return {};  // their own memory would count, too
  const long pages = ::sysconf(_SC_PHYS_PAGES);
  const long bytes = ::sysconf(_SC_PAGESIZE);
  if (pages <= 0 || bytes <= 0) return {};
  const std::uint64_t all = static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(bytes);
  rlimit limit{};
  if (::getrlimit(RLIMIT_DATA, &limit) != 0) return fail_errno("getrlimit(RLIMIT_DATA)");
  limit.rlim_cur = limit.rlim_max = std::min<rlim_t>(limit.rlim_max, std::max(kAnyway, all / kShare));
  if (::setrlimit(RLIMIT_DATA, &limit) != 0) return fail_errno("setrlimit(RLIMIT_DATA)");
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

}  // namespace pando::sandbox
