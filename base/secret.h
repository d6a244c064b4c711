#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <utility>

/// Secrets of TSIG keys and cookies are wiped from memory that is given back, so that no later
/// reader of the heap finds them.
namespace pando {

/// Overwrites bytes that nobody reads again; unlike memset(), never left out by the compiler.
inline void wipe(std::span<std::uint8_t> bytes) noexcept {
  ::explicit_bzero(bytes.data(), bytes.size());
}

/// While it lives, all that this thread frees by operator delete is wiped first. It belongs around
/// everything that copies, moves or ends what has secrets: also a YAML parser's buffers, tokens and
/// nodes, a vector that grows, and an object's own place. Builds with sanitizers wipe nothing here,
/// as they have their own operator delete.
class WipeFreed {
 public:
  WipeFreed() noexcept;
  ~WipeFreed();
  WipeFreed(const WipeFreed&) = delete;
  WipeFreed& operator=(const WipeFreed&) = delete;
};

/// Moves `object` to a place of its own whose end, in whatever thread, is under a WipeFreed.
template <class Object>
[[nodiscard]] std::shared_ptr<Object> share_secret(Object&& object) {
  return {new Object(std::move(object)), [](Object* shared) {
            const WipeFreed wipe_freed;
            delete shared;
          }};
}

/// realloc(3) and free(3) that wipe what they give back while the thread has a WipeFreed. For C
/// libraries that take their memory from functions of the caller.
[[nodiscard]] void* reallocate_wiped(void* place, std::size_t bytes) noexcept;
void free_wiped(void* place) noexcept;

}  // namespace pando
