#pragma once

#include <cstdint>
#include <ctime>

namespace pando {

/// Seconds since 1970 by the host's clock, which may be put back.
inline std::uint64_t unix_seconds() noexcept {
  return static_cast<std::uint64_t>(std::time(nullptr));
}

}  // namespace pando
