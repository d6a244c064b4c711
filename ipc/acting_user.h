#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace pando::ipc {

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

}  // namespace pando::ipc
