#pragma once

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <utility>

#include "shm/reader.h"
#include "shm/slots.h"
#include "shm/store.h"

namespace pando::shm::test {

inline constexpr std::uint64_t kLayout = 7;
inline constexpr std::uint64_t kMiB = 1 << 20;

/// A directory on tmpfs that goes away with the test.
class Folder {
 public:
  Folder() {
    static std::atomic<int> counter{0};
    path_ = "/dev/shm/pando-test-" + std::to_string(::getpid()) + "-" + std::to_string(counter++);
    std::filesystem::remove_all(path_);
    std::filesystem::create_directory(path_);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    if (owner_ == ::getpid()) std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string store() const { return path_ + "/zones.store"; }
  [[nodiscard]] std::string slots() const { return path_ + "/slots"; }

 private:
  std::string path_;
  pid_t owner_ = ::getpid();
};

inline StoreOptions options(const Folder& folder, std::uint64_t size_limit = 16 * kMiB) {
  StoreOptions chosen;
  chosen.path = folder.store();
  chosen.size_limit = size_limit;
  chosen.layout = kLayout;
  return chosen;
}

/// The value, or the end of the test with the error's text.
template <class T>
T must(Result<T> result) {
  if (!result) {
    ADD_FAILURE() << result.error().text;
    std::abort();
  }
  return std::move(*result);
}
inline void must(Status status) {
  if (status) return;
  ADD_FAILURE() << status.error().text;
  std::abort();
}

/// Forks a child that runs `body` and exits with what it returns. It does not outlive this process,
/// however that ends.
template <class Body>
pid_t start_child(Body&& body) {
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(125);
  ::_exit(body());
}

/// How a child ended: its exit status, or the signal's number as a negative one.
inline int end_of(pid_t child) {
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/// Runs `body` in a forked child and returns its exit status (negative: the signal).
template <class Body>
int in_child(Body&& body) {
  return end_of(start_child(std::forward<Body>(body)));
}

/// Exit status of a child that may not mount.
inline constexpr int kNoMount = 77;

/// Runs `body` in a child that has a tmpfs of its own at the folder. `size`: its mount option.
template <class Body>
int with_small_tmpfs(const Folder& folder, const char* size, Body&& body) {
  return in_child([&] {
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("tmpfs", folder.path().c_str(), "tmpfs", 0, size) != 0)
      return kNoMount;
    return body();
  });
}

/// A block filled with one byte value.
inline Ref<> put(Transaction& transaction, std::size_t bytes, int value) {
  const Ref<> ref = must(transaction.allocate(bytes));
  std::memset(transaction.writable(ref), value, bytes);
  return ref;
}
inline bool filled(const Window& window, Ref<> ref, std::size_t bytes, int value) {
  const std::byte* block = window.at(ref, bytes);
  if (block == nullptr) return false;
  for (std::size_t i = 0; i < bytes; ++i)
    if (block[i] != static_cast<std::byte>(value)) return false;
  return true;
}

}  // namespace pando::shm::test
