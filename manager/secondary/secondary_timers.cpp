#include "manager/secondary/secondary_timers.h"

#include <algorithm>
#include <chrono>

namespace pando::manager {

namespace {

/// The RDATA ends in the serial, the three timers and the negative TTL; two names come first.
constexpr std::size_t kFixedOctets = 20;
constexpr std::size_t kShortestNames = 2;

constexpr std::uint64_t kSmallStep = 60;

std::uint64_t whole_seconds(config::Duration duration) noexcept {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(duration).count();
  return seconds < 1 ? 1 : static_cast<std::uint64_t>(seconds);
}

}  // namespace

SoaTimers read_timers(ByteView soa_rdata) noexcept {
  SoaTimers timers;
  if (soa_rdata.size() < kShortestNames + kFixedOctets) return timers;
  const std::uint8_t* numbers = soa_rdata.data() + soa_rdata.size() - kFixedOctets;
  timers.refresh = load_be32(numbers + 4);
  timers.retry = load_be32(numbers + 8);
  timers.expire = load_be32(numbers + 12);
  return timers;
}

std::uint64_t within(const config::DurationRange& range, std::uint64_t seconds) noexcept {
  const std::uint64_t low = whole_seconds(range.min);
  return std::clamp(seconds, low, std::max(low, whole_seconds(range.max)));
}

std::uint64_t time_to_keep(const SoaTimers& timers, const config::DurationRange& range) noexcept {
  const std::uint64_t two_refreshes = within(range, timers.refresh) + within(range, timers.retry);
  return std::max<std::uint64_t>(timers.expire, two_refreshes);
}

std::uint64_t expiry_after_contact(std::uint64_t before, std::optional<std::uint32_t> stated,
                                   std::uint64_t now, std::uint64_t keep) noexcept {
  const std::uint64_t latest = now + keep;
  const std::uint64_t here = stated ? now + *stated : latest;
  return std::min(std::max(before, here), latest);
}

std::uint64_t believed_refresh(std::uint64_t stored, std::uint64_t now,
                            std::uint64_t interval) noexcept {
  return stored > now + interval ? now : std::max(stored, now);
}

std::uint64_t believed_expiry(std::uint64_t stored, std::uint64_t now,
                              std::uint64_t keep) noexcept {
  return stored == 0 ? now + keep : std::min(stored, now + keep);
}

bool went_back(std::uint64_t before, std::uint64_t now) noexcept {
  return before > now + kSmallStep;
}

}  // namespace pando::manager
