#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "config/settings/zone_table.h"
#include "dns/types.h"

namespace pando::manager {

/// SERIAL of checked, uncompressed SOA RDATA (RFC 1035 §3.3.13): the first of the five fixed
/// fields.
[[nodiscard]] dns::Serial soa_serial(ByteView rdata) noexcept;
void set_soa_serial(Bytes& rdata, dns::Serial serial) noexcept;

/// The serial of a changed zone: always ahead of `current` (RFC 1982), never 0. `now` is seconds
/// since 1970. The clock's policies fall back to adding one while the serial is ahead of the clock.
[[nodiscard]] dns::Serial next_serial(dns::Serial current, config::SerialPolicy policy,
                                      std::uint64_t now) noexcept;

}  // namespace pando::manager
