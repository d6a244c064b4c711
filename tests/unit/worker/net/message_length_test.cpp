#include "worker/net/message_length.h"

#include <gtest/gtest.h>

namespace pando::worker {
namespace message_length_test {

const Bytes kQuery{0, 2, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 'a', 0, 0, 1, 0, 1};

Bytes joined(Bytes front, const Bytes& back) {
  front.insert(front.end(), back.begin(), back.end());
  return front;
}

TEST(MessageLength, EndsBehindTheLastRecord) {
  EXPECT_EQ(message_length(kQuery), kQuery.size());
  EXPECT_EQ(message_length(joined(kQuery, Bytes(100, 0xFF))), kQuery.size());
  Bytes with_opt = joined(kQuery, {0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 4, 0, 10, 0, 0});
  with_opt[11] = 1;
  EXPECT_EQ(message_length(joined(with_opt, Bytes(9, 1))), with_opt.size());
}

TEST(MessageLength, IsZeroForWhatDoesNotEnd) {
  for (std::size_t size = 0; size < kQuery.size(); ++size)
    EXPECT_EQ(message_length(ByteView(kQuery).first(size)), 0U) << size;
  Bytes many = kQuery;
  many[4] = many[6] = many[8] = many[10] = 0xFF;
  EXPECT_EQ(message_length(many), 0U);
  EXPECT_EQ(message_length(Bytes(4096, 0xFF)), 0U);
}

TEST(MessageLength, CountsALoadBalancersHeader) {
  const Bytes header{0x0D, 0x0A, 0x0D, 0x0A, 0x00, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A,
                     0x21, 0x12, 0,    12,   192,  0,    2,    1,    192,  0,    2,    2,
                     0,    1,    0,    53};
  EXPECT_EQ(message_length(joined(header, joined(kQuery, {1, 2, 3}))),
            header.size() + kQuery.size());
}

}  // namespace message_length_test
}  // namespace pando::worker
