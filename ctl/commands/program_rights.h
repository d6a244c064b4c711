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

}  // namespace pando::ctl
