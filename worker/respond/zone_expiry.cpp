#include "worker/respond/zone_expiry.h"

#include <algorithm>

namespace pando::worker {

bool ZoneExpiry::expired(const zone::ZoneView& zone, std::uint64_t now) const {
  const auto* entry = side_(zone.side_index());
  if (entry == nullptr) return false;
  const std::uint64_t at = entry->expires_at.load(std::memory_order_relaxed);
  return at != 0 && at <= now;  // the manager keeps it 0 for primary zones
}

std::optional<std::uint32_t> ZoneExpiry::remaining(const zone::ZoneView& zone,
                                                   const zone::ZoneSettings& rules,
                                                   std::uint64_t now) const {
  const ByteView soa = zone.soa().first_rdata();
  constexpr std::size_t kExpireFromEnd = 8;
  if (soa.size() < 22) return std::nullopt;
  const std::uint32_t interval = load_be32(soa.data() + soa.size() - kExpireFromEnd);
  const auto* entry = side_(zone.side_index());
  if (!rules.is_secondary || entry == nullptr) return interval;
  const std::uint64_t at = entry->expires_at.load(std::memory_order_relaxed);
  if (at <= now) return std::nullopt;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(at - now, interval));
}

}  // namespace pando::worker
