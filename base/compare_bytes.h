#pragma once

#include <algorithm>
#include <cstring>

#include "base/bytes.h"

namespace pando {

/// Order of two texts of bytes, below, at or above 0: a text comes before those that begin with it.
[[nodiscard]] inline int compare_bytes(ByteView a, ByteView b) noexcept {
  const std::size_t shorter = std::min(a.size(), b.size());
  const int order = shorter == 0 ? 0 : std::memcmp(a.data(), b.data(), shorter);
  if (order != 0 || a.size() == b.size()) return order;
  return a.size() < b.size() ? -1 : 1;
}

}  // namespace pando
