#include "shm/map/space_policy.h"

#include <algorithm>

#include "shm/map/ref.h"

namespace pando::shm {

namespace {

/// The file grows in steps of 1/32 of the chunks in use, at most 64 MiB. So system calls are few,
/// and the store of a small zone stays small.
constexpr std::uint32_t kGrowthShare = 32;
constexpr std::uint32_t kGrowthMax = (64U << 20) / kChunkBytes;
/// Number of free chunks that keep their memory beside cushion and growth step: a steady flow of
/// updates reuses them without a system call.
constexpr std::uint32_t kSpares = 8;
/// Low space begins when less than this part of the quota is free.
constexpr std::uint32_t kLowPart = 16;
constexpr std::uint32_t kCrowdedPart = 8;
constexpr std::uint32_t kLeastAllowance = 16;

}  // namespace

SpacePolicy::SpacePolicy(std::uint32_t quota, std::uint32_t limit) noexcept
    : configured_(quota),
      quota_(quota),
      limit_(limit),
      reserve_(static_cast<std::uint32_t>(reserve_chunks(quota))),
      ceiling_(quota) {}

std::uint32_t SpacePolicy::allowance(std::uint32_t quota) noexcept {
  return std::max(static_cast<std::uint32_t>(reserve_chunks(quota)), kLeastAllowance);
}

void SpacePolicy::admit(std::uint32_t filled) noexcept {
  if (filled + compaction_chunks(quota_) > quota_) beyond_ = allowance(quota_);
  // Where no more chunk numbers exist, deletes must still leave compaction its part.
  ceiling_ = std::max(quota_, std::min(in_use_ + beyond_, limit_));
}

void SpacePolicy::machine_has(std::uint32_t chunks) noexcept {
  quota_ = std::min(configured_, std::max(chunks, in_use_));
  reserve_ = static_cast<std::uint32_t>(reserve_chunks(quota_));
  ceiling_ = std::max(quota_, std::min(in_use_ + beyond_, limit_));
}

void SpacePolicy::machine_refused(std::uint32_t spare) noexcept {
  refused_ = true;
  machine_has(in_use_ + spare);
}

void SpacePolicy::count_taken() noexcept {
  ++in_use_;
  peak_in_use_ = std::max(peak_in_use_, in_use_);
}

void SpacePolicy::count_freed() noexcept {
  --in_use_;
  ceiling_ = std::max(quota_, std::min(ceiling_, in_use_ + beyond_));
}

bool SpacePolicy::leaves(std::uint32_t more, Reserve use) const noexcept {
  const std::uint64_t taken = std::uint64_t{in_use_} + more;
  const std::uint64_t least = compaction_chunks(quota_);
  switch (use) {
    case Reserve::kKept:
      return taken + reserve_ <= quota_;
    case Reserve::kHalf:
      return taken + (ceiling_ > quota_ ? std::max<std::uint64_t>(beyond_ / 2, least) : least) <=
             ceiling_;
    case Reserve::kAllButLast:
      return taken + kLastChunks <= ceiling_;
    case Reserve::kAll:
      break;
  }
  return taken <= ceiling_;
}

bool SpacePolicy::is_low_with(std::uint32_t in_use) const noexcept {
  return in_use + std::max(quota_ / kLowPart, reserve_) >= quota_;
}

bool SpacePolicy::is_crowded() const noexcept { return in_use_ + quota_ / kCrowdedPart >= quota_; }

bool SpacePolicy::can_afford(std::uint64_t bytes, Reserve use) const noexcept {
  if (!low_space()) return true;
  // Trees and rests of chunks need more than the bytes themselves.
  const std::uint64_t chunks = 2 * std::min(bytes, kReach) / kChunkBytes;
  return !low_space_without_pins() &&
         leaves(static_cast<std::uint32_t>(chunks) + reserve_ / 4, use);
}

std::uint32_t SpacePolicy::cushion() const noexcept {
  return std::min(reserve_, static_cast<std::uint32_t>(reserve_chunks(in_use_)));
}

std::uint32_t SpacePolicy::growth_step() const noexcept {
  return std::clamp(in_use_ / kGrowthShare, 1U, kGrowthMax);
}

std::uint32_t SpacePolicy::growth(std::uint32_t spare) const noexcept {
  return std::min(growth_step(), ceiling_ - std::min(ceiling_, in_use_ + spare));
}

std::uint32_t SpacePolicy::most_spare() const noexcept {
  return cushion() + 2 * growth_step() + kSpares;
}

std::uint64_t SpacePolicy::room_to_copy(std::uint32_t open_rest) const noexcept {
  const std::uint64_t left = ceiling_ - in_use_;
  return left < kLastChunks ? 0 : (left - kLastChunks) * kChunkBytes + open_rest;
}

/// Inside the reserve any gain is worth a walk, since a delete may wait for a single chunk.
std::uint64_t SpacePolicy::least_gain(std::uint64_t room) const noexcept {
  if (!low_space()) return 0;
  const bool needed = ceiling_ > quota_ || ceiling_ - in_use_ <= reserve_;
  return needed ? 1 : std::max<std::uint64_t>(room / 8, kChunkBytes);
}

}  // namespace pando::shm
