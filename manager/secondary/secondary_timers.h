#pragma once

#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "config/settings/settings.h"

/// When secondary zones are looked at, and how long they are kept without a primary (RFC 1035
/// §3.3.13). No clock and no store: spans are seconds, moments are seconds since 1970.
namespace pando::manager {

/// REFRESH, RETRY and EXPIRE of a SOA; the initial values serve a zone that has none yet.
struct SoaTimers {
  std::uint32_t refresh = 3600;
  std::uint32_t retry = 600;
  std::uint32_t expire = 86400;
};

/// Of checked, uncompressed SOA RDATA; the initial values of what is too short to be that.
[[nodiscard]] SoaTimers read_timers(ByteView soa_rdata) noexcept;

/// `seconds`, but within limits.refresh; never 0.
[[nodiscard]] std::uint64_t within(const config::DurationRange& range,
                                   std::uint64_t seconds) noexcept;

/// How long a zone is kept after the last contact with a primary: EXPIRE, but long enough for a
/// look that fails and another one. Below that a single lost packet would end the zone.
[[nodiscard]] std::uint64_t time_to_keep(const SoaTimers& timers,
                                         const config::DurationRange& range) noexcept;

/// When a zone expires that a primary has confirmed now. A primary that is itself a secondary says
/// how long it has (`told`, RFC 7314 §4): else servers that ask each other would keep a zone for
/// ever. Another one may have said more: `before`, 0 when that counts no longer.
[[nodiscard]] std::uint64_t expiry_after_contact(std::uint64_t before,
                                                 std::optional<std::uint32_t> told,
                                                 std::uint64_t now, std::uint64_t keep) noexcept;

/// A kept time of the next look. One that a clock ahead has set is not believed: no look is further
/// away than `interval`.
[[nodiscard]] std::uint64_t believed_look(std::uint64_t kept, std::uint64_t now,
                                          std::uint64_t interval) noexcept;
/// The same of the time when a zone expires. 0 is not known: when the last contact was, nobody can
/// tell, so it counts as now (RFC 1034 §4.3.5 wants the zone to expire).
[[nodiscard]] std::uint64_t believed_expiry(std::uint64_t kept, std::uint64_t now,
                                            std::uint64_t keep) noexcept;

/// Whether the clock was put back since it was `before`. Less than a minute makes no difference to
/// any timer.
[[nodiscard]] bool went_back(std::uint64_t before, std::uint64_t now) noexcept;

}  // namespace pando::manager
