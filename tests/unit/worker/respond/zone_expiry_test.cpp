#include "worker/respond/zone_expiry.h"

#include <gtest/gtest.h>

#include "shm/side_table.h"
#include "tests/unit/worker/request_fixture.h"

namespace pando::worker {
namespace zone_expiry_test {

using testing::kNow;

constexpr std::uint32_t kInterval = 86400;  // EXPIRE of the SOA

class ZoneExpiryTest : public testing::RequestTest {
 protected:
  zone::ZoneView zone_ = batch_.view.zone_at(testing::name("secondary.test."));
  zone::ZoneSettings secondary_ = cache_.zone(zone_)->settings;
  zone::ZoneSettings primary_ =
      cache_.zone(batch_.view.zone_at(testing::name("example.com.")))->settings;
  shm::Store::SideEntry* side_ = store_->store().side(zone_.side_index());
};

TEST_F(ZoneExpiryTest, AZoneExpiresAtItsTimeAndNeverWithoutOne) {
  EXPECT_FALSE(expiry_.expired(zone_, kNow));
  side_->expires_at.store(kNow);
  EXPECT_FALSE(expiry_.expired(zone_, kNow - 1));
  EXPECT_TRUE(expiry_.expired(zone_, kNow));
}

TEST_F(ZoneExpiryTest, ASecondaryTellsTheRemainingTimeAndAPrimaryTheWhole) {
  side_->expires_at.store(kNow + 60);
  EXPECT_EQ(expiry_.remaining(zone_, secondary_, kNow), 60U);
  EXPECT_EQ(expiry_.remaining(zone_, primary_, kNow), kInterval);
  EXPECT_FALSE(expiry_.remaining(zone_, secondary_, kNow + 60)) << "expired";
  side_->expires_at.store(kNow + 10 * kInterval);
  EXPECT_EQ(expiry_.remaining(zone_, secondary_, kNow), kInterval) << "never above the SOA's";
}

TEST_F(ZoneExpiryTest, NobodyIsToServeAZoneForLongerThanItsSignaturesLast) {
  shm::signatures_end(*side_).store(kNow + 30);
  side_->expires_at.store(kNow + 60);
  EXPECT_EQ(expiry_.remaining(zone_, secondary_, kNow), 30U);
  EXPECT_EQ(expiry_.remaining(zone_, primary_, kNow), 30U);
  EXPECT_EQ(expiry_.remaining(zone_, primary_, kNow + 30), kInterval) << "they have ended";
}

TEST_F(ZoneExpiryTest, WithoutASideEntryAZoneDoesNotExpire) {
  const ZoneExpiry expiry([](std::uint32_t) { return nullptr; });
  EXPECT_FALSE(expiry.expired(zone_, kNow));
  EXPECT_EQ(expiry.remaining(zone_, secondary_, kNow), kInterval);
}

}  // namespace zone_expiry_test
}  // namespace pando::worker
