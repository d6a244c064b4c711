#include "ctl/upgrade/processes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <systemd/sd-login.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>

extern char** environ;

namespace pando::ctl {

namespace {

struct FileActions {
  FileActions() { ::posix_spawn_file_actions_init(&value); }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;
  ~FileActions() { ::posix_spawn_file_actions_destroy(&value); }
  posix_spawn_file_actions_t value{};
};

struct SpawnAttributes {
  SpawnAttributes() { ::posix_spawnattr_init(&value); }
  SpawnAttributes(const SpawnAttributes&) = delete;
  SpawnAttributes& operator=(const SpawnAttributes&) = delete;
  ~SpawnAttributes() { ::posix_spawnattr_destroy(&value); }
  posix_spawnattr_t value{};
};

Result<pid_t> spawn(const std::vector<std::string>& command, const FileActions& actions,
                    const SpawnAttributes& attributes) {
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  pid_t pid = 0;
  const int error =
      ::posix_spawnp(&pid, words[0], &actions.value, &attributes.value, words.data(), environ);
  if (error != 0) return fail(Errc::kIo, "cannot run {}: {}", command[0], std::strerror(error));
  return pid;
}

int exit_code_of(int wait_status) {
  return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status);
}

struct FreeText {
  void operator()(char* text) const noexcept { ::free(text); }
};
using OwnedText = std::unique_ptr<char, FreeText>;
/// More than systemctl says of one property.
constexpr std::size_t kMaxOutput = 4096;

Status ended_well(pid_t pid, const std::string& program) {
  int wait_status = 0;
  while (::waitpid(pid, &wait_status, 0) < 0)
    if (errno != EINTR) return fail_errno("waitpid");
  if (const int code = exit_code_of(wait_status); code != 0)
    return fail(Errc::kIo, "{} ended with exit code {}", program, code);
  return {};
}

void silence(FileActions& actions, int descriptor) {
  ::posix_spawn_file_actions_addopen(&actions.value, descriptor, "/dev/null", O_WRONLY, 0);
}

Status run_to_end(const std::vector<std::string>& command, FileActions& actions) {
  ::posix_spawn_file_actions_addopen(&actions.value, 0, "/dev/null", O_RDONLY, 0);
  auto pid = spawn(command, actions, SpawnAttributes());
  if (!pid) return pass(pid);
  return ended_well(*pid, command[0]);
}

/// Runs a program to its end and returns its standard output without the last line end.
Result<std::string> output_of(const std::vector<std::string>& command) {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno("pipe2");
  const Fd reader(ends[0]);
  Fd writer(ends[1]);
  FileActions actions;
  ::posix_spawn_file_actions_addopen(&actions.value, 0, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions.value, writer.get(), 1);
  auto pid = spawn(command, actions, SpawnAttributes());
  if (!pid) return pass(pid);
  writer.reset();
  std::string text;
  std::array<char, kMaxOutput> buffer{};
  for (ssize_t size; (size = ::read(reader.get(), buffer.data(), buffer.size())) > 0;)
    if (text.size() < kMaxOutput) text.append(buffer.data(), static_cast<std::size_t>(size));
  if (auto ended = ended_well(*pid, command[0]); !ended) return pass(ended);
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

}  // namespace

Status run_program(const std::vector<std::string>& command) {
  FileActions actions;
  silence(actions, 1);
  return run_to_end(command, actions);
}

Status run_silently(const std::vector<std::string>& command) {
  FileActions actions;
  silence(actions, 1);
  silence(actions, 2);
  return run_to_end(command, actions);
}

Result<StartedProgram> StartedProgram::start(const std::vector<std::string>& command,
                                             const Fd& log) {
  FileActions actions;
  ::posix_spawn_file_actions_addopen(&actions.value, 0, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions.value, log.get(), 1);
  ::posix_spawn_file_actions_adddup2(&actions.value, log.get(), 2);
  SpawnAttributes attributes;
  ::posix_spawnattr_setflags(&attributes.value, POSIX_SPAWN_SETSID);
  auto pid = spawn(command, actions, attributes);
  if (!pid) return pass(pid);
  return StartedProgram(*pid);
}

std::optional<int> StartedProgram::exit_code() {
  int wait_status = 0;
  if (!exit_code_ && ::waitpid(pid_, &wait_status, WNOHANG) == pid_)
    exit_code_ = exit_code_of(wait_status);
  return exit_code_;
}

Result<std::string> unit_of(pid_t pid) {
  char* found = nullptr;
  if (::sd_pid_get_unit(pid, &found) < 0) return std::string();
  const OwnedText unit(found);
  const std::string name = unit.get();
  if (!name.ends_with(".service")) return std::string();
  // Of root it needs no message bus, which small containers do not have.
  const auto main_process = output_of({"systemctl", "show", "--property=MainPID", "--value", name});
  if (!main_process)
    return fail(Errc::kIo, "process {} is of {}, of which systemd tells nothing: {}", pid, name,
                main_process.error().text);
  return *main_process == std::to_string(pid) ? name : std::string();
}

Status set_until_next_reading(const std::string& unit, const std::string& settings) {
  // The name comes after those of other drop-ins, so that these settings are the last.
  const std::filesystem::path folder = "/run/systemd/system/" + unit + ".d";
  const std::filesystem::path file = folder / "zz-pandoctl.conf";
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (std::ofstream out(file); !(out << settings << std::flush))
    return fail(Errc::kIo, "cannot write {}", file.string());
  auto read = run_program({"systemctl", "daemon-reload"});
  std::filesystem::remove(file, error);
  std::filesystem::remove(folder, error);  // unless somebody else has settings there
  return read;
}

Result<std::string> program_of(pid_t pid) {
  std::array<char, PATH_MAX> path{};
  const std::string link = fmt::format("/proc/{}/exe", pid);
  const ssize_t size = ::readlink(link.c_str(), path.data(), path.size());
  if (size < 0) return fail_errno("cannot read " + link);
  std::string program(path.data(), static_cast<std::size_t>(size));
  constexpr std::string_view kReplaced = " (deleted)";
  if (program.ends_with(kReplaced)) program.resize(program.size() - kReplaced.size());
  return program;
}

Result<Fd> descriptor_of(const Fd& pidfd, int number) {
  Fd copy(static_cast<int>(::syscall(SYS_pidfd_getfd, pidfd.get(), number, 0)));
  struct statfs system{};
  struct stat file{};
  if (!copy || ::fstatfs(copy.get(), &system) != 0 || ::fstat(copy.get(), &file) != 0)
    return fail_errno("pidfd_getfd");
  // A line that root writes to a socket or to a file of the kernel has root's rights there.
  const bool takes_lines = S_ISREG(file.st_mode) || S_ISFIFO(file.st_mode) || S_ISCHR(file.st_mode);
  if (!takes_lines || system.f_type == PROC_SUPER_MAGIC || system.f_type == SYSFS_MAGIC)
    return fail(Errc::kDenied, "descriptor {} is no file, pipe or terminal", number);
  return copy;
}

Result<uid_t> user_of(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/status", pid));
  for (std::string word; file >> word;) {
    uid_t real = 0;
    uid_t effective = 0;
    if (word == "Uid:" && file >> real >> effective) return effective;
  }
  return fail(Errc::kNotFound, "process {} has ended", pid);
}

}  // namespace pando::ctl
