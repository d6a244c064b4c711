#include "worker/respond/zone_expiry.h"

#include <algorithm>

#include "shm/side_table.h"

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
  if (entry == nullptr) return interval;
  std::uint64_t left = interval;
  if (const std::uint64_t end = shm::signatures_end(*entry); end > now)
    left = std::min(left, end - now);
  if (rules.is_secondary) {
    const std::uint64_t at = entry->expires_at.load(std::memory_order_relaxed);
    if (at <= now) return std::nullopt;
    left = std::min(left, at - now);
  }
  return static_cast<std::uint32_t>(left);
}

}  // namespace pando::worker
