#include "ctl/upgrade/processes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-login.h>

#include <cstring>
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
struct CloseBus {
  void operator()(sd_bus* bus) const noexcept { ::sd_bus_flush_close_unref(bus); }
};

/// 0: systemd cannot be asked, or the unit has no main process.
std::uint32_t main_process(const char* unit) {
  sd_bus* opened = nullptr;
  if (::sd_bus_open_system(&opened) < 0) return 0;
  const std::unique_ptr<sd_bus, CloseBus> bus(opened);
  char* encoded = nullptr;
  if (::sd_bus_path_encode("/org/freedesktop/systemd1/unit", unit, &encoded) < 0) return 0;
  const OwnedText path(encoded);
  std::uint32_t pid = 0;
  const int got = ::sd_bus_get_property_trivial(
      bus.get(), "org.freedesktop.systemd1", path.get(), "org.freedesktop.systemd1.Service",
      "MainPID", nullptr, 'u', &pid);
  return got < 0 ? 0 : pid;
}

}  // namespace

Status run_program(const std::vector<std::string>& command) {
  FileActions actions;
  ::posix_spawn_file_actions_addopen(&actions.value, 0, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&actions.value, 1, "/dev/null", O_WRONLY, 0);
  auto pid = spawn(command, actions, SpawnAttributes());
  if (!pid) return pass(pid);
  int wait_status = 0;
  while (::waitpid(*pid, &wait_status, 0) < 0)
    if (errno != EINTR) return fail_errno("waitpid");
  if (const int code = exit_code_of(wait_status); code != 0)
    return fail(Errc::kIo, "{} ended with exit code {}", command[0], code);
  return {};
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

std::string unit_of(pid_t pid) {
  char* found = nullptr;
  if (::sd_pid_get_unit(pid, &found) < 0) return {};
  const OwnedText unit(found);
  return main_process(unit.get()) == static_cast<std::uint32_t>(pid) ? unit.get() : "";
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
