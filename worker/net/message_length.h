#pragma once

#include <cstddef>

#include "base/bytes.h"

namespace pando::worker {

/// Length of the DNS message at the front of `octets`, with a load balancer's header before it,
/// from the message itself: it ends after the last of its records (RFC 1035 §4.1). 0 when that end
/// is not within `octets`.
[[nodiscard]] std::size_t message_length(ByteView octets) noexcept;

}  // namespace pando::worker
