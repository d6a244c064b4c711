#include "manager/support/kept_value.h"

#include <gtest/gtest.h>

namespace pando::manager {
namespace kept_value_test {

using namespace std::chrono_literals;

/// A value for ten seconds, made of a number that grows.
struct Kept {
  int get(int mark, std::chrono::seconds now) {
    return kept.get(mark, KeptValue<int, int>::Clock::time_point(now), [this] { return ++made; });
  }
  std::optional<int> take_old(std::chrono::seconds now) {
    return kept.take_old(KeptValue<int, int>::Clock::time_point(now));
  }
  KeptValue<int, int> kept{10s};
  int made = 0;
};

TEST(KeptValue, IsMadeOnceForItsTime) {
  Kept kept;
  EXPECT_EQ(kept.get(0, 100s), 1);
  EXPECT_EQ(kept.get(0, 109s), 1);
  EXPECT_EQ(kept.get(0, 110s), 2) << "use does not prolong it";
  EXPECT_EQ(kept.get(0, 119s), 2);
}

TEST(KeptValue, IsMadeAnewForAnotherMark) {
  Kept kept;
  EXPECT_EQ(kept.get(7, 100s), 1);
  EXPECT_EQ(kept.get(8, 100s), 2);
  EXPECT_EQ(kept.get(8, 101s), 2);
  EXPECT_EQ(kept.get(7, 101s), 3);
}

TEST(KeptValue, IsTakenOnceItIsOldOrDropped) {
  Kept kept;
  EXPECT_EQ(kept.take_old(100s), std::nullopt);
  EXPECT_EQ(kept.get(0, 100s), 1);
  EXPECT_EQ(kept.take_old(109s), std::nullopt);
  EXPECT_EQ(kept.take_old(110s), 1);
  EXPECT_EQ(kept.take_old(110s), std::nullopt);
  EXPECT_EQ(kept.get(0, 110s), 2);
  kept.kept.drop();
  EXPECT_EQ(kept.get(0, 111s), 3);
  kept.kept.drop();
  EXPECT_EQ(kept.take_old(111s), 3);
}

}  // namespace kept_value_test
}  // namespace pando::manager
