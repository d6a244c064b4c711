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

TEST(CopyOctets, CopiesEachLengthAndNothingBehindIt) {
  Bytes from(40);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::uint8_t>(i + 1);
  for (std::size_t count = 0; count <= from.size(); ++count) {
    const Bytes source(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(count));
    Bytes expected = source;
    expected.resize(count + 9, 0xEE);
    Bytes found(count + 9, 0xEE);
    copy_octets(found.data(), source);  // ASan sees a read behind `source`
    EXPECT_EQ(found, expected) << count;
  }
}

}  // namespace bytes_test
}  // namespace pando
