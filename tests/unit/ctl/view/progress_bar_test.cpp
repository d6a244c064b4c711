#include "ctl/view/progress_bar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "ctl/view/output.h"

namespace pando::ctl {
namespace progress_bar_test {

using std::chrono::milliseconds;
using ::testing::EndsWith;
using ::testing::HasSubstr;

constexpr ProgressBar::Clock::time_point kStart{std::chrono::seconds(1000)};

TEST(ProgressBar, IsDrawnOverItselfAndGoneAtTheEnd) {
  std::ostringstream err;
  {
    ProgressBar bar(err, true, 200, kStart);
    bar.at(50, kStart + milliseconds(100));
    EXPECT_EQ(err.str(), "") << "what is quick needs none";
    bar.at(100, kStart + milliseconds(500));
    EXPECT_EQ(err.str(), "\r[" + std::string(20, '=') + std::string(20, ' ') + "]  50%");
    bar.at(101, kStart + milliseconds(550));
    EXPECT_THAT(err.str(), EndsWith(" 50%"));
    bar.at(1000, kStart + milliseconds(600));
    EXPECT_THAT(err.str(), EndsWith("100%"));
  }
  EXPECT_THAT(err.str(), EndsWith("\r" + std::string(47, ' ') + "\r"));
}

TEST(ProgressBar, NothingIsDrawnWhereNobodyLooks) {
  std::ostringstream err;
  {
    ProgressBar unseen(err, false, 200, kStart);
    unseen.at(100, kStart + milliseconds(900));
    ProgressBar unknown(err, true, 0, kStart);
    unknown.at(100, kStart + milliseconds(900));
  }
  EXPECT_EQ(err.str(), "");
}

TEST(ProgressBar, SaysWhichPhaseItIsAndCountsWhereTheWholeIsNotKnown) {
  std::ostringstream err;
  {
    ProgressBar bar(err, true, kStart);
    bar.at({Progress::Phase::kReading, 1, 2}, kStart + milliseconds(499));
    EXPECT_EQ(err.str(), "");
    bar.at({Progress::Phase::kBuilding, 1, 2}, kStart + milliseconds(500));
    EXPECT_EQ(err.str(), "\r[" + std::string(20, '=') + std::string(20, ' ') + "]  50% building");
    bar.at({Progress::Phase::kReading, 3 << 20, 0}, kStart + milliseconds(600));
    EXPECT_THAT(err.str(), HasSubstr("\rreading, " + bytes_text(3 << 20) + "   "));
    EXPECT_THAT(err.str(), EndsWith(std::string(20, ' '))) << "over what was longer";
    bar.at({Progress::Phase::kChecking, 0, 0}, kStart + milliseconds(700));
    EXPECT_THAT(err.str(), HasSubstr("\rchecking   "));
  }
  EXPECT_THAT(err.str(), EndsWith("\r" + std::string(56, ' ') + "\r"));
}

}  // namespace progress_bar_test
}  // namespace pando::ctl
