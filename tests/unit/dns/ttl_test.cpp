#include <gtest/gtest.h>

#include "dns/ttl_text.h"

namespace pando::dns {
namespace ttl_test {

TEST(TtlText, PlainNumberIsSeconds) {
  EXPECT_EQ(ttl_from_text("0").value(), 0U);
  EXPECT_EQ(ttl_from_text("3600").value(), 3600U);
  EXPECT_EQ(ttl_from_text("0000000000000003600").value(), 3600U);
  EXPECT_EQ(ttl_from_text("4294967295").value(), 4294967295U);
}

TEST(TtlText, UnitsAddUpInAnyCaseAndOrder) {
  EXPECT_EQ(ttl_from_text("1w2d3h4m5s").value(), 604800U + 172800U + 10800U + 240U + 5U);
  EXPECT_EQ(ttl_from_text("5S4M3H2D1W").value(), 604800U + 172800U + 10800U + 240U + 5U);
  EXPECT_EQ(ttl_from_text("90m").value(), 5400U);
  EXPECT_EQ(ttl_from_text("1h1h").value(), 7200U);
}

TEST(TtlText, NumberWithoutUnitBesideUnitsIsRefused) {
  EXPECT_FALSE(ttl_from_text("1h30"));
  EXPECT_FALSE(ttl_from_text("3600 1h"));
}

TEST(TtlText, WhatIsNoTimeIsRefused) {
  for (const char* text : {"", "h", "-1", "+1", "1x", "1hh", "A", "1.5h", "0x10", "1h ", " 1h"})
    EXPECT_FALSE(ttl_from_text(text)) << text;
}

TEST(TtlText, MoreThan32BitsIsRefused) {
  EXPECT_FALSE(ttl_from_text("4294967296"));
  EXPECT_FALSE(ttl_from_text("99999999999999999999999999999999"));
  EXPECT_FALSE(ttl_from_text("99999999999999999999999999999999w"));
  EXPECT_FALSE(ttl_from_text("7102w"));
  EXPECT_TRUE(ttl_from_text("7101w"));
}

}  // namespace ttl_test
}  // namespace pando::dns
