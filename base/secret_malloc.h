#pragma once

#include <cstddef>

/// realloc(3) and free(3) that wipe what they give back while the thread has a WipeFreed
/// (base/secret.h). For C libraries that take their memory from functions of the caller.
namespace pando {

[[nodiscard]] void* reallocate_wiped(void* place, std::size_t bytes) noexcept;
void free_wiped(void* place) noexcept;

}  // namespace pando
