#include "base/files/guarded_path.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

namespace pando {

namespace {

/// As in the kernel: more links than that are a loop.
constexpr int kMaxLinks = 40;
constexpr int kAnyhow = O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
constexpr int kReading = O_RDONLY | kAnyhow;
constexpr int kAppending = O_WRONLY | O_APPEND | O_CREAT | kAnyhow;

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

bool is_last(const std::string& rest) {
  return rest.find_first_not_of('/') == std::string::npos;
}

std::string error_text(int error) { return std::strerror(error); }

/// Links of /proc/PID/fd have no target that a path could name: the kernel has to follow them.
bool is_in_proc(int fd) {
  struct statfs system{};
  return ::fstatfs(fd, &system) == 0 && system.f_type == PROC_SUPER_MAGIC;
}

/// Follows a path name by name.
class PathWalk {
 public:
  enum class Strangers : std::uint8_t {
    kRefused,      ///< a link of an untrusted user ends the walk
    kToTheirOwn,   ///< it leads to that user's own files
  };

  PathWalk(const std::string& path, Strangers strangers) : rest_(path), strangers_(strangers) {
    if (rest_.empty()) rest_ = ".";
  }

  Result<Fd> folder(std::optional<mode_t> mode_of_missing) {
    if (auto begun = begin(); !begun) return pass(begun);
    for (std::string name = next_name(rest_); !name.empty(); name = next_name(rest_))
      if (auto stepped = step(name, mode_of_missing); !stepped) return pass(stepped);
    return std::move(at_);
  }

  /// Members of these groups may change nothing on the way, nor may all users.
  void demand_unchangeable(const std::vector<gid_t>& groups) { strangers_groups_ = &groups; }

  Result<Fd> file(int flags) {
    if (auto begun = begin(); !begun) return pass(begun);
    for (std::string name = next_name(rest_); !name.empty(); name = next_name(rest_)) {
      if (is_last(rest_)) {
        Fd found(::openat(at_.get(), name.c_str(), flags, 0640));
        if (found) return checked(std::move(found), name);
        if (errno != ELOOP) return fail(Errc::kIo, "{}", error_text(errno));
      }
      if (auto stepped = step(name, std::nullopt, flags); !stepped) return pass(stepped);
      if (opened_) return checked(std::move(opened_), name);
    }
    return fail(Errc::kInvalid, "a folder");
  }

 private:
  Status begin() { return begin_at(rest_.starts_with('/') ? "/" : "."); }

  Status begin_at(const char* path) {
    at_ = Fd(::open(path, O_PATH | O_DIRECTORY | O_CLOEXEC));
    return at_ ? check_unchangeable(at_, path) : fail_errno(fmt::format("open {}", path));
  }

  Status step(const std::string& name, std::optional<mode_t> mode_of_missing,
              int flags = kReading) {
    Fd next(::openat(at_.get(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    if (!next && errno == ENOENT && mode_of_missing) {
      if (auto made = make_directory(at_.get(), name, *mode_of_missing); !made) return made;
      next = Fd(::openat(at_.get(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    }
    struct stat status{};
    if (!next || ::fstat(next.get(), &status) != 0) return fail_errno("open " + name);
    if (S_ISLNK(status.st_mode)) return follow(next.get(), name, status.st_uid, flags);
    if (!S_ISDIR(status.st_mode)) return fail(Errc::kDenied, "{} is not a directory", name);
    at_ = std::move(next);
    return check_unchangeable(at_, name);
  }

  Status check_unchangeable(const Fd& fd, const std::string& name) const {
    if (strangers_groups_ == nullptr) return {};
    struct stat status{};
    if (::fstat(fd.get(), &status) != 0) return fail_errno("fstat " + name);
    if (!is_trusted_user(status.st_uid))
      return fail(Errc::kDenied, "{} belongs to user {}", name, status.st_uid);
    // In a folder like /tmp, others can neither replace nor remove what is not theirs.
    if (S_ISDIR(status.st_mode) && (status.st_mode & S_ISVTX) != 0) return {};
    const bool by_group = (status.st_mode & S_IWGRP) != 0 &&
                          std::ranges::find(*strangers_groups_, status.st_gid) !=
                              strangers_groups_->end();
    if (by_group || (status.st_mode & S_IWOTH) != 0)
      return fail(Errc::kDenied, "{} has mode {:o}: others can change it", name,
                  status.st_mode & 07777U);
    return {};
  }

  /// The link's owner is who made it.
  Status follow(int link, const std::string& name, uid_t made_by, int flags) {
    if (!is_trusted_user(made_by)) {
      if (strangers_ == Strangers::kRefused || stranger_.value_or(made_by) != made_by)
        return fail(Errc::kDenied, "{} is a link that user {} has made", name, made_by);
      stranger_ = made_by;
    }
    if (++links_ > kMaxLinks) return fail(Errc::kDenied, "{}: too many links", name);
    if (is_in_proc(link)) return follow_in_proc(name, flags);
    std::array<char, PATH_MAX> target{};
    const ssize_t length = ::readlinkat(link, "", target.data(), target.size());
    if (length < 0) return fail_errno("readlink " + name);
    rest_ = std::string(target.data(), static_cast<std::size_t>(length)) + "/" + rest_;
    return rest_.starts_with('/') ? begin_at("/") : Status();
  }

  Status follow_in_proc(const std::string& name, int flags) {
    if (is_last(rest_)) opened_ = Fd(::openat(at_.get(), name.c_str(), flags & ~O_NOFOLLOW));
    if (opened_) return {};
    Fd target(::openat(at_.get(), name.c_str(), O_PATH | O_CLOEXEC));
    if (!target) return fail_errno("open " + name);
    at_ = std::move(target);
    return {};
  }

  /// The file that was opened counts, whatever has its name now.
  Result<Fd> checked(Fd found, const std::string& name) const {
    struct stat file{};
    struct stat folder{};
    if (!found || ::fstat(found.get(), &file) != 0 || ::fstat(at_.get(), &folder) != 0)
      return fail_errno("open " + name);
    if (stranger_ && file.st_uid != *stranger_)
      return fail(Errc::kDenied, "user {} has linked to it, and it belongs to user {}", *stranger_,
                  file.st_uid);
    if (S_ISREG(file.st_mode) && file.st_nlink > 1 && !is_trusted_user(folder.st_uid) &&
        folder.st_uid != file.st_uid)
      return fail(Errc::kDenied, "a file of user {} with another name, in a folder of user {}",
                  file.st_uid, folder.st_uid);
    if (auto kept = check_unchangeable(found, name); !kept) return pass(kept);
    return found;
  }

  std::string rest_;
  Strangers strangers_;
  Fd at_;
  Fd opened_;  ///< the file itself, where only the kernel finds it
  int links_ = 0;
  std::optional<uid_t> stranger_;
  const std::vector<gid_t>* strangers_groups_ = nullptr;
};

/// Only the opening must not wait for the other end of a pipe.
Result<Fd> waiting(Result<Fd> found, const std::string& path) {
  if (!found) return fail(found.error().code, "cannot open {}: {}", path, found.error().text);
  ::fcntl(found->get(), F_SETFL, ::fcntl(found->get(), F_GETFL) & ~O_NONBLOCK);
  return found;
}

/// By a process that is not root: with the kernel's checks alone.
Result<Fd> open_as_usual(const std::string& path, int flags) {
  Fd found(::open(path.c_str(), flags & ~O_NOFOLLOW, 0640));
  if (!found) return fail(Errc::kIo, "{}", error_text(errno));
  return found;
}

/// kDenied, in a process of root alone: another user may change the file or folder.
Status check_roots_alone(const Fd& fd, const std::string& name) {
  struct stat status{};
  if (::fstat(fd.get(), &status) != 0) return fail_errno("fstat " + name);
  if (::geteuid() != 0) return {};
  if (status.st_uid != 0)
    return fail(Errc::kDenied, "{} belongs to user {}: chown root what root shall trust", name,
                status.st_uid);
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return fail(Errc::kDenied, "{} has mode {:o}: chmod go-w what root shall trust", name,
                status.st_mode & 07777U);
  return {};
}

struct CloseFolder {
  void operator()(DIR* folder) const noexcept { ::closedir(folder); }
};

Status empty_folder(Fd folder, int depth) {
  // Deeper than any backup: whoever fills a folder must not exhaust this process's stack.
  constexpr int kMaxDepth = 200;
  if (depth > kMaxDepth) return fail(Errc::kFull, "folders are nested too deep");
  const std::unique_ptr<DIR, CloseFolder> entries(::fdopendir(folder.get()));
  if (!entries) return fail_errno("fdopendir");
  const int at = folder.release();  // closedir() closes it
  while (const dirent* entry = ::readdir(entries.get())) {
    const std::string name = entry->d_name;
    if (name == "." || name == ".." || ::unlinkat(at, name.c_str(), 0) == 0) continue;
    if (errno != EISDIR) return fail_errno("unlink " + name);
    Fd below(::openat(at, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!below) return fail_errno("open " + name);
    if (auto emptied = empty_folder(std::move(below), depth + 1); !emptied) return emptied;
    if (::unlinkat(at, name.c_str(), AT_REMOVEDIR) != 0) return fail_errno("rmdir " + name);
  }
  return {};
}

}  // namespace

Status make_directory(int parent, const std::string& name, mode_t mode) {
  if (::mkdirat(parent, name.c_str(), mode) != 0)
    return errno == EEXIST ? Status() : fail_errno("mkdir " + name);
  const Fd synced(::openat(parent, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!synced || ::fsync(synced.get()) != 0) return fail_errno("fsync of the folder of " + name);
  return {};
}

bool is_trusted_user(uid_t user) noexcept {
  return user == 0 || (::geteuid() != 0 && user == ::geteuid());
}

Result<Fd> open_folder(const std::string& path) {
  return PathWalk(path, PathWalk::Strangers::kRefused).folder(std::nullopt);
}

Result<Fd> make_folder(const std::string& path, mode_t mode) {
  return PathWalk(path, PathWalk::Strangers::kRefused).folder(mode);
}

Result<Fd> open_to_read(const std::string& path) {
  if (::geteuid() != 0) return waiting(open_as_usual(path, kReading), path);
  return waiting(PathWalk(path, PathWalk::Strangers::kToTheirOwn).file(kReading), path);
}

Result<Fd> open_to_append(const std::string& path) {
  if (::geteuid() != 0) return waiting(open_as_usual(path, kAppending), path);
  return waiting(PathWalk(path, PathWalk::Strangers::kRefused).file(kAppending), path);
}

Result<Fd> open_unchangeable(const std::string& path, const std::vector<gid_t>& groups) {
  PathWalk walk(path, PathWalk::Strangers::kRefused);
  walk.demand_unchangeable(groups);
  return waiting(walk.file(kReading), path);
}

Result<Fd> open_below(const Fd& folder, const std::string& name) {
  std::string rest = name;
  Fd at;
  const auto here = [&] { return at ? at.get() : folder.get(); };
  if (auto trusted = check_roots_alone(folder, "the folder"); !trusted) return pass(trusted);
  for (std::string part = next_name(rest); !part.empty(); part = next_name(rest)) {
    if (part == "..") return fail(Errc::kDenied, "{} leads outside", name);
    const int kind = is_last(rest) ? O_NONBLOCK : O_DIRECTORY;
    Fd next(::openat(here(), part.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | kind));
    if (!next) return fail_errno("open " + name);
    if (auto trusted = check_roots_alone(next, part); !trusted) return pass(trusted);
    at = std::move(next);
  }
  if (!at) return fail(Errc::kInvalid, "a name is missing");
  return at;
}

Result<Fd> create_below(const Fd& folder, const std::string& name) {
  std::string rest = name;
  Fd at;
  const auto here = [&] { return at ? at.get() : folder.get(); };
  for (std::string part = next_name(rest); !part.empty(); part = next_name(rest)) {
    if (part == "..") return fail(Errc::kDenied, "{} leads outside", name);
    if (is_last(rest)) {
      Fd made(::openat(here(), part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                       0600));
      if (!made) return fail_errno("create " + name);
      return made;
    }
    if (auto made = make_directory(here(), part, 0700); !made) return pass(made);
    Fd next(::openat(here(), part.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!next) return fail_errno("open " + part);
    at = std::move(next);
  }
  return fail(Errc::kInvalid, "a name is missing");
}

Status remove_below(const Fd& folder, const std::string& name) {
  if (::unlinkat(folder.get(), name.c_str(), 0) == 0 || errno == ENOENT) return {};
  if (errno != EISDIR) return fail_errno("unlink " + name);
  Fd below(::openat(folder.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!below) return fail_errno("open " + name);
  if (auto emptied = empty_folder(std::move(below), 0); !emptied) return emptied;
  if (::unlinkat(folder.get(), name.c_str(), AT_REMOVEDIR) != 0) return fail_errno("rmdir " + name);
  return {};
}

Status sync_folder(const Fd& folder, const std::string& path) {
  const Fd synced(::openat(folder.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!synced || ::fsync(synced.get()) != 0) return fail_errno("fsync of " + path);
  return {};
}

SplitPath split_path(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return {".", path};
  return {slash == 0 ? "/" : path.substr(0, slash), path.substr(slash + 1)};
}

}  // namespace pando
