#include "base/content_hash.h"

#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>

namespace pando {

struct ContentHash::State {
  XXH3_state_t xxh;
};

ContentHash::ContentHash() noexcept = default;
ContentHash::ContentHash(ContentHash&&) noexcept = default;
ContentHash& ContentHash::operator=(ContentHash&&) noexcept = default;
ContentHash::~ContentHash() = default;

void ContentHash::add(const void* data, std::size_t bytes) {
  if (bytes == 0) return;
  if (state_ == nullptr) {
    state_ = std::make_unique<State>();
    XXH3_64bits_reset(&state_->xxh);
  }
  XXH3_64bits_update(&state_->xxh, data, bytes);
}

std::uint64_t ContentHash::value() const noexcept {
  const std::uint64_t hash =
      state_ == nullptr ? XXH3_64bits(nullptr, 0) : XXH3_64bits_digest(&state_->xxh);
  return hash == 0 ? 1 : hash;
}

}  // namespace pando
