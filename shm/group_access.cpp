#include "shm/group_access.h"

#include <sys/stat.h>
#include <unistd.h>

namespace pando::shm {

Status give_to_group(const std::string& path, mode_t mode, gid_t group) {
  if (::chown(path.c_str(), static_cast<uid_t>(-1), group) != 0)
    return fail_errno(fmt::format("chown of {} to group {}", path, group));
  if (::chmod(path.c_str(), mode) != 0) return fail_errno("chmod of " + path);
  return {};
}

}  // namespace pando::shm
