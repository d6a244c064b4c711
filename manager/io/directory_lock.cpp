#include "manager/io/directory_lock.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <string_view>
#include <utility>

#include "shm/map/locks.h"

namespace pando::manager {

namespace {

/// A descriptor for reading, of a file on a read-only file system, takes a shared lock only. No
/// manager that can write gets the exclusive lock beside it.
shm::LockKind kind_for(const Fd& file) {
  const bool writable = (::fcntl(file.get(), F_GETFL) & O_ACCMODE) == O_RDWR;
  return writable ? shm::LockKind::kExclusive : shm::LockKind::kShared;
}

/// False when the file was removed between open and lock: the next manager would lock another file.
bool still_named(const Fd& file, const OwnedDirectory& directory, const std::string& name) {
  struct stat opened{};
  struct stat named{};
  return ::fstat(file.get(), &opened) == 0 &&
         ::fstatat(directory.fd(), name.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

/// The process id is for people only; the lock alone counts.
void write_pid(const Fd& file) {
  const std::string text = fmt::format("{}\n", ::getpid());
  if (::ftruncate(file.get(), 0) != 0) return;
  [[maybe_unused]] const auto written = ::pwrite(file.get(), text.data(), text.size(), 0);
}

std::string holder_of(const OwnedDirectory& directory, const std::string& name) {
  const Fd file(::openat(directory.fd(), name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  std::array<char, 16> text{};
  const ssize_t length = file ? ::read(file.get(), text.data(), text.size()) : 0;
  const std::string_view all(text.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
  const std::string pid(all.substr(0, all.find_first_not_of("0123456789")));
  return pid.empty() ? "" : " (process " + pid + ")";
}

/// The locked file; kExists when another process has it.
Result<Fd> try_to_lock(const OwnedDirectory& directory, const std::string& name) {
  auto file = directory.open_file(name);
  if (!file) return file;
  auto locked = shm::try_lock(file->get(), kind_for(*file), 0);
  if (!locked) return pass(locked);
  if (!*locked || !still_named(*file, directory, name))
    return fail(Errc::kExists, "{}: another manager{} uses {}", directory.what(),
                holder_of(directory, name), directory.path());
  return file;
}

}  // namespace

Result<DirectoryLock> DirectoryLock::take(const OwnedDirectory& directory, const std::string& name,
                                          std::chrono::milliseconds timeout) {
  auto file = retry_while_held(timeout, [&] { return try_to_lock(directory, name); });
  if (!file) return pass(file);
  write_pid(*file);
  return DirectoryLock(std::move(*file));
}

}  // namespace pando::manager
