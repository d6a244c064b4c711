#include "worker/respond/question_sampler.h"

#include <gtest/gtest.h>

#include <array>

namespace pando::worker {
namespace question_sampler_test {

TEST(QuestionSampler, ChoosesAShareAndNobodyInTurn) {
  QuestionSampler sampler;
  constexpr std::size_t kTurn = 16;
  constexpr std::uint64_t kQuestions = 1'600'000;
  std::array<std::uint64_t, kTurn> chosen{};
  for (std::uint64_t i = 0; i < kQuestions; ++i)
    if (sampler.chooses_next()) ++chosen[i % kTurn];
  for (const std::uint64_t one : chosen)
    EXPECT_NEAR(static_cast<double>(one), kQuestions / kTurn / ipc::kQuestionsPerNote, 600);
}

}  // namespace question_sampler_test
}  // namespace pando::worker
