#include "worker/tap/frame_buffer.h"

#include <gtest/gtest.h>

#include <deque>
#include <random>

namespace pando::worker {
namespace frame_buffer_test {

Bytes copy(ByteView octets) { return {octets.begin(), octets.end()}; }

TEST(FrameBuffer, AFrameIsItsLengthAndAllParts) {
  FrameBuffer buffer(100);
  EXPECT_TRUE(buffer.waiting().empty());
  const Bytes a{1, 2}, b, c{3};
  EXPECT_TRUE(buffer.push({a, b, c}));
  EXPECT_EQ(copy(buffer.waiting()), (Bytes{0, 0, 0, 3, 1, 2, 3}));
  EXPECT_EQ(buffer.frames(), 1U);
}

TEST(FrameBuffer, AFrameWithoutRoomIsRefusedAsAWhole) {
  FrameBuffer buffer(20);
  EXPECT_TRUE(buffer.push({Bytes(12, 1)}));
  const Bytes before = copy(buffer.waiting());
  EXPECT_FALSE(buffer.push({Bytes(1, 2)})) << "4 + 12 + 4 + 1 octets are 21";
  EXPECT_EQ(copy(buffer.waiting()), before);
  EXPECT_TRUE(buffer.push({Bytes()}));
  EXPECT_FALSE(buffer.push({Bytes()}));
  EXPECT_FALSE(FrameBuffer(20).push({Bytes(17, 1)}));
}

TEST(FrameBuffer, RoomComesBackWithWholeFrames) {
  FrameBuffer buffer(20);
  ASSERT_TRUE(buffer.push({Bytes(6, 1)}));
  ASSERT_TRUE(buffer.push({Bytes(6, 2)}));
  EXPECT_EQ(buffer.take(9), 0U);
  EXPECT_TRUE(buffer.is_within_frame());
  EXPECT_FALSE(buffer.push({Bytes(6, 3)}));
  EXPECT_EQ(buffer.take(1), 1U);
  EXPECT_FALSE(buffer.is_within_frame());
  EXPECT_TRUE(buffer.push({Bytes(6, 3)}));
  EXPECT_EQ(buffer.take(20), 2U);
  EXPECT_EQ(buffer.frames(), 0U);
}

TEST(FrameBuffer, OctetsComeOutAsTheyWentInWhateverTheStreamTakes) {
  std::mt19937 random(73);
  constexpr std::size_t kMaxBytes = 1000;
  FrameBuffer buffer(kMaxBytes);
  Bytes expected, received;
  std::size_t pushed = 0, refused = 0, taken = 0;
  for (int step = 0; step < 20'000; ++step) {
    if (random() % 2 == 0) {
      const Bytes frame(random() % 120, static_cast<std::uint8_t>(step));
      if (!buffer.push({frame})) {
        ++refused;
        continue;
      }
      ++pushed;
      append_be32(expected, static_cast<std::uint32_t>(frame.size()));
      append(expected, frame);
    } else if (const ByteView waiting = buffer.waiting(); !waiting.empty()) {
      const std::size_t octets = 1 + random() % waiting.size();
      append(received, waiting.first(octets));
      taken += buffer.take(octets);
    }
    ASSERT_LE(buffer.waiting().size(), kMaxBytes);
    ASSERT_EQ(buffer.frames(), pushed - taken);
  }
  append(received, buffer.waiting());
  EXPECT_GT(refused, 0U);
  EXPECT_GT(taken, 1000U);
  EXPECT_EQ(received, expected);
}

TEST(FrameBuffer, LinesHaveNoLengthAndAreCountedByTheirEnds) {
  FrameBuffer buffer(20, FrameBuffer::Form::kLines);
  const Bytes line{'a', 'b', '\n'}, end{'\n'};
  EXPECT_TRUE(buffer.push({line}));
  EXPECT_TRUE(buffer.push({Bytes{'c'}, end}));
  EXPECT_EQ(copy(buffer.waiting()), (Bytes{'a', 'b', '\n', 'c', '\n'}));
  EXPECT_EQ(buffer.take(2), 0U);
  EXPECT_TRUE(buffer.is_within_frame());
  EXPECT_EQ(buffer.take(2), 1U);
  EXPECT_EQ(buffer.take(1), 1U);
  EXPECT_EQ(buffer.frames(), 0U);
  EXPECT_TRUE(buffer.push({Bytes(19, 'x'), end}));
  EXPECT_FALSE(buffer.push({end}));
}

}  // namespace frame_buffer_test
}  // namespace pando::worker
