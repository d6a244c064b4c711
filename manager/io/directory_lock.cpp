#include "manager/io/directory_lock.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>
#include <string_view>

#include "shm/map/locks.h"

namespace pando::manager {

namespace {

struct LockFile {
  Fd file;
  /// A descriptor for reading takes a shared lock only. No manager that can write gets the
  /// exclusive lock beside it.
  shm::LockKind kind = shm::LockKind::kExclusive;
};

Result<LockFile> open_lock_file(const std::string& path) {
  Fd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (file) return LockFile{std::move(file)};
  if (errno == EROFS) {
    Fd readable(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (readable) return LockFile{std::move(readable), shm::LockKind::kShared};
    errno = EROFS;
  }
  return fail_errno("open " + path);
}

/// False when the file was removed between open and lock: the next manager would lock another file.
bool still_named(const Fd& file, const std::string& path) {
  struct stat opened{};
  struct stat named{};
  return ::fstat(file.get(), &opened) == 0 && ::lstat(path.c_str(), &named) == 0 &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

/// The process id is for people only; the lock alone counts.
void write_pid(const Fd& file) {
  const std::string text = fmt::format("{}\n", ::getpid());
  if (::ftruncate(file.get(), 0) != 0) return;
  [[maybe_unused]] const auto written = ::pwrite(file.get(), text.data(), text.size(), 0);
}

std::string holder_of(const std::string& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  std::array<char, 16> text{};
  const ssize_t length = file ? ::read(file.get(), text.data(), text.size()) : 0;
  const std::string_view all(text.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
  const std::string pid(all.substr(0, all.find_first_not_of("0123456789")));
  return pid.empty() ? "" : " (process " + pid + ")";
}

/// The locked file; kExists when another process has it.
Result<Fd> try_to_lock(const std::string& directory, const std::string& name) {
  const std::string path = directory + "/" + name;
  auto opened = open_lock_file(path);
  if (!opened) return pass(opened);
  auto locked = shm::try_lock(opened->file.get(), opened->kind, 0);
  if (!locked) return pass(locked);
  if (!*locked || !still_named(opened->file, path))
    return fail(Errc::kExists, "another manager{} uses {}", holder_of(path), directory);
  return std::move(opened->file);
}

}  // namespace

Result<DirectoryLock> DirectoryLock::take(const std::string& what, const std::string& directory,
                                          const std::string& name,
                                          std::optional<std::uint32_t> owner,
                                          std::chrono::milliseconds timeout) {
  auto file = retry_while_held(timeout, [&] { return try_to_lock(directory, name); });
  if (!file) return fail(file.error().code, "{}: {}", what, file.error().text);
  if (owner && ::fchown(file->get(), *owner, static_cast<gid_t>(-1)) != 0 && errno != EROFS)
    return fail_errno(fmt::format("chown {}/{}", directory, name));
  write_pid(*file);
  return DirectoryLock(std::move(*file));
}

}  // namespace pando::manager
