#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"

namespace pando::worker {

/// Responses of one connection that the socket has not taken yet, each after its length (RFC 1035
/// §4.2.2). All are in one block of memory, because most connections are idle: an empty queue has
/// none after release().
class TcpOutput {
 public:
  enum class State : std::uint8_t {
    kEmpty,    ///< the socket has taken everything
    kBlocked,  ///< the socket takes nothing more for now
    kFailed,   ///< the connection is broken
  };
  struct Sent {
    State state = State::kEmpty;
    bool progress = false;  ///< the socket took some octets
  };

  void push(ByteView message);
  /// Sends as much as `socket` takes without waiting, many messages in one call.
  Sent send(int socket);
  /// Gives the memory back if the queue is empty. A queue in use keeps its memory: growing again
  /// for each message would copy the octets of a transfer twice.
  void release() noexcept;

  [[nodiscard]] bool empty() const noexcept { return queue_.empty(); }
  /// Octets in memory. Sent ones count until the queue drops them, so that this bounds the memory.
  [[nodiscard]] std::size_t octets() const noexcept { return queue_.size(); }
  [[nodiscard]] std::size_t capacity() const noexcept { return queue_.capacity(); }

 private:
  void drop(std::size_t octets);

  Bytes queue_;           ///< messages with their lengths
  std::size_t sent_ = 0;  ///< octets at the front that the socket has; less than all
};

}  // namespace pando::worker
