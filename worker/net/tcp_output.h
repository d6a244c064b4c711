#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

#include "base/bytes.h"

namespace pando::worker {

/// Responses of one connection that the socket has not taken yet, each after its length (RFC 1035
/// §4.2.2).
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

  [[nodiscard]] bool empty() const noexcept { return messages_.empty(); }
  /// Octets of the messages that are not sent as a whole.
  [[nodiscard]] std::size_t octets() const noexcept { return octets_; }

 private:
  /// Messages of one call, at most: more than a transfer gathers.
  static constexpr std::size_t kTogether = 16;

  void drop(std::size_t octets);

  std::deque<Bytes> messages_;  ///< with their lengths
  std::size_t octets_ = 0;
  std::size_t front_sent_ = 0;  ///< octets sent of the front message
};

}  // namespace pando::worker
