// A store that may take all that references reach, and one that has.

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "shm/chunk_pool.h"
#include "shm/layout.h"
#include "shm/live_file.h"
#include "shm/map/reserve.h"
#include "tests/unit/shm/support.h"

namespace pando::shm {
namespace whole_reach_test {

using namespace test;

/// As the header has it, for people.
std::uint64_t limit_in(const std::string& path) {
  Header header{};
  std::ifstream(path, std::ios::binary).read(reinterpret_cast<char*>(&header), sizeof header);
  return header.size_limit.load();
}

TEST(WholeReach, IsTheLimitWhateverIsConfigured) {
  constexpr std::uint64_t kMaxBytes = kMaxChunks * kChunkBytes;
  static_assert(kMaxBytes < kReach, "the tables are within the reach");
  const Folder folder;
  for (const std::uint64_t configured : {kMaxBytes - kChunkBytes, kMaxBytes, kReach, 2 * kReach}) {
    const auto expect_limit = [&] {
      EXPECT_EQ(limit_in(folder.store()), std::min(configured, kMaxBytes)) << configured;
    };
    {
      const Store made = must(Store::create(options(folder, configured)));
    }
    expect_limit();
    {
      const Store attached = must(Store::attach(options(folder, configured)));
    }
    expect_limit();
  }
}

/// Elsewhere a store that starts so full has a few chunks beyond its limit. Here there are none,
/// and what deletes took as if there were would be compaction's.
TEST(WholeReach, WhenItIsTakenDeletesLeaveCompactionTheRest) {
  constexpr std::uint32_t kFree = 4;
  static_assert(kFree > kLastChunks && kFree < compaction_chunks(kMaxChunks));
  const Folder folder;
  LiveFile file = must(LiveFile::create(options(folder, kReach)));
  must(file.reach(kMaxChunks));  // a hole: it takes no memory
  std::fill_n(file.counts(), kMaxChunks - kFree, 64U);
  ChunkPool pool(file, kMaxChunks);
  pool.adopt({}, 1);
  ASSERT_EQ(pool.reclaim(), kFree) << "nobody reads";
  EXPECT_FALSE(pool.space().leaves(0, Reserve::kHalf));
  constexpr auto kWhole = static_cast<std::uint32_t>(kChunkBytes);
  const auto deletes = pool.take(kWhole, Reserve::kHalf);
  ASSERT_FALSE(deletes);
  EXPECT_EQ(deletes.error().code, Errc::kFull);
  for (std::uint32_t chunk = kMaxChunks - kFree; chunk < kMaxChunks - kLastChunks; ++chunk)
    EXPECT_EQ(must(pool.take(kWhole, Reserve::kAllButLast)).chunk, chunk);
  EXPECT_FALSE(pool.take(kWhole, Reserve::kAllButLast));
  EXPECT_TRUE(pool.take(kWhole, Reserve::kAll));
  EXPECT_FALSE(pool.take(kWhole, Reserve::kAll));
  must(pool.check());
}

}  // namespace whole_reach_test
}  // namespace pando::shm
