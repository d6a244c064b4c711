#include "manager/verifier/verifier_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <span>

#include "base/fd.h"
#include "base/whole_number.h"
#include "ipc/packet_socket.h"
#include "ipc/privileges.h"
#include "ipc/codec/wire.h"
#include "manager/verifier/confinement.h"

namespace pando::manager {

namespace {

constexpr int kLink = 3;

struct ProgramCommand {
  std::vector<std::string> environment;
  std::vector<std::string> words;
};

/// From the words after USER. kInvalid: no program is named.
Result<ProgramCommand> command_from(std::span<const std::string> words) {
  const auto variables = words.empty() ? std::nullopt : whole_number<std::uint32_t>(words[0]);
  if (!variables || words.size() - 1 <= *variables)
    return fail(Errc::kInvalid, "not a verifier's words");
  const auto program = words.begin() + 1 + *variables;
  return ProgramCommand{{words.begin() + 1, program}, {program, words.end()}};
}

/// Pointers for exec, valid as long as the texts.
std::vector<char*> pointers_of(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const auto& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

/// The program, and everything that it starts. Processes whose parents have ended become children
/// of this one (PR_SET_CHILD_SUBREAPER), so none escapes by a second fork or another session.
class Program {
 public:
  /// Signals SIGCHLD are taken by a descriptor from here on.
  Status start(const ProgramCommand& command, const Fd& rules);
  /// Until the program has ended, or the manager has closed the link: nullopt.
  std::optional<VerifierEnd> wait();
  void kill_all();

 private:
  struct Beginning {
    const ProgramCommand& command;
    const Fd& rules;
    pid_t parent;
    int failed;  // descriptor for errno
  };
  [[noreturn]] static void become(const Beginning& beginning);
  /// False: this process has no children left.
  bool reap();

  Fd signals_;
  pid_t pid_ = 0;
  std::optional<int> status_;
};

Status Program::start(const ProgramCommand& command, const Fd& rules) {
  sigset_t child;
  ::sigemptyset(&child);
  ::sigaddset(&child, SIGCHLD);
  ::sigprocmask(SIG_BLOCK, &child, nullptr);
  signals_ = Fd(::signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals_) return fail_errno("signalfd");
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0)
    return fail_errno("prctl(PR_SET_CHILD_SUBREAPER)");
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno("pipe2");
  const Fd outcome(ends[0]);
  Fd failed(ends[1]);
  const pid_t parent = ::getpid();
  pid_ = ::fork();  // of a process with one thread
  if (pid_ < 0) return fail_errno("fork");
  if (pid_ == 0) become({command, rules, parent, failed.get()});
  failed.reset();
  int error = 0;
  if (::read(outcome.get(), &error, sizeof error) == sizeof error)  // else exec has closed it
    return fail(Errc::kNotFound, "{}", std::strerror(error));
  return {};
}

void Program::become(const Beginning& beginning) {
  const std::vector<char*> arguments = pointers_of(beginning.command.words);
  const std::vector<char*> environment = pointers_of(beginning.command.environment);
  ::setsid();
  ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  if (::getppid() != beginning.parent) ::_exit(1);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  int error = confine_program(beginning.rules);
  if (error == 0) {
    ::execve(arguments[0], arguments.data(), environment.data());
    error = errno;
  }
  [[maybe_unused]] const auto told = ::write(beginning.failed, &error, sizeof error);
  ::_exit(1);
}

bool Program::reap() {
  int status = 0;
  pid_t ended = 0;
  while ((ended = ::waitpid(-1, &status, WNOHANG)) > 0)
    if (ended == pid_) status_ = status;
  return ended == 0;
}

std::optional<VerifierEnd> Program::wait() {
  using Kind = VerifierEnd::Kind;
  for (;;) {
    pollfd watched[]{{kLink, POLLIN, 0}, {signals_.get(), POLLIN, 0}};
    if (::poll(watched, 2, -1) < 0 && errno != EINTR) return std::nullopt;
    if (watched[0].revents != 0) return std::nullopt;
    signalfd_siginfo ignored{};
    while (::read(signals_.get(), &ignored, sizeof ignored) > 0) {
    }
    reap();
    if (!status_) continue;
    if (WIFSIGNALED(*status_))
      return VerifierEnd{Kind::kSignalled, static_cast<std::uint32_t>(WTERMSIG(*status_))};
    return VerifierEnd{Kind::kExited, static_cast<std::uint32_t>(WEXITSTATUS(*status_))};
  }
}

/// Orphans become children only when their parents have ended, hence the rounds. A process that
/// hangs in the kernel is left to it.
void Program::kill_all() {
  constexpr int kMaxReapRounds = 1000;
  constexpr int kBetweenMs = 10;
  for (int round = 0; round < kMaxReapRounds && reap(); ++round) {
    std::ifstream children("/proc/thread-self/children");
    if (!children) ::kill(-pid_, SIGKILL);  // a kernel without that file: all but other sessions
    for (pid_t child = 0; children >> child;) ::kill(child, SIGKILL);
    pollfd ended{signals_.get(), POLLIN, 0};
    ::poll(&ended, 1, kBetweenMs);
    signalfd_siginfo ignored{};
    while (::read(signals_.get(), &ignored, sizeof ignored) > 0) {
    }
  }
}

void report_end(const VerifierEnd& end) {
  [[maybe_unused]] const auto sent = ipc::send_packet(kLink, encode(end), {});
}

}  // namespace

Bytes encode(const VerifierEnd& end) {
  Bytes packet;
  ipc::Encoder out(packet);
  out.u8(static_cast<std::uint8_t>(end.kind));
  out.u32(end.value);
  out.text(end.reason);
  return packet;
}

Result<VerifierEnd> decode_verifier_end(ByteView packet) {
  ipc::Decoder in(packet);
  VerifierEnd end;
  end.kind = static_cast<VerifierEnd::Kind>(
      in.choice(static_cast<std::uint8_t>(VerifierEnd::Kind::kNotStarted)));
  end.value = in.u32();
  end.reason = in.text();
  if (auto whole = in.finish(); !whole) return pass(whole);
  return end;
}

int run_verifier(const std::vector<std::string>& words) {
  ::fcntl(kLink, F_SETFD, FD_CLOEXEC);
  // Inherited descriptors of the starter are not for the program.
  ::syscall(SYS_close_range, kLink + 1, ~0U, 0);
  const auto command =
      words.empty() ? Result<ProgramCommand>(fail(Errc::kInvalid, "no user"))
                    : command_from(std::span(words).subspan(1));
  if (!command) return 2;
  ::setsid();  // a Ctrl-C for the manager's terminal is not for this process
  const auto refuse = [](const Error& error) {
    report_end({VerifierEnd::Kind::kNotStarted, 0, error.text});
    return 1;
  };
  const auto rules = confine_verifier(words[0]);
  if (!rules) return refuse(rules.error());
  if (auto closed = ipc::forbid_inspection(); !closed) return refuse(closed.error());
  if (::chdir("/") != 0) return 1;
  Program program;
  if (auto begun = program.start(*command, *rules); !begun) {
    program.kill_all();
    return refuse(begun.error());
  }
  // The ends of the pipes are the program's alone: it sees when the manager stops reading.
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::close(standard);
  const auto end = program.wait();
  program.kill_all();
  if (end) report_end(*end);
  return 0;
}

}  // namespace pando::manager
