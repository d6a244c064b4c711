#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "shm/map/mapping.h"
#include "shm/store.h"

/// Reads a store from outside its writer, for `pandoctl store check`.
namespace pando::shm {

/// Bytes of the caller's blocks that the current version counts in each chunk, as far as the store
/// has memory. The root block, which is the store's own, is left out. In a live store only its
/// commit thread may call this. Empty when the root block is damaged.
[[nodiscard]] std::vector<std::uint32_t> occupancy(const Window& window);

/// A store file without a writer: of a manager that has ended, or a copy.
class Inspection {
 public:
  /// Errors: kNotFound, kCorrupt (no store, a damaged header or root block, cut off), kLayout,
  /// kExists. kExists: a manager has the store, which may change any version that this process does
  /// not hold.
  static Result<Inspection> open(const std::string& path, std::uint64_t layout);

  [[nodiscard]] Window window() const noexcept { return {mapping_.base(), limit_}; }
  [[nodiscard]] const VersionInfo& version() const noexcept { return version_; }

 private:
  Status read_header(const std::string& path, std::uint64_t layout);
  Status read_version(const std::string& path);

  Fd file_;
  Mapping mapping_;
  std::uint64_t limit_ = 0;
  VersionInfo version_;
};

}  // namespace pando::shm
