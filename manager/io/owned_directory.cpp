#include "manager/io/owned_directory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/files/guarded_path.h"

namespace pando::manager {

namespace {

constexpr mode_t kNewMode = 0750;

}  // namespace

OwnedDirectory::OwnedDirectory(std::string what, std::string path,
                               std::optional<std::uint32_t> owner, Fd fd)
    : what_(std::move(what)), path_(std::move(path)), owner_(owner), fd_(std::move(fd)) {}

Result<OwnedDirectory> OwnedDirectory::open(const std::string& what, const std::string& path,
                                            std::optional<std::uint32_t> owner) {
  auto found = make_folder(path, kNewMode);
  if (!found) return fail(found.error().code, "{}: {}: {}", what, path, found.error().text);
  OwnedDirectory directory(
      what, path, owner,
      Fd(::openat(found->get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)));
  if (!directory.fd_) return fail_errno(fmt::format("{}: open {}", what, path));
  if (auto checked = directory.check(); !checked) return pass(checked);
  return directory;
}

Result<OwnedDirectory> OwnedDirectory::open_in(const std::string& name) const {
  if (auto made = make_directory(fd_.get(), name, kNewMode); !made) return pass(made);
  OwnedDirectory directory(
      what_, path_ + "/" + name, owner_,
      Fd(::openat(fd_.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)));
  if (!directory.fd_) return fail_errno(fmt::format("{}: open {}", what_, directory.path_));
  if (auto checked = directory.check(); !checked) return pass(checked);
  return directory;
}

bool OwnedDirectory::is_ours(std::uint32_t uid) const noexcept {
  return uid == 0 || uid == ::geteuid() || (owner_ && uid == *owner_);
}

Status OwnedDirectory::check() const {
  struct stat status{};
  if (::fstat(fd_.get(), &status) != 0) return fail_errno("fstat " + path_);
  if (!is_ours(status.st_uid))
    return fail(Errc::kDenied, "{}: {} belongs to user {}, who could replace what is in it", what_,
                path_, status.st_uid);
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return fail(Errc::kDenied, "{}: {} has mode {:o}: others could replace what is in it", what_,
                path_, status.st_mode & 07777U);
  return {};
}

// A folder on a read-only file system is served as it is (docs/explanation/starts.md).
Status OwnedDirectory::own(mode_t mode) const {
  struct stat status{};
  if (::fstat(fd_.get(), &status) != 0) return fail_errno("fstat " + path_);
  if (owner_ && status.st_uid != *owner_ &&
      ::fchown(fd_.get(), *owner_, static_cast<gid_t>(-1)) != 0 && errno != EROFS)
    return fail_errno("chown " + path_);
  const bool may_change = ::geteuid() == 0 || status.st_uid == ::geteuid();
  if (may_change && (status.st_mode & 07777U) != mode && ::fchmod(fd_.get(), mode) != 0 &&
      errno != EROFS)
    return fail_errno("chmod " + path_);
  return {};
}

Result<Fd> OwnedDirectory::open_file(const std::string& name) const {
  Fd file(::openat(fd_.get(), name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file && errno == EROFS)
    file = Fd(::openat(fd_.get(), name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!file) return fail_errno(fmt::format("open {}/{}", path_, name));
  struct stat status{};
  if (::fstat(file.get(), &status) != 0) return fail_errno("fstat " + name);
  if (!S_ISREG(status.st_mode) || status.st_nlink > 1 || !is_ours(status.st_uid))
    return fail(Errc::kDenied, "{}: {}/{} is no plain file of this server's user with one name",
                what_, path_, name);
  if (owner_ && status.st_uid != *owner_ &&
      ::fchown(file.get(), *owner_, static_cast<gid_t>(-1)) != 0 && errno != EROFS)
    return fail_errno(fmt::format("chown {}/{}", path_, name));
  return file;
}

}  // namespace pando::manager
