#include "manager/launch/adopted_worker.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "base/whole_number.h"

namespace pando::manager {

namespace {

constexpr std::string_view kWorkerName = "pando-worker";

/// The kernel's name of the process: not to be had from its words, which are its own. Asked of each
/// process of the host when a manager starts, so no stream is made for it.
std::string name_of(pid_t pid) {
  std::array<char, 64> name{};  // the kernel has 15 bytes, and a line feed
  const Fd file(::open(fmt::format("/proc/{}/comm", pid).c_str(), O_RDONLY | O_CLOEXEC));
  const ssize_t got = file ? ::read(file.get(), name.data(), name.size()) : 0;
  const std::string_view text(name.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
  return std::string(text.substr(0, text.find('\n')));
}

/// The process's folder belongs to its effective user, even when the files in it are root's because
/// the process forbids inspection.
bool may_be_worker(pid_t pid, std::uint32_t worker_uid) {
  struct stat status{};
  if (::stat(fmt::format("/proc/{}", pid).c_str(), &status) != 0) return false;
  return status.st_uid == 0 || status.st_uid == ::geteuid() || status.st_uid == worker_uid;
}

std::vector<std::string> words_of(pid_t pid) {
  constexpr std::size_t kMaxWords = 64;  // a worker has fewer than ten
  std::ifstream file(fmt::format("/proc/{}/cmdline", pid), std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; words.size() < kMaxWords && std::getline(file, word, '\0');)
    words.push_back(std::move(word));
  return words;
}

/// What stands after `option` in "--option value" or "--option=value".
std::string value_of(const std::vector<std::string>& words, const std::string& option) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == option && i + 1 < words.size()) return words[i + 1];
    if (words[i].starts_with(option + "=")) return words[i].substr(option.size() + 1);
  }
  return {};
}

bool same_directory(const std::string& one, const std::string& other) {
  std::error_code ignored;
  return one == other || std::filesystem::equivalent(one, other, ignored);
}

}  // namespace

std::optional<Child> find_worker(pid_t pid, std::uint32_t slot, const WorkerSearch& search) {
  if (pid <= 0) return std::nullopt;
  Child child;
  child.pid = pid;
  child.pidfd = Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!child.pidfd) return std::nullopt;
  const auto words = words_of(pid);
  if (!may_be_worker(pid, search.worker_uid) || name_of(pid) != kWorkerName ||
      value_of(words, "--slot") != std::to_string(slot) ||
      !same_directory(value_of(words, "--run-directory"), search.run_directory))
    return std::nullopt;
  // The pid of a process that has not ended was not reused: all read above is about this process.
  if (has_ended(child.pidfd)) return std::nullopt;
  return child;
}

std::optional<Child> recorded_worker(shm::SlotTable& slots, std::uint32_t number,
                                     const WorkerSearch& search) {
  const auto* page = slots.page(number);
  if (page == nullptr) return std::nullopt;
  return find_worker(static_cast<pid_t>(page->pid), number, search);
}

bool may_read_another_store(shm::SlotTable& slots, const WorkerSearch& search) {
  const auto numbers = slots.numbers();
  return std::any_of(numbers.begin(), numbers.end(), [&](std::uint32_t number) {
    return !slots.alive(number) && recorded_worker(slots, number, search);
  });
}

std::vector<FoundWorker> find_workers(const WorkerSearch& search) {
  std::vector<FoundWorker> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const auto pid = whole_number<pid_t>(entry.path().filename().string());
    if (!pid || !may_be_worker(*pid, search.worker_uid) || name_of(*pid) != kWorkerName) continue;
    const auto slot = whole_number<std::uint32_t>(value_of(words_of(*pid), "--slot"));
    auto process = slot ? find_worker(*pid, *slot, search) : std::nullopt;
    if (process) found.push_back({*slot, std::move(*process)});
  }
  return found;
}

}  // namespace pando::manager
