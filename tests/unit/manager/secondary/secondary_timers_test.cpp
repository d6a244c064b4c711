#include "manager/secondary/secondary_timers.h"

#include <gtest/gtest.h>

namespace pando::manager {
namespace secondary_timers_test {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint64_t kNow = 1'700'000'000;
constexpr std::uint64_t kYear = 365 * 86400;

config::DurationRange range(milliseconds min, milliseconds max) { return {min, max}; }
const config::DurationRange kWide = range(seconds(1), std::chrono::weeks(4));

TEST(SecondaryTimers, AreReadFromTheEndOfTheSoa) {
  Bytes rdata{0, 0};
  for (const std::uint32_t number : {7U, 7200U, 900U, 86401U, 300U}) append_be32(rdata, number);
  const SoaTimers timers = read_timers(rdata);
  EXPECT_EQ(timers.refresh, 7200U);
  EXPECT_EQ(timers.retry, 900U);
  EXPECT_EQ(timers.expire, 86401U);
  rdata.pop_back();
  EXPECT_EQ(read_timers(rdata).refresh, SoaTimers().refresh) << "too short to be a SOA";
}

TEST(SecondaryTimers, AreKeptWithinTheConfiguredLimits) {
  EXPECT_EQ(within(range(seconds(5), seconds(60)), 3), 5U);
  EXPECT_EQ(within(range(seconds(5), seconds(60)), 30), 30U);
  EXPECT_EQ(within(range(seconds(5), seconds(60)), 300), 60U);
  EXPECT_EQ(within(range(milliseconds(100), milliseconds(200)), 0), 1U) << "a pause, always";
  EXPECT_EQ(within(range(seconds(5), seconds(2)), 3), 5U) << "limits the wrong way round";
}

TEST(SecondaryTimers, AZoneOutlivesALookThatFails) {
  EXPECT_EQ(time_to_keep({3600, 600, 86400}, kWide), 86400U);
  EXPECT_EQ(time_to_keep({3600, 600, 3600}, kWide), 4200U) << "EXPIRE as long as REFRESH";
  EXPECT_EQ(time_to_keep({3600, 600, 0}, kWide), 4200U);
  EXPECT_EQ(time_to_keep({3600, 600, 10}, range(seconds(1), seconds(60))), 120U)
      << "the looks are those of the limits";
}

TEST(SecondaryTimers, SumsDoNotOverflow) {
  constexpr std::uint32_t kMaxTime = UINT32_MAX;
  const config::DurationRange all = range(seconds(1), seconds(std::uint64_t{kMaxTime} + 1));
  EXPECT_EQ(time_to_keep({kMaxTime, kMaxTime, kMaxTime}, all), 2 * std::uint64_t{kMaxTime});
}

TEST(SecondaryTimers, APrimaryThatExpiresItselfBoundsTheZone) {
  EXPECT_EQ(expiry_after_contact(0, std::nullopt, kNow, 1000), kNow + 1000);
  EXPECT_EQ(expiry_after_contact(0, 300, kNow, 1000), kNow + 300);
  EXPECT_EQ(expiry_after_contact(kNow + 500, 300, kNow, 1000), kNow + 500) << "another said so";
  EXPECT_EQ(expiry_after_contact(0, 5000, kNow, 1000), kNow + 1000) << "not beyond the SOA";
  EXPECT_EQ(expiry_after_contact(kNow + kYear, 300, kNow, 1000), kNow + 1000)
      << "nor what a clock ahead has left";
}

TEST(SecondaryTimers, ARefreshThatAClockAheadHasSetIsDueNow) {
  EXPECT_EQ(believed_refresh(kNow + 100, kNow, 3600), kNow + 100);
  EXPECT_EQ(believed_refresh(kNow - 100, kNow, 3600), kNow) << "it is due";
  EXPECT_EQ(believed_refresh(0, kNow, 3600), kNow);
  EXPECT_EQ(believed_refresh(kNow + kYear, kNow, 3600), kNow);
}

TEST(SecondaryTimers, AnExpiryThatAClockAheadHasSetIsNoLaterThanAfterAContactNow) {
  EXPECT_EQ(believed_expiry(kNow + 100, kNow, 86400), kNow + 100);
  EXPECT_EQ(believed_expiry(kNow - 100, kNow, 86400), kNow - 100) << "expired stays expired";
  EXPECT_EQ(believed_expiry(0, kNow, 86400), kNow + 86400) << "nobody knows of the last contact";
  EXPECT_EQ(believed_expiry(kNow + kYear, kNow, 86400), kNow + 86400);
}

TEST(SecondaryTimers, SmallStepsOfTheClockAreNoJump) {
  EXPECT_FALSE(went_back(kNow, kNow));
  EXPECT_FALSE(went_back(kNow, kNow + 3600));
  EXPECT_FALSE(went_back(kNow, kNow - 60));
  EXPECT_TRUE(went_back(kNow, kNow - 61));
}

}  // namespace secondary_timers_test
}  // namespace pando::manager
