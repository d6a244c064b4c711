#include "zone/draft/discarded_blocks.h"

#include <gmock/gmock.h>

#include "tests/unit/zone/draft/zone_fixture.h"

namespace pando::zone {
namespace discarded_blocks_test {

using testing::kSmallZone;
using testing::name;

using DiscardedBlocks = testing::ZoneTest;

TEST_F(DiscardedBlocks, OfReplacedZonesGiveTheirMemoryBack) {
  ASSERT_TRUE(load("example.", kSmallZone));
  std::vector<std::string> lines = kSmallZone;
  for (int i = 0; i < 20'000; ++i)
    lines.push_back("host" + std::to_string(i) + ".example. 60 A 192.0.2.1");
  const auto dismantle = [&] {
    for (bool done = false; !done;) {
      const auto step = commit([](Draft& draft) { return dismantle_discarded(draft, 1000); });
      ASSERT_TRUE(step) << step.error().text;
      done = *step;
    }
  };
  dismantle();
  const std::uint64_t small = store_->stats().live_bytes;
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(load("example.", lines));
    ASSERT_TRUE(load("example.", kSmallZone));
    dismantle();
  }
  EXPECT_LE(store_->stats().live_bytes, small + 4096);
  ASSERT_TRUE(commit([](Draft& draft) { return draft.remove_zone(name("example.")); }));
  dismantle();
  EXPECT_LT(store_->stats().live_bytes, small);
}

}  // namespace discarded_blocks_test
}  // namespace pando::zone
