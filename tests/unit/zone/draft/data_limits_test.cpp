#include "zone/draft/data_limits.h"

#include <gtest/gtest.h>

namespace pando::zone {
namespace data_limits_test {

TEST(DataLimits, SnapshotsMayHaveALargerChangesetAndNoneIsLargerThanItsPiecesAllow) {
  DataLimits limits;
  limits.history = 1000;
  EXPECT_EQ(limits.largest_changeset(false), 1000U);
  EXPECT_GT(limits.largest_changeset(true), 1000U);
  limits.history = UINT64_MAX;
  EXPECT_LT(limits.largest_changeset(false), UINT64_MAX);
  EXPECT_EQ(limits.largest_changeset(true), limits.largest_changeset(false));
}

}  // namespace data_limits_test
}  // namespace pando::zone
