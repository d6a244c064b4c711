#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "base/result.h"

namespace pando::shm {

/// Gives the file or directory to `group`, whose members may use it as `mode` says.
inline Status give_to_group(const std::string& path, mode_t mode, gid_t group) {
  if (::chown(path.c_str(), static_cast<uid_t>(-1), group) != 0)
    return fail_errno(fmt::format("chown of {} to group {}", path, group));
  if (::chmod(path.c_str(), mode) != 0) return fail_errno("chmod of " + path);
  return {};
}

}  // namespace pando::shm
