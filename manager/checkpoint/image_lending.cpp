#include "manager/checkpoint/image_lending.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "shm/map/locks.h"

namespace pando::manager {

namespace {
constexpr off_t kLentLock = shm::kSlotLockBase;  // far beyond any data

Result<Fd> open_chunks(const std::string& path) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (fd) return fd;
  const Errc why = errno == ENOENT ? Errc::kNotFound : Errc::kIo;
  return fail(why, "{}: {}", path, fail_errno("open").value().text);
}

}  // namespace

Result<shm::ImageFile> lend_image(const std::string& path, std::uint32_t chunks) {
  auto fd = open_chunks(path);
  if (!fd) return pass(fd);
  shm::ImageFile file{std::move(*fd)};
  struct stat status{};
  if (::fstat(file.fd.get(), &status) != 0) return fail_errno("fstat of the image");
  // The last chunk need not have been written to its end, but a mapping needs all of it.
  const auto bytes = static_cast<off_t>(file.first + chunks * shm::kChunkBytes);
  if (status.st_size < bytes && ::truncate(path.c_str(), bytes) != 0)
    return fail_errno("ftruncate of the image");
  auto locked = shm::try_lock(file.fd.get(), shm::LockKind::kShared, kLentLock);
  if (!locked) return pass(locked);
  if (!*locked) return fail(Errc::kIo, "{}: another process holds its lock", path);
  return file;
}

bool is_lent(const std::string& path) noexcept {
  auto fd = open_chunks(path);
  if (!fd) return fd.error().code != Errc::kNotFound;
  return shm::find_lock(fd->get(), kLentLock, 1).has_value();
}

}  // namespace pando::manager
