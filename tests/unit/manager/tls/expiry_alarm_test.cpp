#include "manager/tls/expiry_alarm.h"

#include <gtest/gtest.h>

#include <vector>

namespace pando::manager {
namespace expiry_alarm_test {

constexpr std::uint64_t kDay = 86'400;
constexpr std::uint64_t kEnd = 1'800'000'000;

TEST(ExpiryAlarm, RingsOnceAtEachThreshold) {
  ExpiryAlarm alarm;
  std::vector<unsigned> rung;
  for (std::uint64_t now = kEnd - 40 * kDay; now < kEnd + 2 * kDay; now += 600)
    if (const auto days = alarm.look(kEnd, now)) rung.push_back(*days);
  EXPECT_EQ(rung, (std::vector<unsigned>{30, 7, 1, 0}));
}

TEST(ExpiryAlarm, RingsForTheNearestOfSeveralThresholds) {
  ExpiryAlarm alarm;
  EXPECT_EQ(alarm.look(kEnd, kEnd - 3 * kDay), 7U);
  EXPECT_EQ(alarm.look(kEnd, kEnd - 3 * kDay), std::nullopt);
  EXPECT_EQ(alarm.look(kEnd, kEnd + 1), 0U);
  EXPECT_EQ(alarm.look(kEnd, kEnd + 9 * kDay), std::nullopt);
}

TEST(ExpiryAlarm, ItsEdges) {
  const auto first = [](std::uint64_t now) { return ExpiryAlarm().look(kEnd, now); };
  EXPECT_EQ(first(kEnd - 30 * kDay), std::nullopt);
  EXPECT_EQ(first(kEnd - 30 * kDay + 1), 30U);
  EXPECT_EQ(first(kEnd - 7 * kDay), 30U);
  EXPECT_EQ(first(kEnd - kDay), 7U);
  EXPECT_EQ(first(kEnd), 1U);
  EXPECT_EQ(first(kEnd + 1), 0U);
}

TEST(ExpiryAlarm, BeginsAnewWithAnotherCertificate) {
  ExpiryAlarm alarm;
  EXPECT_EQ(alarm.look(kEnd, kEnd - kDay / 2), 1U);
  EXPECT_EQ(alarm.look(kEnd + 90 * kDay, kEnd - kDay / 2), std::nullopt);
  EXPECT_EQ(alarm.look(kEnd + 90 * kDay, kEnd + 65 * kDay), 30U);
  EXPECT_EQ(alarm.look(kEnd, kEnd - kDay / 2), 1U) << "the old one again";
}

TEST(ExpiryAlarm, AClockThatWasPutBackIsNoNews) {
  ExpiryAlarm alarm;
  EXPECT_EQ(alarm.look(kEnd, kEnd - kDay / 2), 1U);
  EXPECT_EQ(alarm.look(kEnd, kEnd - 20 * kDay), std::nullopt);
}

}  // namespace expiry_alarm_test
}  // namespace pando::manager
