#include "zone/dnssec/nsec3_chain.h"

#include <gtest/gtest.h>

#include <utility>

namespace pando::zone {
namespace nsec3_chain_test {

dns::Nsec3Hash hash(std::uint8_t first) {
  dns::Nsec3Hash made{};
  made[0] = first;
  return made;
}

TEST(Nsec3Chain, LinksOfSeveralCollectionsAreInTheOrderOfHashes) {
  Nsec3Chain chain, other;
  chain.add(hash(9), Bytes{1});
  chain.add(hash(2), Bytes{2});
  other.add(hash(5), Bytes{3});
  other.add(hash(7), Bytes{1});
  Nsec3Chain all;
  all.add_all(std::move(chain));
  all.add_all(std::move(other));
  ASSERT_TRUE(all.close());
  ASSERT_EQ(all.size(), 4U);
  const std::vector<std::pair<int, Bytes>> wanted{{2, {2}}, {5, {3}}, {7, {1}}, {9, {1}}};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(all.hash(i)[0], wanted[i].first);
    EXPECT_EQ(all.next(i)[0], wanted[(i + 1) % 4].first);
    EXPECT_TRUE(std::ranges::equal(all.type_bitmap(i), wanted[i].second)) << i;
  }
}

TEST(Nsec3Chain, OneLinkPointsToItself) {
  Nsec3Chain chain;
  chain.add(hash(1), {});
  ASSERT_TRUE(chain.close());
  EXPECT_EQ(chain.next(0), chain.hash(0));
}

TEST(Nsec3Chain, TwoNamesOfOneHashAreAnError) {  // RFC 5155 §7.1
  Nsec3Chain chain;
  for (const int one : {3, 1, 2, 3}) chain.add(hash(static_cast<std::uint8_t>(one)), {});
  const auto closed = chain.close();
  ASSERT_FALSE(closed);
  EXPECT_EQ(closed.error().code, Errc::kInvalid);
}

}  // namespace nsec3_chain_test
}  // namespace pando::zone
