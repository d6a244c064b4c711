#pragma once

#include <cstdint>

#include "ipc/busy_zones.h"

namespace pando::worker {

/// Chooses one question of kQuestionsPerNote on average. The distances are random: with fixed
/// distances, a client that asks for zones in turn would always have the same zone chosen.
class QuestionSampler {
 public:
  [[nodiscard]] bool chooses_next() noexcept {
    if (--left_ != 0) return false;
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;  // Knuth's MMIX
    left_ = 1 + static_cast<std::uint32_t>((state_ >> 33) % (2 * ipc::kQuestionsPerNote - 1));
    return true;
  }

 private:
  std::uint64_t state_ = 1;
  std::uint32_t left_ = 1;
};

}  // namespace pando::worker
