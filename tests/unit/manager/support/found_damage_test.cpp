#include "manager/support/found_damage.h"

#include <gtest/gtest.h>

#include <string>

namespace pando::manager {
namespace found_damage_test {

TEST(FoundDamage, IsToldOnceInItsOrder) {
  FoundDamage found;
  for (const char* text : {"a record", "an image", "a record"}) found.add(text);
  ASSERT_EQ(found.rows().size(), 2U);
  EXPECT_EQ(found.rows()[0].text, "a record");
  EXPECT_EQ(found.rows()[1].text, "an image");
  EXPECT_GT(found.rows()[0].found_at, 0U);
}

TEST(FoundDamage, OfAFailingDiskIsBounded) {
  FoundDamage found;
  for (std::size_t number = 0; number < 2 * FoundDamage::kMaxRows; ++number)
    found.add(std::to_string(number));
  ASSERT_EQ(found.rows().size(), FoundDamage::kMaxRows);
  EXPECT_EQ(found.rows().front().text, "0") << "the first tell which disk it is";
}

}  // namespace found_damage_test
}  // namespace pando::manager
