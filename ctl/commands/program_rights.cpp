#include "ctl/commands/program_rights.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>

namespace pando::ctl {

namespace {

bool has_list_of_rights(const std::string& path) {
  return ::getxattr(path.c_str(), "system.posix_acl_access", nullptr, 0) > 0;
}

/// Whether the mode refuses any of `rights`, the bits 4, 2 and 1 of one class.
bool is_refused(const std::string& path, const FileUser& user, unsigned rights) {
  struct stat status{};
  if (user.user == 0 || ::stat(path.c_str(), &status) != 0 || has_list_of_rights(path))
    return false;
  unsigned given = status.st_mode;
  if (status.st_uid == user.user)
    given >>= 6;
  else if (std::ranges::find(user.groups, status.st_gid) != user.groups.end())
    given >>= 3;
  return (given & rights) != rights;
}

/// The interpreter of a script has to read it.
bool is_script(const std::string& path) {
  std::array<char, 2> start{};
  std::ifstream(path, std::ios::binary).read(start.data(), start.size());
  return start[0] == '#' && start[1] == '!';
}

/// The folders on the way, from the root on.
std::vector<std::string> folders_to(const std::filesystem::path& path) {
  std::vector<std::string> folders;
  std::filesystem::path folder;
  for (const auto& part : path.parent_path()) folders.push_back((folder /= part).string());
  return folders;
}

}  // namespace

std::string rights_problem(const std::string& path, const FileUser& user) {
  std::error_code unknown;
  const auto real = std::filesystem::canonical(path, unknown);
  if (unknown) return {};
  for (const std::filesystem::path& way : {std::filesystem::path(path), real})
    for (const std::string& folder : folders_to(way))
      if (is_refused(folder, user, 1))
        return fmt::format("{} cannot be run: its user may not enter {}", path, folder);
  if (is_refused(real.string(), user, 1))
    return fmt::format("{} cannot be run: its user may not execute it", path);
  if (is_script(real.string()) && is_refused(real.string(), user, 4))
    return fmt::format("{} cannot be run: its user may not read the script", path);
  return {};
}

}  // namespace pando::ctl
