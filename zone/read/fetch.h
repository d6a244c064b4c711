#pragma once

namespace pando::zone {

/// Prefetches one cache line of the memory at `address`. A wrong address does no harm.
inline void fetch(const void* address) noexcept {
  __builtin_prefetch(address);
  // GCC removes calls of functions without effect, and a prefetch is none to it. The assembler
  // statement counts as an effect.
  asm volatile("");
}

}  // namespace pando::zone
