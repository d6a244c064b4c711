#include "manager/verifier/confinement.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "ipc/privileges.h"

namespace pando::manager {

namespace {

#if defined(__x86_64__)
constexpr std::uint32_t kOwnArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t kOwnArchitecture = AUDIT_ARCH_AARCH64;
#else
constexpr std::uint32_t kOwnArchitecture = 0;
#endif

/// Numbers from here on are those of x32, another way to call the kernel of an x86-64.
constexpr std::uint32_t kFirstOfX32 = 0x4000'0000;

constexpr std::uint32_t refusal(int error) {
  return SECCOMP_RET_ERRNO | (static_cast<std::uint32_t>(error) & SECCOMP_RET_DATA);
}

/// Changes of files that Landlock lets pass. The numbers, which are the same everywhere: fchmodat2,
/// setxattrat, removexattrat, file_setattr.
constexpr unsigned kChangesOfAttributes[] = {
#ifdef SYS_chmod
    SYS_chmod,
    SYS_chown,
    SYS_lchown,
    SYS_utime,
    SYS_utimes,
    SYS_futimesat,
#endif
    SYS_fchmod,
    SYS_fchmodat,
    SYS_fchown,
    SYS_fchownat,
    SYS_utimensat,
    SYS_setxattr,
    SYS_lsetxattr,
    SYS_fsetxattr,
    SYS_removexattr,
    SYS_lremovexattr,
    SYS_fremovexattr,
    452,
    463,
    466,
    469};

constexpr sock_filter load(std::size_t offset) {
  return {BPF_LD | BPF_W | BPF_ABS, 0, 0, static_cast<std::uint32_t>(offset)};
}
constexpr sock_filter unless(std::uint32_t value, std::uint8_t skip) {
  return {BPF_JMP | BPF_JEQ | BPF_K, 0, skip, value};
}
constexpr sock_filter end(std::uint32_t action) { return {BPF_RET | BPF_K, 0, 0, action}; }

/// Sockets of AF_UNIX are refused, and the ways around this filter: another architecture's calls,
/// and io_uring, which opens sockets without a call of that name. Half of a pair of datagram
/// sockets could send to any other one.
std::vector<sock_filter> filter_of_calls(bool changes_nothing) {
  std::vector<sock_filter> filter{
      load(offsetof(seccomp_data, arch)),
      sock_filter{BPF_JMP | BPF_JEQ | BPF_K, 1, 0, kOwnArchitecture},
      end(refusal(EPERM)),
      load(offsetof(seccomp_data, nr)),
      sock_filter{BPF_JMP | BPF_JGE | BPF_K, 0, 1, kFirstOfX32},
      end(refusal(EPERM)),
      unless(SYS_io_uring_setup, 1),
      end(refusal(EPERM)),
  };
  if (changes_nothing)
    for (const unsigned call : kChangesOfAttributes) {
      filter.push_back(unless(call, 1));
      filter.push_back(end(refusal(EPERM)));
    }
  constexpr std::uint32_t kKindOfSocket = 0xF;  // the other bits are flags
  constexpr std::size_t kFirst = offsetof(seccomp_data, args);
  // The lower halves of arguments: both architectures are little-endian.
  const std::array rest{
      unless(SYS_socket, 4),
      load(kFirst),
      unless(AF_UNIX, 1),
      end(refusal(EACCES)),
      end(SECCOMP_RET_ALLOW),
      unless(SYS_socketpair, 4),
      load(kFirst + sizeof(std::uint64_t)),
      sock_filter{BPF_ALU | BPF_AND | BPF_K, 0, 0, kKindOfSocket},
      unless(SOCK_DGRAM, 1),
      end(refusal(EACCES)),
      end(SECCOMP_RET_ALLOW),
  };
  filter.insert(filter.end(), rest.begin(), rest.end());
  return filter;
}

Status filter_calls(bool changes_nothing) {
  if (kOwnArchitecture == 0) return {};
  std::vector<sock_filter> filter = filter_of_calls(changes_nothing);
  const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
  if (::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
    return fail_errno("prctl(PR_SET_SECCOMP)");
  return {};
}

// Landlock (landlock(7)) by raw calls, as in worker/hardening.cpp.
struct VerifierRules {
  std::uint64_t files;
  std::uint64_t network;
  std::uint64_t scope;
};
struct [[gnu::packed]] FileRule {
  std::uint64_t allowed;
  std::int32_t parent;
};
constexpr long kMakeRuleset = 444;
constexpr long kAddRule = 445;
constexpr long kRestrictItself = 446;
constexpr unsigned kGiveVersion = 1;
constexpr int kBeneathPath = 1;
/// The first version under which a file cannot be cut short either.
constexpr long kVersionWithTruncate = 3;
constexpr long kVersionWithScope = 6;

constexpr std::uint64_t kWriteFile = std::uint64_t{1} << 1;
constexpr std::uint64_t kTruncate = std::uint64_t{1} << 14;
/// Writing, and removing, making and moving anything (bits 4 to 14).
constexpr std::uint64_t kAllChanges = kWriteFile | ((std::uint64_t{1} << 15) - (1U << 4));

Status allow_null_device(int ruleset) {
  const Fd null(::open("/dev/null", O_PATH | O_CLOEXEC));
  if (!null) return fail_errno("open /dev/null");
  const FileRule rule{kWriteFile | kTruncate, null.get()};
  if (::syscall(kAddRule, ruleset, kBeneathPath, &rule, 0) != 0)
    return fail_errno("landlock_add_rule");
  return {};
}

/// Empty: this kernel has nothing to offer.
Result<Fd> rules_for_files_and_signals(bool writes_nothing) {
  const long version = ::syscall(kMakeRuleset, nullptr, 0, kGiveVersion);
  if (writes_nothing && version < kVersionWithTruncate)
    return fail(Errc::kDenied,
                "it would be the manager's user, and this kernel's Landlock cannot keep it from "
                "writing the store: give 'server.worker-user' a user of its own, and start the "
                "manager as root or by its unit");
  VerifierRules rules{};
  if (writes_nothing) rules.files = kAllChanges;
  constexpr std::uint64_t kAbstractSocketsAndSignals = 3;
  if (version >= kVersionWithScope) rules.scope = kAbstractSocketsAndSignals;
  if (rules.files == 0 && rules.scope == 0) return Fd();
  const std::size_t bytes = sizeof(std::uint64_t) * (version >= kVersionWithScope ? 3 : 1);
  Fd ruleset(static_cast<int>(::syscall(kMakeRuleset, &rules, bytes, 0)));
  if (!ruleset) return fail_errno("landlock_create_ruleset");
  if (writes_nothing)
    if (auto allowed = allow_null_device(ruleset.get()); !allowed) return pass(allowed);
  return ruleset;
}

/// The manager's own values are for a process with many files that the kernel shall spare.
void take_usual_limits() {
  if (const Fd score(::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC)); score)
      [[maybe_unused]]
    const auto written = ::write(score.get(), "0", 1);
  constexpr rlim_t kUsualFiles = 1024;
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max = std::min(files.rlim_max, kUsualFiles);
    ::setrlimit(RLIMIT_NOFILE, &files);
  }
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
}

}  // namespace

Result<Fd> confine_verifier(const std::string& user) {
  take_usual_limits();
  if (!user.empty())
    if (auto changed = ipc::become_user(user, ipc::Keep::kNothing); !changed) return pass(changed);
  if (auto dropped = ipc::drop_capabilities(ipc::Keep::kNothing); !dropped) return pass(dropped);
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
    return fail_errno("prctl(PR_SET_NO_NEW_PRIVS)");
  auto rules = rules_for_files_and_signals(user.empty());
  if (!rules) return rules;
  if (auto filtered = filter_calls(user.empty()); !filtered) return pass(filtered);
  return rules;
}

int confine_program(const Fd& rules) noexcept {
  if (!rules || ::syscall(kRestrictItself, rules.get(), 0) == 0) return 0;
  return errno;
}

}  // namespace pando::manager
