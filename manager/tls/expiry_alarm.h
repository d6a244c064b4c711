#pragma once

#include <cstdint>
#include <optional>

namespace pando::manager {

/// Tells when a certificate comes near its end: once at each of 30, 7 and 1 days before, and once
/// at the end. Pure: the caller has the clock.
class ExpiryAlarm {
 public:
  /// Looks at a certificate whose last second is `not_after`, both in seconds since 1970. Returns
  /// the days of a threshold that was crossed since the last call, 0 after the end. A certificate
  /// with another end begins anew. Of several thresholds together, the nearest one counts.
  std::optional<unsigned> look(std::uint64_t not_after, std::uint64_t now) noexcept {
    if (not_after != not_after_) *this = ExpiryAlarm(not_after);
    const std::optional<unsigned> level = level_of(not_after, now);
    if (!level || (told_ && *told_ <= *level)) return std::nullopt;
    told_ = level;
    return level;
  }
  ExpiryAlarm() noexcept = default;

 private:
  static constexpr std::uint64_t kDay = 86'400;
  /// A month to order a certificate, a week to do something about it, and a day to hurry.
  static constexpr unsigned kDays[] = {1, 7, 30};

  explicit ExpiryAlarm(std::uint64_t not_after) noexcept : not_after_(not_after) {}

  static std::optional<unsigned> level_of(std::uint64_t not_after, std::uint64_t now) noexcept {
    if (now > not_after) return 0;
    for (const unsigned days : kDays)
      if (not_after - now < days * kDay) return days;
    return std::nullopt;
  }

  std::uint64_t not_after_ = 0;
  std::optional<unsigned> told_;
};

}  // namespace pando::manager
