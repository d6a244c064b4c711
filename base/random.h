#pragma once

#include <sys/random.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "base/result.h"

namespace pando {

/// Fills `bytes` from the kernel's generator. Secrets and names that must not repeat depend on
/// these numbers, so the process ends when the kernel has none.
inline void fill_random(std::span<std::uint8_t> bytes) noexcept {
  while (!bytes.empty()) {
    const auto got = ::getrandom(bytes.data(), bytes.size(), 0);
    if (got < 0 && errno != EINTR) die("no random numbers", __FILE__, __LINE__);
    if (got > 0) bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
}

/// A number in which each bit is random.
template <class Number>
  requires std::is_unsigned_v<Number>
[[nodiscard]] Number random_number() noexcept {
  Number number = 0;
  fill_random({reinterpret_cast<std::uint8_t*>(&number), sizeof number});
  return number;
}

}  // namespace pando
