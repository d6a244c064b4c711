#include "shm/map/victim_set.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

namespace pando::shm {
namespace victim_set_test {

TEST(VictimSet, HasTheChunksThatWereAddedUntilTheyAreRemoved) {
  VictimSet victims(130);
  for (const std::uint32_t chunk : {0U, 63U, 64U, 129U}) victims.add(chunk);
  EXPECT_TRUE(victims.has(0));
  EXPECT_TRUE(victims.has(129));
  EXPECT_FALSE(victims.has(1));
  EXPECT_FALSE(victims.has(130)) << "beyond the limit";
  EXPECT_FALSE(victims.has(UINT32_MAX));
  victims.remove(63);
  EXPECT_FALSE(victims.has(63));
  EXPECT_TRUE(victims.has(64));
  victims.clear();
  for (std::uint32_t chunk = 0; chunk < 130; ++chunk) EXPECT_FALSE(victims.has(chunk));
}

TEST(VictimSet, WalkIsNarrowedEachTimeThatHalfOfItsRoomIsGone) {
  VictimSet victims(64);
  victims.begin_walk(1000);
  EXPECT_FALSE(victims.must_narrow(1000));
  EXPECT_FALSE(victims.must_narrow(500));
  EXPECT_TRUE(victims.must_narrow(499));
  EXPECT_FALSE(victims.must_narrow(499)) << "that is the walk's room now";
  EXPECT_FALSE(victims.must_narrow(249));
  EXPECT_TRUE(victims.must_narrow(248));
  EXPECT_TRUE(victims.must_narrow(0)) << "no room is never enough";
  EXPECT_TRUE(victims.must_narrow(0));
}

/// The live bytes of the chunks that are selected, ascending.
std::vector<std::uint32_t> selected_of(const std::vector<std::uint32_t>& candidates,
                                       std::size_t most, std::uint64_t room) {
  const auto emptiest = std::make_unique<EmptiestChunks>();
  for (const std::uint32_t live : candidates) emptiest->add(live);
  emptiest->select(most, room);
  std::vector<std::uint32_t> taken;
  std::uint64_t gain = 0;
  for (const std::uint32_t live : candidates) {
    if (!emptiest->take(live)) continue;
    taken.push_back(live);
    gain += kChunkBytes - live;
  }
  EXPECT_EQ(taken.size(), emptiest->selected());
  EXPECT_EQ(gain, emptiest->gain());
  std::sort(taken.begin(), taken.end());
  return taken;
}

using Live = std::vector<std::uint32_t>;

TEST(EmptiestChunks, AreThoseWithTheFewestLiveBytes) {
  EXPECT_EQ(selected_of({800, 8, 400, 16, 65'536}, 3, 1 << 20), (Live{8, 16, 400}));
  EXPECT_EQ(selected_of({800, 8, 400}, 10, 1 << 20), (Live{8, 400, 800}));
  EXPECT_EQ(selected_of({}, 10, 1 << 20), Live{});
}

TEST(EmptiestChunks, FitIntoHalfOfTheRoom) {
  EXPECT_EQ(selected_of({800, 800, 800, 800}, 10, 3200), (Live{800, 800}));
  EXPECT_EQ(selected_of({800, 800, 800, 800}, 10, 4799), (Live{800, 800}));
  EXPECT_EQ(selected_of({800, 800, 800, 800}, 10, 4800), (Live{800, 800, 800}));
  EXPECT_EQ(selected_of({800}, 10, 1599), Live{});
  EXPECT_EQ(selected_of({8, 800}, 10, 0), Live{});
}

TEST(EmptiestChunks, OfEqualOnesOnlySoManyAreTaken) {
  EXPECT_EQ(selected_of({80, 80, 80, 16, 80}, 3, 1 << 20), (Live{16, 80, 80}));
  EXPECT_EQ(selected_of({80, 80}, 0, 1 << 20), Live{});
}

}  // namespace victim_set_test
}  // namespace pando::shm
