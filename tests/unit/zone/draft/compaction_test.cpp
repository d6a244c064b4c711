#include "zone/draft/compaction.h"

#include <gmock/gmock.h>

#include "tests/unit/zone/draft/zone_fixture.h"

namespace pando::zone {
namespace compaction_test {

using testing::dump;
using testing::kSmallZone;

using Compaction = testing::ZoneTest;

TEST_F(Compaction, EmptiesVictimsAndChangesNothing) {
  std::vector<std::string> lines = kSmallZone;
  for (int i = 0; i < 5'000; ++i)
    lines.push_back("host" + std::to_string(i) + ".example. 60 A 192.0.2.1");
  for (int i = 0; i < 300; ++i)
    lines.push_back("big.example. 60 TXT \"" + std::string(200, 'x') + std::to_string(i) + "\"");
  ASSERT_TRUE(load("example.", lines));
  ASSERT_TRUE(load("other.", {"other. 60 SOA a. b. 1 2 3 4 5", "other. 60 NS a."}));
  for (int i = 0; i < 5'000; i += 3) {
    const std::string owner = "host" + std::to_string(i) + ".example. ";
    ASSERT_TRUE(apply("example.", {owner + "60 A 192.0.2.1"}, {owner + "60 A 192.0.2.2"}));
  }
  const auto before = dump(zone("example."));
  const std::uint64_t live = store_->stats().live_bytes;
  ASSERT_GT(store_->choose_victims(101, 10'000), 0U);
  CompactCursor cursor;
  int slices = 0;
  for (bool done = false; !done; ++slices) {
    ASSERT_LT(slices, 10'000) << "compaction must make progress";
    const auto step = commit([&](Draft& draft) { return compact(draft, cursor, 50); });
    ASSERT_TRUE(step) << step.error().text;
    done = *step;
    if (slices == 20) {  // updates between slices must not disturb it
      ASSERT_TRUE(apply("example.", {"host1.example. 60 A 192.0.2.1"},
                        {"host1.example. 60 A 192.0.2.1", "zz.example. 1 A 192.0.2.9"}));
    }
  }
  store_->reclaim();
  EXPECT_GT(slices, 90);
  auto after = dump(zone("example."));
  std::erase(after, "zz.example. 1 A 192.0.2.9");
  EXPECT_EQ(after, before);
  const auto stats = store_->stats();
  EXPECT_NEAR(static_cast<double>(stats.live_bytes), static_cast<double>(live), 4096);
  EXPECT_LE((stats.chunks_in_use - stats.waiting_chunks) * shm::kChunkBytes,
            stats.live_bytes * 5 / 4 + 4 * shm::kChunkBytes);
}

TEST_F(Compaction, EndsAStepWhoseTimeIsOver) {
  std::vector<std::string> lines = kSmallZone;
  for (int i = 0; i < 1'000; ++i)
    lines.push_back("host" + std::to_string(i) + ".example. 60 A 192.0.2.1");
  ASSERT_TRUE(load("example.", lines));
  ASSERT_GT(store_->choose_victims(101, 10'000), 0U);
  const auto before = dump(zone("example."));
  CompactCursor cursor;
  int steps = 0, looks = 0;
  for (bool done = false; !done; ++steps) {
    ASSERT_LT(steps, 1'000) << "compaction must make progress";
    const auto step = commit([&](Draft& draft) {
      return compact(draft, cursor, 1'000'000, {}, [&] { return ++looks > 0; });
    });
    ASSERT_TRUE(step) << step.error().text;
    done = *step;
  }
  EXPECT_GT(steps, 1'000 / 64) << "a step looks at the time every few names";
  EXPECT_EQ(dump(zone("example.")), before);
}

}  // namespace compaction_test
}  // namespace pando::zone
