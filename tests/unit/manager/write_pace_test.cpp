#include "manager/write_pace.h"

#include <gtest/gtest.h>

namespace pando::manager {
namespace {

using Clock = WritePace::Clock;
using std::chrono::milliseconds;

constexpr Clock::time_point kStart{std::chrono::seconds(100)};

TEST(WritePace, SpreadsWhatIsWrittenFasterThanItMay) {
  WritePace pace(1000, kStart);
  EXPECT_EQ(pace.take(100, kStart), kStart + milliseconds(100));
  EXPECT_EQ(pace.take(50, kStart + milliseconds(100)), kStart + milliseconds(150));
  EXPECT_EQ(pace.take(50, kStart + milliseconds(155)), kStart + milliseconds(200))
      << "a sleep that ended late is made up for";
}

TEST(WritePace, TimeThatTheDiskTookIsNotMadeUpFor) {
  WritePace pace(1000, kStart);
  const Clock::time_point late = kStart + std::chrono::seconds(30);
  EXPECT_EQ(pace.take(100, late), late + milliseconds(100) - WritePace::kSlack);
  EXPECT_EQ(pace.take(100, late), late + milliseconds(200) - WritePace::kSlack);
}

TEST(WritePace, WhoeverIsInAHurryDoesNotWait) {
  WritePace pace(1);
  pace.keep(std::uint64_t{1} << 30, [] { return true; });
  int asked = 0;
  pace.keep(1, [&] { return ++asked == 3; });
  EXPECT_EQ(asked, 3) << "it is asked again while the thread sleeps";
}

}  // namespace
}  // namespace pando::manager
