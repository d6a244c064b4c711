#include "base/bytes.h"

#include <gtest/gtest.h>

namespace pando {
namespace bytes_test {

TEST(CompareBytes, ThePrefixComesFirst) {
  EXPECT_LT(compare_bytes(Bytes{1, 2}, Bytes{1, 2, 0}), 0);
  EXPECT_GT(compare_bytes(Bytes{1, 2, 0}, Bytes{1, 2}), 0);
  EXPECT_LT(compare_bytes({}, Bytes{0}), 0);
  EXPECT_EQ(compare_bytes({}, {}), 0);
}

TEST(CompareBytes, BytesHaveNoSign) {
  EXPECT_LT(compare_bytes(Bytes{0x7F}, Bytes{0x80}), 0);
  EXPECT_GT(compare_bytes(Bytes{0xFF}, Bytes{0, 1}), 0);
  EXPECT_EQ(compare_bytes(Bytes{7, 8}, Bytes{7, 8}), 0);
}

}  // namespace bytes_test
}  // namespace pando
