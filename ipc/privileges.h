#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

/// Dropping root privileges, for manager and worker, and for a while for commands.
namespace pando::ipc {

/// The user's id, by name or number.
Result<std::uint32_t> user_id(const std::string& user);
/// The user's primary group. A number without a user name gives the same number.
Result<std::uint32_t> group_id(const std::string& user);

/// All groups that the user has at login, the primary one among them.
Result<std::vector<std::uint32_t>> groups_of(const std::string& user);

enum class Keep : std::uint8_t {
  kNothing,
  kBindService,  ///< CAP_NET_BIND_SERVICE alone: sockets of workers added later bind port 53
  /// Also CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF, for AF_XDP sockets and their program
  /// (server.xdp).
  kBindServiceAndXdp,
};

/// Whether this process can become another user: root, or CAP_SETUID and CAP_SETGID.
[[nodiscard]] bool may_become_another_user();

/// Becomes `user` (name or number) with its groups and `extra_groups`, for good, and drops all
/// capabilities but those to keep; the result is verified. Does nothing when the process is that
/// user already. kDenied when the process is another user and may not change that.
Status become_user(const std::string& user, Keep keep,
                   const std::vector<std::uint32_t>& extra_groups = {});

/// Empties the five capability sets of the calling thread, except for the capabilities to keep, for
/// any user. Call it before other threads exist. The bounding set stays when CAP_SETPCAP is
/// missing.
Status drop_capabilities(Keep keep);

/// Forbids other processes of this user to inspect this process or to stop it (ptrace,
/// /proc/PID/mem), and turns core dumps off. Reason: a worker must not read the manager's keys.
/// exec and a change of user undo this, so call it afterwards. Does nothing in builds with
/// sanitizers, whose leak checker traces its own process.
Status forbid_inspection();

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
