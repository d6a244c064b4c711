#include "base/rare_value.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace pando {
namespace rare_value_test {

using Text = RareValue<std::string>;

TEST(RareValue, IsAbsentAtFirstAndInTheRoomOfAPointer) {
  EXPECT_FALSE(Text());
  EXPECT_FALSE(Text(std::nullopt));
  EXPECT_FALSE(Text(std::optional<std::string>()));
  static_assert(sizeof(Text) == sizeof(void*));
}

TEST(RareValue, CopiesAreDeep) {
  Text first = std::string("one");
  const Text copy = first;
  Text assigned;
  assigned = first;
  first = std::string("two");
  EXPECT_EQ(*copy, "one");
  EXPECT_EQ(*assigned, "one");
  EXPECT_EQ(first->size(), 3U);
  first = *&first;
  EXPECT_EQ(*first, "two");
}

TEST(RareValue, ResetAndMoveLeaveItAbsent) {
  Text first(std::optional<std::string>("one"));
  Text second = std::move(first);
  EXPECT_EQ(*second, "one");
  second.reset();
  EXPECT_FALSE(second);
}

TEST(RareValue, EqualityIsThatOfTheValues) {
  const Text one = std::string("one");
  EXPECT_EQ(one, Text(std::string("one")));
  EXPECT_NE(one, Text(std::string("two")));
  EXPECT_NE(one, Text());
  EXPECT_EQ(Text(), Text());
  EXPECT_EQ(one, std::string("one"));
  EXPECT_NE(Text(), std::string("one"));
}

}  // namespace rare_value_test
}  // namespace pando
