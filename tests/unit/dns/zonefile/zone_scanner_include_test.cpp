#include "dns/zonefile/zone_scanner_include.h"

#include <gtest/gtest.h>

namespace pando::dns {
namespace zone_scanner_include_test {

ScanOptions limits(std::uint32_t depth, std::uint32_t files) {
  ScanOptions options;
  options.max_include_depth = depth;
  options.max_included = files;
  return options;
}

TEST(IncludedFiles, AreForbiddenByAnOption) {
  ScanOptions options;
  options.allow_include = false;
  IncludedFiles files;
  EXPECT_EQ(files.count(options).error().code, Errc::kDenied);
  EXPECT_FALSE(files.any());
}

TEST(IncludedFiles, AreBoundedInDepthAndNumber) {
  IncludedFiles files;
  ASSERT_TRUE(files.count(limits(1, 2)));
  files.enter();
  EXPECT_EQ(files.count(limits(1, 2)).error().text, "$INCLUDE is nested more than 1 deep");
  files.leave(1);
  EXPECT_TRUE(files.count(limits(1, 2))) << "the nested one was not counted";
  EXPECT_EQ(files.count(limits(1, 2)).error().text, "more than 2 files are included");
}

TEST(IncludedFiles, TheHashCoversAllTextInItsOrder) {
  constexpr std::uint64_t kFile = 42;
  IncludedFiles none, ab, ba;
  EXPECT_EQ(none.hash_with(kFile), kFile);
  for (const std::uint64_t hash : {1, 2}) {
    ASSERT_TRUE(ab.count({}));
    ab.enter();
    ab.leave(hash);
    ASSERT_TRUE(ba.count({}));
    ba.enter();
    ba.leave(3 - hash);
  }
  EXPECT_NE(ab.hash_with(kFile), kFile);
  EXPECT_NE(ab.hash_with(kFile), ba.hash_with(kFile));
  EXPECT_EQ(ab.hash_with(0), 0U) << "not known";
}

}  // namespace zone_scanner_include_test
}  // namespace pando::dns
