#include "ipc/seen_clients.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>

namespace pando::ipc {
namespace seen_clients_test {

constexpr std::size_t kLast = kSeenBase + kSeenClients - 1;

TEST(SeenClients, AValueTellsItsClientAndCounts) {
  const std::uint64_t one = seen_hash(*IpAddress::from_text("192.0.2.1"));
  const std::uint64_t other = seen_hash(*IpAddress::from_text("2001:db8::1"));
  const std::uint64_t first = seen_value(one, 1);
  EXPECT_TRUE(is_seen(first, one));
  EXPECT_FALSE(is_seen(first, other));
  EXPECT_FALSE(is_seen(0, one)) << "nobody was seen";
  EXPECT_NE(seen_value(one, first + 1), first) << "a worker counts on from the value itself";
  EXPECT_TRUE(is_seen(seen_value(one, 0xFFFFFF), one)) << "the count does not reach the address";
}

TEST(SeenClients, ANoteIsFoundAtAnyPlace) {
  std::array<std::atomic<std::uint64_t>, kCountersUsed> counters{};
  const std::uint64_t one = seen_hash(*IpAddress::from_text("192.0.2.1"));
  const std::uint64_t other = seen_hash(*IpAddress::from_text("192.0.2.2"));
  EXPECT_EQ(find_seen(counters, one), kSeenBase) << "no place is taken";
  counters[kSeenBase] = seen_value(other, 7);
  EXPECT_EQ(find_seen(counters, one), kSeenBase + 1);
  counters[kLast] = seen_value(one, 7);
  EXPECT_EQ(find_seen(counters, one), kLast);
  EXPECT_EQ(find_seen(counters, other), kSeenBase);
  for (std::size_t index = kSeenBase; index <= kLast; ++index)
    counters[index] = seen_value(other, 1);
  EXPECT_EQ(find_seen(counters, one), 0U) << "all places are others'";
}

}  // namespace seen_clients_test
}  // namespace pando::ipc
