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

#include "base/fd.h"
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

/// Sockets of AF_UNIX are refused, and the ways around this filter: another architecture's calls,
/// and io_uring, which opens sockets without a call of that name.
Status forbid_local_sockets() {
  if (kOwnArchitecture == 0) return {};
  constexpr auto load = [](std::size_t offset) {
    return sock_filter{BPF_LD | BPF_W | BPF_ABS, 0, 0, static_cast<std::uint32_t>(offset)};
  };
  constexpr auto unless = [](std::uint32_t value, std::uint8_t skip) {
    return sock_filter{BPF_JMP | BPF_JEQ | BPF_K, 0, skip, value};
  };
  constexpr auto end = [](std::uint32_t action) {
    return sock_filter{BPF_RET | BPF_K, 0, 0, action};
  };
  std::array filter{
      load(offsetof(seccomp_data, arch)),
      sock_filter{BPF_JMP | BPF_JEQ | BPF_K, 1, 0, kOwnArchitecture},
      end(refusal(EPERM)),
      load(offsetof(seccomp_data, nr)),
      sock_filter{BPF_JMP | BPF_JGE | BPF_K, 0, 1, kFirstOfX32},
      end(refusal(EPERM)),
      unless(SYS_io_uring_setup, 1),
      end(refusal(EPERM)),
      unless(SYS_socket, 3),
      load(offsetof(seccomp_data, args)),  // the lower half: both architectures are little-endian
      unless(AF_UNIX, 1),
      end(refusal(EACCES)),
      end(SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{filter.size(), filter.data()};
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

Status restrict_files_and_signals(bool writes_nothing) {
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
  if (rules.files == 0 && rules.scope == 0) return {};
  const std::size_t bytes = sizeof(std::uint64_t) * (version >= kVersionWithScope ? 3 : 1);
  const Fd ruleset(static_cast<int>(::syscall(kMakeRuleset, &rules, bytes, 0)));
  if (!ruleset) return fail_errno("landlock_create_ruleset");
  if (writes_nothing)
    if (auto allowed = allow_null_device(ruleset.get()); !allowed) return allowed;
  if (::syscall(kRestrictItself, ruleset.get(), 0) != 0)
    return fail_errno("landlock_restrict_self");
  return {};
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

Status confine_verifier(const std::string& user) {
  take_usual_limits();
  if (!user.empty())
    if (auto changed = ipc::become_user(user, ipc::Keep::kNothing); !changed) return changed;
  if (auto dropped = ipc::drop_capabilities(ipc::Keep::kNothing); !dropped) return dropped;
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
    return fail_errno("prctl(PR_SET_NO_NEW_PRIVS)");
  if (auto restricted = restrict_files_and_signals(user.empty()); !restricted) return restricted;
  return forbid_local_sockets();
}

}  // namespace pando::manager
