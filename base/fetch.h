#pragma once

namespace pando {

/// Asks for the memory at `address` without waiting for it; a wrong address does no harm. It is one
/// line of the processor's caches, of kFetchedOctets.
inline void fetch(const void* address) noexcept {
  __builtin_prefetch(address);
  // Without a statement that it must keep, GCC takes a function that does nothing else for one
  // without effect, and leaves out the calls of it.
  asm volatile("");
}

inline constexpr unsigned kFetchedOctets = 64;

}  // namespace pando
