#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "manager/commit/runtime.h"

namespace pando::manager {

/// The configuration as its files are now.
struct WantedConfiguration {
  RuntimePtr runtime;  ///< null: a reload would be refused for `problem`
  Status problem;
  std::uint64_t fingerprint = 0;
  std::vector<std::string> warnings;
  bool lost_list = false;  ///< the list of added zones is missing, or cannot be used
};

/// Reads the files of `path`, and the list of added zones, for a manager that runs with `before`.
/// Any thread may call it: a million zones take a second to read.
[[nodiscard]] WantedConfiguration read_wanted(const std::string& path,
                                              const config::Settings& before);

}  // namespace pando::manager
