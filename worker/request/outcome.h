#pragma once

#include <cstddef>
#include <cstdint>

#include "ipc/worker_messages.h"

namespace pando::worker {

/// Space for the response to a request over a UDP socket, hence the largest such response.
inline constexpr std::size_t kUdpSpace = 4096;

/// Next step for a request.
enum class Action : std::uint8_t {
  kDrop,      ///< nothing is sent
  kRespond,   ///< send the octets in the space
  kForward,   ///< ask the manager; for kSignedQuery the space holds the unsigned response
  kTransfer,  ///< start the transfer that Responder::take_transfer() returns
};

/// Result of handling a request.
struct Outcome {
  Action action = Action::kDrop;
  std::size_t size = 0;  ///< octets in the space
  ipc::ForwardKind forward = ipc::ForwardKind::kUpdate;
};

}  // namespace pando::worker
