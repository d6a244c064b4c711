#pragma once

#include <openssl/crypto.h>

#include <cstdlib>

#include "base/secret.h"

namespace pando::manager {

/// Makes OpenSSL wipe what it frees under a WipeFreed, because its decoders and encoders leave
/// private numbers in buffers that they free. To be called before OpenSSL takes any memory.
inline void wipe_what_openssl_frees() noexcept {
  ::CRYPTO_set_mem_functions(
      [](std::size_t bytes, const char*, int) { return std::malloc(bytes); },
      [](void* place, std::size_t bytes, const char*, int) {
        return reallocate_wiped(place, bytes);
      },
      [](void* place, const char*, int) { free_wiped(place); });
}

}  // namespace pando::manager
