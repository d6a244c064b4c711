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

}  // namespace pando::ipc
