#include "manager/launch/launcher.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>

#include "ipc/privileges.h"
#include "ipc/codec/wire.h"

extern char** environ;

namespace pando::manager {

namespace {

/// The environment of a process that is to give up rights: the loader of programs obeys variables
/// such as LD_PRELOAD before the process can give up anything.
char* kNoEnvironment[] = {nullptr};

/// Signals are the manager's own business: the worker starts with defaults and nothing blocked.
class SpawnAttributes {
 public:
  SpawnAttributes() {
    ::posix_spawnattr_init(&attributes_);
    sigset_t all;
    sigset_t none;
    ::sigfillset(&all);
    ::sigemptyset(&none);
    ::posix_spawnattr_setsigdefault(&attributes_, &all);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  }
  ~SpawnAttributes() { ::posix_spawnattr_destroy(&attributes_); }
  SpawnAttributes(const SpawnAttributes&) = delete;
  SpawnAttributes& operator=(const SpawnAttributes&) = delete;
  [[nodiscard]] const posix_spawnattr_t* get() const { return &attributes_; }

 private:
  posix_spawnattr_t attributes_;
};

/// Pointers for exec, valid as long as the texts.
std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const auto& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

Result<Child> spawn_process(const std::vector<std::string>& words,
                            const posix_spawn_file_actions_t* actions,
                            char* const* environment) {
  const SpawnAttributes attributes;
  Child child;
  const int failed = ::posix_spawn(&child.pid, words[0].c_str(), actions, attributes.get(),
                                   pointers_to(words).data(), environment);
  if (failed != 0) {
    errno = failed;
    return fail_errno(fmt::format("posix_spawn {}", words[0]));
  }
  // Nobody reaps the child before this line, so its pid is its own.
  child.pidfd = Fd(static_cast<int>(::syscall(SYS_pidfd_open, child.pid, 0)));
  if (!child.pidfd) return fail_errno("pidfd_open");
  return child;
}

// Requests to the launcher: one packet each; the answer is an byte (0 = done), and for a failure
// the error's text. Words of a packet: u8 what, then the fields.
enum class Ask : std::uint8_t { kCommand = 1, kSpawn = 2, kSignal = 3, kVerifier = 4, kTls = 5 };

void put_texts(ipc::Encoder& out, const std::vector<std::string>& texts) {
  out.u32(static_cast<std::uint32_t>(texts.size()));
  for (const std::string& text : texts) out.text(text);
}

std::vector<std::string> take_texts(ipc::Decoder& in) {
  std::vector<std::string> texts;
  for (std::size_t left = in.count(sizeof(std::uint32_t)); left > 0; --left)
    texts.push_back(in.text());
  return texts;
}

Status wait_readable(int socket) {
  pollfd ready{socket, POLLIN, 0};
  constexpr int kTimeoutMs = 5000;
  const int count = ::poll(&ready, 1, kTimeoutMs);
  if (count < 0) return fail_errno("poll");
  if (count == 0) return fail(Errc::kIo, "the launcher does not answer");
  return {};
}

/// Uid of the process behind a pidfd, by its pid; the pidfd keeps the pid from being reused while
/// it is not reaped.
Result<std::uint32_t> owner_of(int pidfd) {
  std::ifstream info(fmt::format("/proc/self/fdinfo/{}", pidfd));
  std::string word;
  long pid = -1;
  while (info >> word)
    if (word == "Pid:") info >> pid;
  if (pid <= 0) return fail(Errc::kNotFound, "no such process");
  std::ifstream status(fmt::format("/proc/{}/status", pid));
  std::uint32_t uid = 0;
  while (status >> word)
    if (word == "Uid:" && status >> uid) return uid;
  return fail(Errc::kNotFound, "process {} has gone", pid);
}

/// The process that the launcher has started.
Result<Child> child_of(Result<ipc::Packet> answer) {
  if (!answer) return pass(answer);
  ipc::Decoder in(answer->data);
  in.boolean();
  Child child;
  child.pid = static_cast<pid_t>(in.u32());
  if (auto whole = in.finish(); !whole) return pass(whole);
  if (answer->descriptors.size() != 1) return fail(Errc::kInvalid, "the launcher sent no pidfd");
  child.pidfd = std::move(answer->descriptors[0]);
  return child;
}

/// The launcher's own side.
class LauncherProcess {
 public:
  explicit LauncherProcess(Fd socket) : socket_(std::move(socket)) {}

  int run() {
    for (;;) {
      std::vector<pollfd> watched{{socket_.get(), POLLIN, 0}};
      for (const auto& child : children_) watched.push_back({child.get(), POLLIN, 0});
      if (::poll(watched.data(), watched.size(), -1) < 0 && errno != EINTR) return 1;
      reap();
      ipc::Packet request;
      auto got = ipc::receive_packet(socket_.get(), request);
      if (!got) return got.error().code == Errc::kNotFound ? 0 : 1;
      if (*got) answer(request);
    }
  }

 private:
  void reap() {
    std::erase_if(children_, [](const Fd& child) {
      siginfo_t info{};
      return ::waitid(static_cast<idtype_t>(P_PIDFD), static_cast<id_t>(child.get()), &info,
                      WEXITED | WNOHANG) != 0 ||
             info.si_pid != 0;
    });
  }

  void answer(const ipc::Packet& request) {
    ipc::Decoder in(request.data);
    Status done = fail(Errc::kInvalid, "unknown request");
    std::vector<int> descriptors;
    Bytes reply;
    ipc::Encoder out(reply);
    out.boolean(false);
    switch (static_cast<Ask>(in.u8())) {
      case Ask::kCommand:
        done = take_command(in);
        break;
      case Ask::kSpawn:
        done = spawn_one(in, out, descriptors);
        break;
      case Ask::kSignal:
        done = signal_one(in, request);
        break;
      case Ask::kTls:
        done = spawn_one_tls(in, out, descriptors);
        break;
      case Ask::kVerifier:
        done = spawn_a_verifier(in, request, out, descriptors);
        break;
    }
    if (!done) {
      reply.clear();
      out.boolean(true);
      out.text(done.error().text);
      descriptors.clear();
    }
    [[maybe_unused]] const auto sent = ipc::send_packet(socket_.get(), reply, descriptors);
  }

  /// Taken once, from the manager that is still root: afterwards the program cannot be changed.
  Status take_command(ipc::Decoder& in) {
    WorkerCommand command{in.text(), in.text(), in.text(), in.text()};
    if (auto whole = in.finish(); !whole) return whole;
    if (!command_.binary.empty()) return fail(Errc::kDenied, "the command is set already");
    auto uid = ipc::user_id(command.user);
    if (!uid) return pass(uid);
    worker_uid_ = *uid;
    command_ = std::move(command);
    return {};
  }

  Status spawn_one(ipc::Decoder& in, ipc::Encoder& out, std::vector<int>& descriptors) {
    const std::uint32_t slot = in.u32();
    const bool pinned = in.boolean();
    const std::uint32_t cpu = in.u32();
    if (auto whole = in.finish(); !whole) return whole;
    return tell(spawn_worker(command_, slot, pinned ? std::optional(cpu) : std::nullopt), out,
                descriptors);
  }

  Status spawn_one_tls(ipc::Decoder& in, ipc::Encoder& out, std::vector<int>& descriptors) {
    const std::uint32_t slot = in.u32();
    if (auto whole = in.finish(); !whole) return whole;
    return tell(manager::spawn_tls(command_, slot), out, descriptors);
  }

  /// The manager chooses the program, and never its user: the new process only counts the words
  /// before it gives up this one's rights. Variables are words, too, because variables of the new
  /// process itself would have an effect while it has these rights.
  Status spawn_a_verifier(ipc::Decoder& in, const ipc::Packet& request, ipc::Encoder& out,
                          std::vector<int>& descriptors) {
    VerifierCommand command{command_.user, take_texts(in), take_texts(in)};
    if (auto whole = in.finish(); !whole) return whole;
    VerifierDescriptors given{};
    if (command_.user.empty() || command.words.empty() ||
        request.descriptors.size() != given.size())
      return fail(Errc::kInvalid, "not a verifier");
    for (std::size_t i = 0; i < given.size(); ++i) given[i] = request.descriptors[i].get();
    return tell(manager::spawn_verifier(command, given), out, descriptors);
  }

  Status tell(Result<Child> child, ipc::Encoder& out, std::vector<int>& descriptors) {
    if (!child) return pass(child);
    out.u32(static_cast<std::uint32_t>(child->pid));
    descriptors.push_back(child->pidfd.get());
    children_.push_back(std::move(child->pidfd));
    return {};
  }

  Status signal_one(ipc::Decoder& in, const ipc::Packet& request) const {
    const auto number = static_cast<int>(in.u32());
    if (auto whole = in.finish(); !whole) return whole;
    if (request.descriptors.size() != 1) return fail(Errc::kInvalid, "no pidfd");
    const int pidfd = request.descriptors[0].get();
    auto owner = owner_of(pidfd);
    if (!owner) return pass(owner);
    if (*owner != worker_uid_) return fail(Errc::kDenied, "not a process of the worker's user");
    return send_as_workers_user(pidfd, number);
  }

  /// Without CAP_KILL a signal goes to processes of the sender's user, so the launcher is the
  /// workers' user for that moment.
  Status send_as_workers_user(int pidfd, int number) const {
    const uid_t own = ::geteuid();
    if (::seteuid(worker_uid_) != 0) return fail_errno("seteuid");
    const bool sent = ::syscall(SYS_pidfd_send_signal, pidfd, number, nullptr, 0) == 0;
    Status done = sent ? Status() : fail_errno("pidfd_send_signal");
    if (::seteuid(own) != 0) return fail_errno("seteuid back");
    return done;
  }

  Fd socket_;
  WorkerCommand command_;
  std::uint32_t worker_uid_ = 0;
  std::vector<Fd> children_;
};

}  // namespace

bool has_ended(const Fd& pidfd) noexcept {
  pollfd ended{pidfd.get(), POLLIN, 0};
  return ::poll(&ended, 1, 0) != 0;
}

std::string reap(int pidfd) {
  siginfo_t info{};
  if (::waitid(static_cast<idtype_t>(P_PIDFD), static_cast<id_t>(pidfd), &info,
               WEXITED | WNOHANG) != 0 ||
      info.si_pid == 0)
    return "unknown";
  return fmt::format("{} {}", info.si_code == CLD_EXITED ? "exit" : "signal", info.si_status);
}

namespace {

/// The program of this name beside the running program.
std::string neighbour(const char* name) {
  char path[4096];
  const ssize_t length = ::readlink("/proc/self/exe", path, sizeof path);
  const std::string own(path, length > 0 ? static_cast<std::size_t>(length) : 0);
  return own.substr(0, own.rfind('/') + 1) + name;
}

}  // namespace

std::string worker_binary(const std::string& configured) {
  return configured.empty() ? neighbour("pando-worker") : configured;
}

std::string tls_binary() { return neighbour("pando-tls"); }

Result<Child> spawn_tls(const WorkerCommand& command, std::uint32_t slot) {
  std::vector<std::string> words{command.tls_binary, "--slot", fmt::format("{}", slot),
                                 "--run-directory", command.run_directory};
  if (!command.user.empty()) words.insert(words.end(), {"--user", command.user});
  return spawn_process(words, nullptr, environ);
}

Result<Child> spawn_worker(const WorkerCommand& command, std::uint32_t slot,
                           std::optional<std::uint32_t> cpu) {
  std::vector<std::string> words{command.binary, "--slot", fmt::format("{}", slot),
                                 "--run-directory", command.run_directory};
  if (!command.user.empty()) words.insert(words.end(), {"--user", command.user});
  if (cpu) words.insert(words.end(), {"--cpu", fmt::format("{}", *cpu)});
  return spawn_process(words, nullptr, environ);
}

Result<Child> spawn_verifier(const VerifierCommand& command,
                             const VerifierDescriptors& descriptors) {
  std::vector<std::string> words{"/proc/self/exe", "--verifier", command.user,
                                 fmt::format("{}", command.environment.size())};
  words.insert(words.end(), command.environment.begin(), command.environment.end());
  words.insert(words.end(), command.words.begin(), command.words.end());
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  for (std::size_t i = 0; i < descriptors.size(); ++i)
    ::posix_spawn_file_actions_adddup2(&actions, descriptors[i], static_cast<int>(i));
  auto child = spawn_process(words, &actions, kNoEnvironment);
  ::posix_spawn_file_actions_destroy(&actions);
  return child;
}

Result<ipc::Packet> Launcher::ask(const Bytes& request, const std::vector<int>& descriptors) const {
  const std::lock_guard turn(*one_at_a_time_);
  const int socket = socket_.get();
  auto sent = ipc::send_packet(socket, request, descriptors);
  if (!sent) return pass(sent);
  if (auto ready = wait_readable(socket); !ready) return pass(ready);
  ipc::Packet answer;
  auto got = ipc::receive_packet(socket, answer);
  if (!got) return pass(got);
  ipc::Decoder in(answer.data);
  const bool failed = in.boolean();
  if (!failed && !in.failed()) return answer;
  return fail(Errc::kIo, "launcher: {}", in.text());
}

Result<Launcher> Launcher::start(const WorkerCommand& command) {
  auto pair = ipc::packet_pair();
  if (!pair) return pass(pair);
  // dup2 onto itself clears O_CLOEXEC for this one descriptor in this one child.
  const int theirs = pair->second.get();
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, theirs, theirs);
  // The manager's user has no influence yet: the variables are those that the manager began with.
  auto child =
      spawn_process({"/proc/self/exe", "--launcher", fmt::format("{}", theirs)}, &actions, environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (!child) return pass(child);
  Launcher launcher(std::move(pair->first));
  Bytes request;
  ipc::Encoder out(request);
  out.u8(static_cast<std::uint8_t>(Ask::kCommand));
  out.text(command.binary);
  out.text(command.run_directory);
  out.text(command.user);
  out.text(command.tls_binary);
  if (auto told = launcher.ask(request, {}); !told) return pass(told);
  return launcher;
}

Result<Child> Launcher::spawn(std::uint32_t slot, std::optional<std::uint32_t> cpu) const {
  Bytes request;
  ipc::Encoder out(request);
  out.u8(static_cast<std::uint8_t>(Ask::kSpawn));
  out.u32(slot);
  out.boolean(cpu.has_value());
  out.u32(cpu.value_or(0));
  return child_of(ask(request, {}));
}

Result<Child> Launcher::spawn_tls(std::uint32_t slot) const {
  Bytes request;
  ipc::Encoder out(request);
  out.u8(static_cast<std::uint8_t>(Ask::kTls));
  out.u32(slot);
  return child_of(ask(request, {}));
}

Result<Child> Launcher::spawn_verifier(const VerifierCommand& command,
                                       const VerifierDescriptors& descriptors) const {
  Bytes request;
  ipc::Encoder out(request);
  out.u8(static_cast<std::uint8_t>(Ask::kVerifier));
  put_texts(out, command.words);
  put_texts(out, command.environment);
  return child_of(ask(request, {descriptors.begin(), descriptors.end()}));
}

Status Launcher::signal(int pidfd, int signal_number) const {
  Bytes request;
  ipc::Encoder out(request);
  out.u8(static_cast<std::uint8_t>(Ask::kSignal));
  out.u32(static_cast<std::uint32_t>(signal_number));
  auto answer = ask(request, {pidfd});
  if (!answer) return pass(answer);
  return {};
}

Status kill_process(int pidfd, const Launcher* launcher) {
  if (::syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, nullptr, 0) == 0) return {};
  if (launcher == nullptr) return fail_errno("pidfd_send_signal");
  return launcher->signal(pidfd, SIGKILL);
}

int run_launcher(int socket) {
  ::fcntl(socket, F_SETFD, FD_CLOEXEC);
  // A Ctrl-C for the manager's terminal must not end the launcher before the workers are stopped.
  ::signal(SIGINT, SIG_IGN);
  ::signal(SIGTERM, SIG_IGN);
  ::signal(SIGHUP, SIG_IGN);
  if (auto closed = ipc::forbid_inspection(); !closed) return 1;
  return LauncherProcess(Fd(socket)).run();
}

}  // namespace pando::manager
