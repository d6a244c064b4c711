#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace pando::manager {

/// A directory in which nobody but its owner can put, replace or remove names. A manager that is
/// still root changes owner and mode by descriptor: a link in the place of a directory would lead
/// it elsewhere.
class OwnedDirectory {
 public:
  /// Opens `path`; missing directories of it are made (0750). `owner` is the user that this process
  /// is going to become; none: it stays its own. `what` names the directory in errors:
  /// "server.run-directory". kDenied when another user owns the directory or may write to it, or
  /// when a link in the path is another user's.
  static Result<OwnedDirectory> open(const std::string& what, const std::string& path,
                                     std::optional<std::uint32_t> owner);
  /// The same for a directory `name` in this one.
  [[nodiscard]] Result<OwnedDirectory> open_in(const std::string& name) const;

  /// Gives the directory its mode and, when there is one, its owner; not on a read-only file system.
  Status own(mode_t mode) const;
  /// Opens the file `name` for reading and writing, or makes it (0600). Links are refused, and so
  /// is a file of another user or with several names. The file then belongs to the owner. On a
  /// read-only file system it is opened for reading.
  [[nodiscard]] Result<Fd> open_file(const std::string& name) const;
  [[nodiscard]] const std::string& what() const noexcept { return what_; }
  [[nodiscard]] int fd() const noexcept { return fd_.get(); }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  OwnedDirectory(std::string what, std::string path, std::optional<std::uint32_t> owner, Fd fd);
  [[nodiscard]] Status check() const;
  [[nodiscard]] bool is_ours(std::uint32_t uid) const noexcept;

  std::string what_;
  std::string path_;
  std::optional<std::uint32_t> owner_;
  Fd fd_;
};

}  // namespace pando::manager
