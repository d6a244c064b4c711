#include "manager/io/owned_directory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <utility>

namespace pando::manager {

namespace {

/// As in the kernel: more links than that are a loop.
constexpr int kMaxLinks = 40;
constexpr mode_t kNewMode = 0750;

/// Makes `name` in `parent`. Without the sync, a power cut can take the directory with all files
/// that were synced in it.
Status make_directory(int parent, const std::string& name) {
  if (::mkdirat(parent, name.c_str(), kNewMode) != 0)
    return errno == EEXIST ? Status() : fail_errno("mkdir " + name);
  const Fd synced(::openat(parent, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!synced || ::fsync(synced.get()) != 0) return fail_errno("fsync of the folder of " + name);
  return {};
}

/// Takes the first name off a path.
std::string next_name(std::string& rest) {
  const std::size_t begin = rest.find_first_not_of('/');
  if (begin == std::string::npos) {
    rest.clear();
    return {};
  }
  const std::size_t end = rest.find('/', begin);
  std::string name = rest.substr(begin, end == std::string::npos ? end : end - begin);
  rest = end == std::string::npos ? "" : rest.substr(end);
  return name;
}

/// Follows a path name by name. The kernel would follow any link in a path. A link of the server's
/// user would then lead a process that is still root wherever that user likes.
class PathWalk {
 public:
  explicit PathWalk(std::string path) : rest_(std::move(path)) {}

  Result<Fd> run() {
    if (auto begun = begin_at(rest_.starts_with('/') ? "/" : "."); !begun) return pass(begun);
    for (std::string name = next_name(rest_); !name.empty(); name = next_name(rest_))
      if (auto stepped = step(name); !stepped) return pass(stepped);
    return std::move(at_);
  }

 private:
  Status begin_at(const char* path) {
    at_ = Fd(::open(path, O_PATH | O_DIRECTORY | O_CLOEXEC));
    return at_ ? Status() : fail_errno(fmt::format("open {}", path));
  }

  Status step(const std::string& name) {
    Fd next(::openat(at_.get(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    if (!next && errno == ENOENT) {
      if (auto made = make_directory(at_.get(), name); !made) return made;
      next = Fd(::openat(at_.get(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    }
    struct stat status{};
    if (!next || ::fstat(next.get(), &status) != 0) return fail_errno("open " + name);
    if (S_ISLNK(status.st_mode)) return follow(next.get(), name, status.st_uid);
    if (!S_ISDIR(status.st_mode)) return fail(Errc::kDenied, "{} is not a directory", name);
    at_ = std::move(next);
    return {};
  }

  /// The link's owner is who made it.
  Status follow(int link, const std::string& name, std::uint32_t made_by) {
    const bool trusted = made_by == 0 || (::geteuid() != 0 && made_by == ::geteuid());
    if (!trusted) return fail(Errc::kDenied, "{} is a link that user {} has made", name, made_by);
    if (++links_ > kMaxLinks) return fail(Errc::kDenied, "{}: too many links", name);
    std::array<char, PATH_MAX> target{};
    const ssize_t length = ::readlinkat(link, "", target.data(), target.size());
    if (length < 0) return fail_errno("readlink " + name);
    rest_ = std::string(target.data(), static_cast<std::size_t>(length)) + "/" + rest_;
    return rest_.starts_with('/') ? begin_at("/") : Status();
  }

  std::string rest_;
  Fd at_;
  int links_ = 0;
};

}  // namespace

OwnedDirectory::OwnedDirectory(std::string what, std::string path,
                               std::optional<std::uint32_t> owner, Fd fd)
    : what_(std::move(what)), path_(std::move(path)), owner_(owner), fd_(std::move(fd)) {}

Result<OwnedDirectory> OwnedDirectory::open(const std::string& what, const std::string& path,
                                            std::optional<std::uint32_t> owner) {
  auto found = PathWalk(path.empty() ? "." : path).run();
  if (!found) return fail(found.error().code, "{}: {}: {}", what, path, found.error().text);
  OwnedDirectory directory(
      what, path, owner,
      Fd(::openat(found->get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)));
  if (!directory.fd_) return fail_errno(fmt::format("{}: open {}", what, path));
  if (auto checked = directory.check(); !checked) return pass(checked);
  return directory;
}

Result<OwnedDirectory> OwnedDirectory::open_in(const std::string& name) const {
  if (auto made = make_directory(fd_.get(), name); !made) return pass(made);
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
