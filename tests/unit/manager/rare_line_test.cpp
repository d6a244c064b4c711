#include "manager/rare_line.h"

#include <gtest/gtest.h>

namespace pando::manager {
namespace {

constexpr std::uint64_t kNow = 1'800'000'000'000;

TEST(RareLine, IsDueAtOnceAndThenOnceASecondForAllThatCameMeanwhile) {
  RareLine line;
  EXPECT_EQ(line.one_more(kNow), 1U);
  EXPECT_FALSE(line.one_more(kNow));
  EXPECT_FALSE(line.one_more(kNow + 999));
  EXPECT_EQ(line.one_more(kNow + 1000), 3U);
  EXPECT_FALSE(line.one_more(kNow + 1001));
}

TEST(RareLine, HasThePauseThatItIsGiven) {
  RareLine line(60'000);
  EXPECT_EQ(line.one_more(kNow), 1U);
  EXPECT_FALSE(line.one_more(kNow + 59'999));
  EXPECT_EQ(line.one_more(kNow + 60'000), 2U);
}

TEST(RareLine, IsNotSilentForAnHourWhenTheClockIsSetBack) {
  RareLine line;
  EXPECT_TRUE(line.one_more(kNow));
  EXPECT_EQ(line.one_more(kNow - 3'600'000), 1U);
}

}  // namespace
}  // namespace pando::manager
