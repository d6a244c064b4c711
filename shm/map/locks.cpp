#include "shm/map/locks.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>

namespace pando::shm {

namespace {

struct flock octet_range(short type, off_t at, off_t length) noexcept {
  struct flock lock{};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = at;
  lock.l_len = length;
  return lock;
}

}  // namespace

Result<bool> try_lock(int fd, LockKind kind, off_t at) {
  struct flock lock = octet_range(kind == LockKind::kShared ? F_RDLCK : F_WRLCK, at, 1);
  if (::fcntl(fd, F_OFD_SETLK, &lock) == 0) return true;
  if (errno == EAGAIN || errno == EACCES) return false;
  return fail_errno("fcntl(F_OFD_SETLK)");
}

void unlock(int fd, off_t at) noexcept {
  struct flock lock = octet_range(F_UNLCK, at, 1);
  ::fcntl(fd, F_OFD_SETLK, &lock);
}

std::optional<off_t> find_lock(int fd, off_t at, off_t length) noexcept {
  struct flock lock = octet_range(F_WRLCK, at, length);
  if (::fcntl(fd, F_OFD_GETLK, &lock) != 0) return at;
  if (lock.l_type == F_UNLCK) return std::nullopt;
  return std::max<off_t>(lock.l_start, at);
}

}  // namespace pando::shm
