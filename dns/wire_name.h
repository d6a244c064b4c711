#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "base/result.h"
#include "dns/name.h"

namespace pando::dns {

/// Most pointers in one name. A sensible encoder puts at least a label between two pointers. More
/// pointers than a name has labels therefore show an attack on the reader's time.
inline constexpr std::size_t kMaxNamePointers = kMaxLabels;

/// Reads the possibly compressed name at `message[at]` (RFC 1035 §4.1.4) and writes its expanded
/// form to `out`, `out_size` octets with the root label. Returns the offset after the name's
/// compressed form at `at`.
/// Each pointer must lead to before the start of the stretch that holds it, so the walk goes
/// strictly backwards and ends. kTruncated when the message ends inside the name, kInvalid for
/// other faults.
Result<std::size_t> expand_name(ByteView message, std::size_t at, std::uint8_t out[kMaxNameOctets],
                                std::size_t& out_size);

}  // namespace pando::dns
