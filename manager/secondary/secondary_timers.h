#pragma once

#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "config/settings/settings.h"

/// Rules for the times of refresh and expiry of secondary zones (RFC 1035 §3.3.13). No clock and no
/// store. Spans are in seconds, times in seconds since 1970.
namespace pando::manager {

/// REFRESH, RETRY and EXPIRE of a SOA in seconds. The defaults apply to a zone without a SOA yet.
struct SoaTimers {
  std::uint32_t refresh = 3600;
  std::uint32_t retry = 600;
  std::uint32_t expire = 86400;
};

/// Reads checked, uncompressed SOA RDATA; the defaults for RDATA that is too short.
[[nodiscard]] SoaTimers read_timers(ByteView soa_rdata) noexcept;

/// `seconds`, but within limits.refresh; never 0.
[[nodiscard]] std::uint64_t within(const config::DurationRange& range,
                                   std::uint64_t seconds) noexcept;

/// Seconds until a zone expires after the last contact with a primary: EXPIRE, but at least one
/// refresh and one retry interval. With less, a single lost packet could expire the zone.
[[nodiscard]] std::uint64_t time_to_keep(const SoaTimers& timers,
                                         const config::DurationRange& range) noexcept;

/// Time of expiry of a zone that a primary has confirmed now. A primary that is itself a secondary
/// tells its own remaining seconds (`stated`, RFC 7314 §4). Otherwise servers that refresh from
/// each other would keep a zone for ever. `before` is the expiry by another primary's statement, 0
/// to ignore it.
[[nodiscard]] std::uint64_t expiry_after_contact(std::uint64_t before,
                                                 std::optional<std::uint32_t> stated,
                                                 std::uint64_t now, std::uint64_t keep) noexcept;

/// Corrects a stored time of the next refresh cycle. A time further away than `interval` was set by
/// a clock that was ahead. How long the zone has waited is unknown then, so the zone is due now.
[[nodiscard]] std::uint64_t believed_refresh(std::uint64_t stored, std::uint64_t now,
                                          std::uint64_t interval) noexcept;
/// Corrects a stored time of expiry in the same way, with `keep` as the limit. A stored 0 means
/// that the last contact is unknown. The contact then counts as now, since RFC 1034 §4.3.5 wants
/// the zone to expire.
[[nodiscard]] std::uint64_t believed_expiry(std::uint64_t stored, std::uint64_t now,
                                            std::uint64_t keep) noexcept;

/// True if the clock was put back since `before`. Less than a minute makes no difference to any
/// timer.
[[nodiscard]] bool went_back(std::uint64_t before, std::uint64_t now) noexcept;

}  // namespace pando::manager
