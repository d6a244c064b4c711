#include "manager/checkpoint/checkpoint_schedule.h"

#include <algorithm>

#include "shm/store.h"

namespace pando::manager {

namespace {

/// A checkpoint is due when the image holds back this many chunks, or this part of the store if
/// that is more.
constexpr std::uint64_t kLeastHeld = (std::uint64_t{32} << 20) / shm::kChunkBytes;
constexpr std::uint64_t kHeldPart = 8;
/// Multiple of that limit that is tolerated while checkpoints fail.
constexpr std::uint64_t kHeldFactor = 2;
/// Time in which live workers let go of an image: they do so at their next query, or when they next
/// look for messages.
constexpr std::chrono::seconds kWorkersLook{5};

std::uint64_t held_limit(const CheckpointSchedule::Facts& facts) noexcept {
  return std::max(kLeastHeld, facts.used_chunks / kHeldPart);
}

}  // namespace

void CheckpointSchedule::set_limits(std::chrono::milliseconds interval,
                                    std::uint64_t journal_bytes) noexcept {
  limits_.interval = interval;
  limits_.journal_bytes = journal_bytes;
}

void CheckpointSchedule::on_image(std::uint64_t configuration,
                                  std::uint64_t journal_bytes) noexcept {
  image_configuration_ = configuration;
  journal_mark_ = journal_bytes;
}

void CheckpointSchedule::on_written(TimePoint now) noexcept {
  is_first_ = false;
  last_ = now;
}

void CheckpointSchedule::on_failed(TimePoint now) noexcept {
  last_ = now;
  pause_until_ = now + limits_.again;
}

void CheckpointSchedule::resume(TimePoint now) noexcept {
  held_ = false;
  patient_until_ = now + kWorkersLook;
}

/// While the store is changed to another configuration, the old one is not worth a checkpoint.
bool CheckpointSchedule::is_reconfigured() const noexcept {
  return configuration_ != 0 && configuration_ != image_configuration_;
}

bool CheckpointSchedule::is_due(const Facts& facts, bool settled) const noexcept {
  // After an image of an earlier process, blocks freed since then are unknown: all count as held.
  if (settled && (is_first_ || is_reconfigured())) return true;
  if (facts.low_space && facts.held_chunks > 0) return true;
  if (facts.now - last_ >= limits_.interval) return true;
  // A journal that was shortened since counts from its new start.
  const std::uint64_t bytes = facts.journal_bytes;
  const std::uint64_t journalled = bytes < journal_mark_ ? bytes : bytes - journal_mark_;
  return journalled >= limits_.journal_bytes || facts.held_chunks >= held_limit(facts);
}

bool CheckpointSchedule::holds_too_much(const Facts& facts) noexcept {
  return facts.held_chunks > kHeldFactor * held_limit(facts) ||
         (facts.held_chunks > 0 && facts.low_space);
}

}  // namespace pando::manager
