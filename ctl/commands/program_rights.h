#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace pando::ctl {

/// A user, as far as the modes of files are concerned.
struct FileUser {
  std::uint32_t user = 0;
  std::vector<std::uint32_t> groups{};
};

/// Why that user may not run the program at `path`, by the modes of the file and of the folders on
/// the way to it. Empty: the user may, or nobody can tell from here. A list of rights (ACL) decides
/// in place of the mode, and is not read.
[[nodiscard]] std::string rights_problem(const std::string& path, const FileUser& user);

/// While it lives, this process acts as another user, with that user's groups and without a right
/// of root: what it reads, that user can read. Only root can act so; for others, for that user
/// itself, and for a user that this host does not know, nothing changes.
class ActingUser {
 public:
  /// `user`: name or number.
  explicit ActingUser(const std::string& user);
  /// Aborts if this process cannot be root again.
  ~ActingUser();
  ActingUser(const ActingUser&) = delete;
  ActingUser& operator=(const ActingUser&) = delete;

  [[nodiscard]] bool acts() const noexcept { return acts_; }
  [[nodiscard]] const std::string& user() const noexcept { return user_; }

 private:
  std::string user_;
  std::vector<std::uint32_t> own_groups_;
  std::uint32_t own_group_ = 0;
  bool acts_ = false;
};

}  // namespace pando::ctl
