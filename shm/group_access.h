#pragma once

#include <sys/types.h>

#include <string>

#include "base/result.h"

namespace pando::shm {

/// Gives the file or directory to `group`, whose members may use it as `mode` says.
Status give_to_group(const std::string& path, mode_t mode, gid_t group);

}  // namespace pando::shm
