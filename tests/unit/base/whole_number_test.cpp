#include "base/whole_number.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace pando {
namespace whole_number_test {

TEST(WholeNumber, IsTheWholeText) {
  EXPECT_EQ(whole_number<std::uint32_t>("4294967295"), 4294967295U);
  EXPECT_EQ(whole_number<int>("-7"), -7);
  EXPECT_EQ(whole_number<unsigned>("00Ff", 16), 255U);
}

TEST(WholeNumber, OtherTextsAreNone) {
  for (const char* text : {"", " 1", "1 ", "1x", "+1", "-1", "0x1", "4294967296"})
    EXPECT_EQ(whole_number<std::uint32_t>(text), std::nullopt) << text;
}

}  // namespace whole_number_test
}  // namespace pando
