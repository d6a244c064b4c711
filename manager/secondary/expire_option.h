#pragma once

#include <cstdint>
#include <optional>

#include "dns/message/message_reader.h"

namespace pando::manager {

/// Reads the next `records` records of a response, which stand behind its answers. Gives what an
/// OPT record among them says of the seconds until the sender's copy of the zone expires (RFC 7314
/// §3); nullopt when it does not, or is malformed.
[[nodiscard]] std::optional<std::uint32_t> read_expire(dns::MessageReader& reader,
                                                       unsigned records);

}  // namespace pando::manager
