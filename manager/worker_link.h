#pragma once

#include <functional>

#include "base/bytes.h"
#include "ipc/worker_link.h"

namespace pando::manager {

/// Answers one forwarded request: the octets to send to the client, empty = send nothing. Call it
/// exactly once, on the commit thread, at any later time; when the worker has gone meanwhile the
/// answer is dropped (the client retries, and the manager knows retransmissions).
using ForwardReply = std::function<void(Bytes response)>;

/// Takes a request that a worker could not answer alone: UPDATE, NOTIFY, or a query signed with a
/// key the manager holds (then `request.response` is the response to be signed).
using ForwardHandler =
    std::function<void(std::uint32_t slot, ipc::Forward&& request, ForwardReply reply)>;

}  // namespace pando::manager
