#include "base/json_depth.h"

#include <gtest/gtest.h>

#include <string>

namespace pando {
namespace json_depth_test {

TEST(JsonDepth, CountsArraysAndObjectsOutsideOfStrings) {
  EXPECT_TRUE(is_json_shallow("7", 0));
  EXPECT_FALSE(is_json_shallow("[]", 0));
  EXPECT_TRUE(is_json_shallow(R"([{"a":[1]},{"b":[2]}])", 3));
  EXPECT_FALSE(is_json_shallow(R"([{"a":[1]}])", 2));
  EXPECT_TRUE(is_json_shallow(R"(["[[[{{{", "\"[[[", "\\"])", 1));
  EXPECT_FALSE(is_json_shallow(R"(["\\", [[1]]])", 2));
  EXPECT_FALSE(is_json_shallow(std::string(1 << 20, '['), 100));
}

}  // namespace json_depth_test
}  // namespace pando
