#pragma once

#include <cstdint>
#include <optional>

#include "dns/message/message_reader.h"

namespace pando::manager {

/// Reads the `records` records after a response's answers and returns the EXPIRE option of the OPT
/// record (RFC 7314 §3). The value is the number of seconds until the sender's copy of the zone
/// expires; nullopt if the option is absent or malformed.
[[nodiscard]] std::optional<std::uint32_t> read_expire(dns::MessageReader& reader,
                                                       unsigned records);

}  // namespace pando::manager
