#pragma once

namespace pando::zone {

/// Asks for the memory at `address` without waiting for it: one line of the processor's caches. A
/// wrong address does no harm.
inline void fetch(const void* address) noexcept {
  __builtin_prefetch(address);
  // GCC leaves out the calls of a function without effect, and takes one that does nothing else for
  // such a function. It must keep this statement.
  asm volatile("");
}

}  // namespace pando::zone
