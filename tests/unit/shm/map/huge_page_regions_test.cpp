#include "shm/map/huge_page_regions.h"

#include <gtest/gtest.h>

#include "shm/map/chunk.h"

namespace pando::shm {
namespace huge_page_regions_test {

constexpr std::uint32_t kChunks = 5 * kChunksPerRegion;
using Regions = std::vector<std::uint32_t>;

class HugePages : public ::testing::Test {
 protected:
  Regions pick(std::size_t most = 100) { return regions_.pick_full(0, kChunks, free_, most); }

  HugePageRegions regions_{kChunks};
  Bitmap free_{kChunks};
};

TEST_F(HugePages, AreAskedForOncePerRegionWithoutAFreeChunk) {
  free_.set(kChunksPerRegion);          // the first chunk of region 1
  free_.set(4 * kChunksPerRegion - 1);  // the last one of region 3
  EXPECT_EQ(pick(), (Regions{0, 2, 4}));
  EXPECT_EQ(pick(), Regions{});
  free_.reset(kChunksPerRegion);
  EXPECT_EQ(pick(), Regions{1});
}

TEST_F(HugePages, AreNoMoreThanWasAskedFor) {
  EXPECT_EQ(pick(2), (Regions{0, 1}));
  EXPECT_EQ(pick(2), (Regions{2, 3}));
  EXPECT_EQ(pick(2), Regions{4});
}

TEST_F(HugePages, AreNotAskedForUnderBorrowedChunksOrBehindTheLastChunk) {
  EXPECT_EQ(regions_.pick_full(1, 3 * kChunksPerRegion - 1, free_, 100), Regions{1});
}

TEST_F(HugePages, AreAskedForAgainAfterAChunkLostItsMemory) {
  regions_.note_asked(3);
  EXPECT_EQ(pick(), (Regions{0, 1, 2, 4}));
  regions_.split(2 * kChunksPerRegion - 1, 2);
  EXPECT_EQ(pick(), (Regions{1, 2}));
}

TEST_F(HugePages, AreCountedWhenTheKernelGivesThem) {
  auto* nowhere = reinterpret_cast<std::byte*>(kHugePage);  // below what the kernel maps
  EXPECT_FALSE(regions_.collapse(nowhere)) << "nothing is mapped there";
  EXPECT_EQ(regions_.given(), 0U);
}

}  // namespace huge_page_regions_test
}  // namespace pando::shm
