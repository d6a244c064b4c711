#include "worker/xdp/checksum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/unit/worker/xdp/frame_support.h"

namespace pando::worker {
namespace checksum_test {

std::uint16_t checksum(const Bytes& octets) {
  return static_cast<std::uint16_t>(~fold_sum(add_to_sum(0, octets)));
}

TEST(Checksum, TheExampleOfRfc1071) {
  const Bytes octets{0x00, 0x01, 0xF2, 0x03, 0xF4, 0xF5, 0xF6, 0xF7};
  EXPECT_EQ(fold_sum(add_to_sum(0, octets)), 0xDDF2);
}

TEST(Checksum, AnyOctetsAsWordByWord) {
  std::mt19937 random(1);  // NOLINT: the same octets each time
  for (std::size_t size = 0; size < 300; ++size)
    for (int round = 0; round < 20; ++round) {
      Bytes octets(size);
      const bool full = round == 0;  // all carries
      std::generate(octets.begin(), octets.end(), [&] {
        return full ? std::uint8_t{0xFF} : static_cast<std::uint8_t>(random());
      });
      ASSERT_EQ(checksum(octets), frame_support::naive_checksum(octets)) << size;
    }
}

TEST(Checksum, ASumMayBeTakenInParts) {
  std::mt19937 random(2);  // NOLINT: the same octets each time
  Bytes octets(100);
  std::generate(octets.begin(), octets.end(), [&] { return static_cast<std::uint8_t>(random()); });
  for (std::size_t at = 0; at <= octets.size(); at += 2) {
    const ByteView all(octets);
    const std::uint64_t parts = add_to_sum(add_to_sum(0, all.first(at)), all.subspan(at));
    EXPECT_EQ(fold_sum(parts), fold_sum(add_to_sum(0, all))) << at;
  }
}

}  // namespace checksum_test
}  // namespace pando::worker
