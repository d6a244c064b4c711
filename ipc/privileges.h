#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"

/// Giving up root, for manager and worker.
namespace pando::ipc {

/// The user's id, by name or number.
Result<std::uint32_t> user_id(const std::string& user);
/// The user's primary group; that of a number without a name has the same number.
Result<std::uint32_t> group_id(const std::string& user);

enum class Keep : std::uint8_t {
  kNothing,
  kBindService,  ///< CAP_NET_BIND_SERVICE alone: sockets of workers added later bind port 53
};

/// Becomes `user` (name or number) with its groups and `extra_group`, for good; verified
/// afterwards. Does nothing when the process is that user already; kDenied when it is another user
/// but not root.
Status become_user(const std::string& user, Keep keep,
                   std::optional<std::uint32_t> extra_group = std::nullopt);

/// From now on no other process of this user may look into this one or stop it (ptrace,
/// /proc/PID/mem), and there are no core dumps: a worker must not read the manager's keys. Lost
/// with exec and with a change of user, so call it after those. Does nothing in builds with
/// sanitizers, whose leak checker traces its own process.
Status forbid_inspection();

}  // namespace pando::ipc
