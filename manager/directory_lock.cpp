#include "manager/directory_lock.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cctype>
#include <string_view>
#include <thread>

#include "shm/locks.h"

namespace pando::manager {

namespace {

constexpr std::chrono::milliseconds kStep{10};

Result<Fd> open_lock_file(const std::string& path) {
  Fd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) return fail_errno("open " + path);
  return file;
}

/// False when somebody has removed the file between open and lock: the next one would lock another.
bool still_named(const Fd& file, const std::string& path) {
  struct stat opened{};
  struct stat named{};
  return ::fstat(file.get(), &opened) == 0 && ::lstat(path.c_str(), &named) == 0 &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

/// The lock on `path`'s file, or nothing when another process has it.
Result<std::optional<Fd>> try_once(const std::string& path) {
  auto file = open_lock_file(path);
  if (!file) return pass(file);
  auto locked = shm::try_lock(file->get(), shm::LockKind::kExclusive, 0);
  if (!locked) return pass(locked);
  if (!*locked || !still_named(*file, path)) return std::optional<Fd>();
  return std::optional<Fd>(std::move(*file));
}

/// For people only: what counts is the lock.
void write_pid(const Fd& file) {
  const std::string text = fmt::format("{}\n", ::getpid());
  if (::ftruncate(file.get(), 0) != 0) return;
  [[maybe_unused]] const auto written = ::pwrite(file.get(), text.data(), text.size(), 0);
}

std::string holder_of(const std::string& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  std::array<char, 16> text{};
  const ssize_t length = file ? ::read(file.get(), text.data(), text.size()) : 0;
  std::string pid;
  for (ssize_t i = 0; i < length && std::isdigit(static_cast<unsigned char>(text[i])) != 0; ++i)
    pid += text[i];
  return pid.empty() ? "" : " (process " + pid + ")";
}

}  // namespace

Result<DirectoryLock> DirectoryLock::take(const std::string& what, const std::string& directory,
                                          const std::string& name,
                                          std::optional<std::uint32_t> owner,
                                          std::chrono::milliseconds patience) {
  const std::string path = directory + "/" + name;
  const auto deadline = std::chrono::steady_clock::now() + patience;
  for (;;) {
    auto file = try_once(path);
    if (!file) return fail(file.error().code, "{}: {}", what, file.error().text);
    if (*file) {
      if (owner && ::fchown((*file)->get(), *owner, static_cast<gid_t>(-1)) != 0)
        return fail_errno("chown " + path);
      write_pid(**file);
      return DirectoryLock(std::move(**file));
    }
    if (std::chrono::steady_clock::now() >= deadline)
      return fail(Errc::kExists, "{}: another manager{} uses {}", what, holder_of(path), directory);
    std::this_thread::sleep_for(kStep);
  }
}

}  // namespace pando::manager
