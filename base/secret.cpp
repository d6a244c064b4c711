#include "base/secret.h"

#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <new>

#include "base/build.h"

namespace pando {

namespace {
thread_local unsigned wiping_scopes = 0;
}  // namespace

WipeFreed::WipeFreed() noexcept { ++wiping_scopes; }
WipeFreed::~WipeFreed() { --wiping_scopes; }

void free_wiped(void* place) noexcept {
  if (wiping_scopes != 0 && place != nullptr)
    ::explicit_bzero(place, ::malloc_usable_size(place));
  std::free(place);
}

void* reallocate_wiped(void* place, std::size_t bytes) noexcept {
  if (wiping_scopes == 0 || place == nullptr) return std::realloc(place, bytes);
  void* const other = std::malloc(bytes);
  if (other == nullptr) return nullptr;
  std::memcpy(other, place, std::min(bytes, ::malloc_usable_size(place)));
  free_wiped(place);
  return other;
}

}  // namespace pando

#ifndef PANDO_WITH_SANITIZER
// Replaces the library's operators for the whole program (C++ [replacement.functions]); its
// operator new takes memory from malloc(). The array and nothrow forms come here, too.
void operator delete(void* place) noexcept { pando::free_wiped(place); }
void operator delete(void* place, std::size_t) noexcept { pando::free_wiped(place); }
#endif
