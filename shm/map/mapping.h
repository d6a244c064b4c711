#pragma once

#include <cstddef>
#include <memory>

#include "base/result.h"

namespace pando::shm {

enum class Access { kRead, kReadWrite };

/// A shared mapping of a file. A Boost.Interprocess mapped_region over an existing descriptor, so
/// that no second, inheritable descriptor is opened by name. The range may reach beyond the end of
/// file: pages without memory must not be touched. Not part of core dumps.
class Mapping {
 public:
  Mapping() noexcept;
  /// `alignment`: a power of two, at least a page.
  static Result<Mapping> map(int fd, Access access, std::size_t bytes, std::size_t alignment);
  Mapping(Mapping&&) noexcept;
  Mapping& operator=(Mapping&&) noexcept;
  ~Mapping();

  [[nodiscard]] std::byte* base() const noexcept;
  /// Maps a part of another file, or of this one, over `bytes` at `at`, in one step. A concurrent
  /// reader sees either the old or the new pages. All positions and lengths are whole pages.
  Status replace(std::size_t at, std::size_t bytes, int fd, std::uint64_t offset, Access access);

 private:
  struct Region;
  std::unique_ptr<Region> region_;
};

}  // namespace pando::shm
