#pragma once

#include <cstdint>

#include "base/bytes.h"

namespace pando::worker {

/// One's complement sum of `octets` as 16-bit words of the network's order (RFC 1071), added to
/// `sum`. An odd last octet counts as the upper half of a word. Not folded: fold_sum() does that.
[[nodiscard]] std::uint64_t add_to_sum(std::uint64_t sum, ByteView octets) noexcept;
/// The sum in 16 bits.
[[nodiscard]] std::uint16_t fold_sum(std::uint64_t sum) noexcept;

}  // namespace pando::worker
