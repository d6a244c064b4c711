#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace pando::dns {

/// Reads a time in seconds from a zone file: a plain number (RFC 1035 §5.1) or numbers with units
/// as BIND writes them, `1w2d3h4m5s`, in any case and order. kInvalid for other texts, for a mix of
/// numbers with and without unit, and above 2^32 - 1. Used for TTLs, $TTL and SOA timers.
Result<std::uint32_t> ttl_from_text(std::string_view text);

}  // namespace pando::dns
