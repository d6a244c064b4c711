#include "ipc/audit_result.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zone/audit/audit.h"

namespace pando {
namespace store_audit_test {

using ::testing::ElementsAre;

zone::Audit walk() {
  zone::Audit audit;
  audit.usage.trie = 40;
  audit.usage.rdata = 4;
  audit.zones = 1;
  audit.names = 2;
  audit.records = 3;
  audit.fault_count = 200;
  audit.faults = {"one", "two"};
  audit.snapshots = {
      {"a.example.", "old", 10}, {"a.example.", "new", 20}, {"b.example.", "old", 30}};
  return audit;
}

TEST(StoreAudit, HasAllThatTheWalkFound) {
  const ipc::StoreAudit result = ipc::store_audit(walk(), 7);
  EXPECT_EQ(result.version, 7U);
  EXPECT_EQ(result.zones, 1U);
  EXPECT_EQ(result.names, 2U);
  EXPECT_EQ(result.records, 3U);
  EXPECT_EQ(result.bytes, walk().usage.by_name());
  EXPECT_EQ(result.faults_found, 200U);
  EXPECT_THAT(result.faults, ElementsAre("one", "two"));
  EXPECT_THAT(result.snapshots, ElementsAre(ipc::SnapshotUsage{"a.example.", "old", 10},
                                            ipc::SnapshotUsage{"a.example.", "new", 20},
                                            ipc::SnapshotUsage{"b.example.", "old", 30}));
}

TEST(StoreAudit, HasNoMoreSnapshotsThanAreAskedFor) {
  EXPECT_THAT(ipc::store_audit(walk(), 7, 1).snapshots,
              ElementsAre(ipc::SnapshotUsage{"a.example.", "old", 10}));
  EXPECT_TRUE(ipc::store_audit(walk(), 7, 0).snapshots.empty());
}

}  // namespace store_audit_test
}  // namespace pando
