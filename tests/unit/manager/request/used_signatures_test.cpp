#include "manager/request/used_signatures.h"

#include <gtest/gtest.h>

namespace pando::manager {
namespace used_signatures_test {

UsedSignatures::Signature signature(std::uint8_t octet) {
  return UsedSignatures::signature_of(Bytes(32, octet));
}

TEST(UsedSignatures, AreKnownForAsLongAsTheyVerify) {
  UsedSignatures used;
  used.add(signature(1), 1300, 1000);
  EXPECT_TRUE(used.has(signature(1)));
  EXPECT_FALSE(used.has(signature(2)));
  used.add(signature(2), 1600, 1300);
  EXPECT_TRUE(used.has(signature(1))) << "verifies in this second still";
  used.add(signature(3), 1601, 1301);
  EXPECT_FALSE(used.has(signature(1)));
  EXPECT_EQ(used.size(), 2U);
}

TEST(UsedSignatures, ARemovedOneMayComeAgain) {
  UsedSignatures used;
  used.add(signature(1), 1300, 1000);
  used.remove(signature(1));
  EXPECT_FALSE(used.has(signature(1)));
}

TEST(UsedSignatures, TheirNumberIsBounded) {
  UsedSignatures used(3);
  for (std::uint8_t i = 1; i <= 5; ++i) used.add(signature(i), 2000, 1000);
  EXPECT_EQ(used.size(), 3U);
  EXPECT_FALSE(used.has(signature(2)));
  EXPECT_TRUE(used.has(signature(5)));
}

}  // namespace used_signatures_test
}  // namespace pando::manager
