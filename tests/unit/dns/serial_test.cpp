#include <gtest/gtest.h>

#include <random>

#include "dns/types.h"

namespace pando::dns {
namespace serial_test {

TEST(Serial, AheadMeansLessThanHalfTheCircleAway) {
  EXPECT_TRUE(Serial{1}.ahead_of(Serial{0}));
  EXPECT_TRUE(Serial{0x80000000}.ahead_of(Serial{1}));
  EXPECT_FALSE(Serial{0x80000001}.ahead_of(Serial{1})) << "exactly half is undefined";
  EXPECT_FALSE(Serial{1}.ahead_of(Serial{0x80000001})) << "in both directions";
  EXPECT_TRUE(Serial{1}.ahead_of(Serial{0x80000002}));
}

TEST(Serial, NothingIsAheadOfItself) {
  for (const std::uint32_t value : {0U, 1U, 0x7FFFFFFFU, 0x80000000U, 0xFFFFFFFFU})
    EXPECT_FALSE(Serial{value}.ahead_of(Serial{value}));
}

TEST(Serial, TheOrderGoesOnOverTheWrap) {
  EXPECT_TRUE(Serial{0}.ahead_of(Serial{0xFFFFFFFF}));
  EXPECT_TRUE(Serial{5}.ahead_of(Serial{0xFFFFFFF0}));
  EXPECT_FALSE(Serial{0xFFFFFFF0}.ahead_of(Serial{5}));
}

TEST(Serial, OfTwoSerialsAtMostOneIsAhead) {
  std::mt19937 random(1982);
  for (int i = 0; i < 10000; ++i) {
    const Serial a{static_cast<std::uint32_t>(random())};
    const Serial b{static_cast<std::uint32_t>(random())};
    EXPECT_FALSE(a.ahead_of(b) && b.ahead_of(a));
    EXPECT_TRUE(a == b || a.ahead_of(b) || b.ahead_of(a) || a.value - b.value == 0x80000000);
  }
}

TEST(Serial, TheNextIsAheadAndNeverZero) {
  EXPECT_EQ(Serial{41}.next(), Serial{42});
  EXPECT_EQ(Serial{0xFFFFFFFF}.next(), Serial{1});
  for (const std::uint32_t value : {0U, 0x7FFFFFFFU, 0xFFFFFFFEU, 0xFFFFFFFFU})
    EXPECT_TRUE(Serial{value}.next().ahead_of(Serial{value}));
}

}  // namespace serial_test
}  // namespace pando::dns
