#include "manager/survivor.h"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <vector>

namespace pando::manager {

namespace {

/// The kernel's name of the process: not to be had from its words, which are its own.
std::string name_of(pid_t pid) {
  std::string name;
  std::getline(std::ifstream(fmt::format("/proc/{}/comm", pid)) >> std::ws, name);
  return name;
}

std::vector<std::string> words_of(pid_t pid) {
  constexpr std::size_t kMaxWords = 64;  // a worker has fewer than ten
  std::ifstream file(fmt::format("/proc/{}/cmdline", pid), std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; words.size() < kMaxWords && std::getline(file, word, '\0');)
    words.push_back(std::move(word));
  return words;
}

/// What stands behind `option` in "--option value" or "--option=value".
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

std::optional<Child> find_worker(pid_t pid, std::uint32_t slot, const std::string& run_directory) {
  if (pid <= 0) return std::nullopt;
  Child child;
  child.pid = pid;
  child.pidfd = Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!child.pidfd) return std::nullopt;
  const auto words = words_of(pid);
  if (name_of(pid) != "pando-worker" || value_of(words, "--slot") != std::to_string(slot) ||
      !same_directory(value_of(words, "--run-directory"), run_directory))
    return std::nullopt;
  // Still the process that the descriptor is of: what was read above was about it.
  if (has_ended(child.pidfd)) return std::nullopt;
  return child;
}

}  // namespace pando::manager
