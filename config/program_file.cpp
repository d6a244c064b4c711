#include "config/program_file.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

namespace pando::config {

std::string program_problem(const std::string& path, std::uint32_t manager) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0)
    return fmt::format("cannot find {}: {}", path, std::strerror(errno));
  if (!S_ISREG(status.st_mode)) return fmt::format("{} is no regular file", path);
  if ((status.st_mode & (S_IXUSR | S_IXGRP | S_IXOTH)) == 0)
    return fmt::format("{} is not executable", path);
  if ((status.st_mode & S_IWOTH) != 0)
    return fmt::format("others can write {}: chmod o-w {}", path, path);
  if (status.st_uid != 0 && status.st_uid != manager)
    return fmt::format("{} belongs to neither root nor the manager's user", path);
  return {};
}

}  // namespace pando::config
