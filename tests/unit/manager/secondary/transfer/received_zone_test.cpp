#include "manager/secondary/transfer/received_zone.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/manager/zone_support.h"

namespace pando::manager {
namespace received_zone_test {

using testing::name;
using testing::record;

const std::vector<std::string> kServed = {"@ 3600 SOA ns1 admin 7 3600 600 86400 300",
                                          "@ 300 NS ns1", "a 300 A 192.0.2.1"};
const std::vector<std::string> kFresh = {"@ 3600 SOA ns1 admin 8 3600 600 86400 300",
                                         "@ 300 NS ns1", "a 300 A 192.0.2.2"};

class Received : public ::testing::Test {
 protected:
  ReceivedZone& begin(const zone::DataLimits& limits = zone::DataLimits::none()) {
    transaction_.emplace(served_.store().begin_private());
    return zone_.emplace(name("@"), limits, *transaction_);
  }
  Status add(const std::vector<std::string>& lines) {
    for (const std::string& line : lines)
      if (auto added = zone_->add(record(line)); !added) return added;
    return {};
  }

  testing::ZoneStore served_{kServed};
  std::optional<shm::Transaction> transaction_;
  std::optional<ReceivedZone> zone_;
};

TEST_F(Received, IsBuiltWhereNobodyWaits) {
  ReceivedZone& zone = begin();
  ASSERT_TRUE(add(kFresh));
  EXPECT_FALSE(zone.waits());
  EXPECT_EQ(zone.comparison(), nullptr);
  EXPECT_EQ(zone.builder().record_count(), 3U);
  EXPECT_TRUE(zone.builder().finish());
}

TEST_F(Received, WaitsFromItsFirstRecordUntilItIsResumed) {
  ReceivedZone& zone = begin();
  zone.wait();
  EXPECT_FALSE(zone.waits()) << "no record yet";
  ASSERT_TRUE(add(kFresh));
  EXPECT_TRUE(zone.waits());
  EXPECT_EQ(zone.builder().record_count(), 0U);
  ASSERT_TRUE(zone.resume(nullptr));
  EXPECT_FALSE(zone.waits());
  EXPECT_EQ(zone.builder().record_count(), 3U);
}

TEST_F(Received, IsComparedWithTheServedZone) {
  const zone::ZoneView live = served_.zone();
  ReceivedZone& zone = begin();
  zone.wait();
  ASSERT_TRUE(add({kFresh[0]}));
  ASSERT_TRUE(zone.resume(&live));
  ASSERT_TRUE(add({kFresh[1], kFresh[2]}));
  ASSERT_NE(zone.comparison(), nullptr);
  ASSERT_TRUE(zone.comparison()->finish());
  const auto changes = zone.comparison()->changeset([](std::uint64_t) { return 100; });
  ASSERT_TRUE(changes && *changes);
  EXPECT_EQ((*changes)->removed.size(), 1U);
  EXPECT_EQ((*changes)->added.size(), 1U);
  zone.drop_comparison();
  EXPECT_EQ(zone.comparison(), nullptr);
}

TEST_F(Received, CanBeBuiltInsteadOfCompared) {
  const zone::ZoneView live = served_.zone();
  ReceivedZone& zone = begin();
  zone.wait();
  ASSERT_TRUE(add({kFresh[0], kFresh[1]}));
  ASSERT_TRUE(zone.resume(&live));
  ASSERT_TRUE(zone.build_instead());
  EXPECT_EQ(zone.comparison(), nullptr);
  ASSERT_TRUE(add({kFresh[2]}));
  EXPECT_EQ(zone.builder().record_count(), 3U);
  EXPECT_TRUE(zone.builder().finish());
}

TEST_F(Received, SkipsAndCountsForeignRecords) {
  ReceivedZone& zone = begin();
  ASSERT_TRUE(add({"other.test. 300 A 192.0.2.1", kFresh[0]}));
  EXPECT_EQ(zone.foreign_records(), 1U);
  EXPECT_EQ(zone.builder().record_count(), 1U);
}

TEST_F(Received, HasALimitOfRecordsWhileItWaits) {
  zone::DataLimits limits = zone::DataLimits::none();
  limits.zone_records = 2;
  ReceivedZone& zone = begin(limits);
  zone.wait();
  const Status added = add(kFresh);
  ASSERT_FALSE(added);
  EXPECT_EQ(added.error().text, "more than 2 records (limits.zone-records)");
}

}  // namespace received_zone_test
}  // namespace pando::manager
