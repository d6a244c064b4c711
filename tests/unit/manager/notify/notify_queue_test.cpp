#include "manager/notify/notify_queue.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/net/token_bucket.h"
#include "tests/unit/manager/zone_support.h"

namespace pando::manager {
namespace notify_queue_test {

using testing::name;
using Tell = NotifyQueue::Tell;

constexpr std::uint64_t kPause = 1000;

NotifyQueue::Options small() { return {3, kPause, 2, 2}; }
NotifyQueue::Outcome silence() { return {dns::Serial{1}, 7, "no answer", false, 0}; }
NotifyQueue::Outcome success() { return {dns::Serial{1}, 7, "NOERROR", true, 0}; }

/// Lets all tries of what is pending about the zone end without an answer.
Tell give_up(NotifyQueue& queue, const dns::Name& zone, std::uint64_t now) {
  EXPECT_TRUE(queue.add(zone, now));
  Tell tell = Tell::kNothing;
  while (const auto due = queue.next_due()) {
    EXPECT_TRUE(queue.take(*due).has_value());
    tell = queue.unanswered(zone, silence(), *due);
  }
  return tell;
}

TEST(NotifyQueue, ChangesWithinTheDelayAreOneNotify) {
  NotifyQueue queue(small());
  EXPECT_TRUE(queue.add(name("a"), 100));
  EXPECT_TRUE(queue.add(name("A"), 150)) << "the same zone";
  EXPECT_EQ(queue.next_due(), 100U);
  EXPECT_FALSE(queue.take(99));
  const auto next = queue.take(100);
  ASSERT_TRUE(next.has_value());
  EXPECT_EQ(next->zone, name("a"));
  EXPECT_EQ(queue.answered(name("a"), success(), 101), Tell::kNothing);
  EXPECT_FALSE(queue.next_due());
  EXPECT_EQ(queue.waiting(), 0U) << "nothing is kept of a zone that has been notified";
}

TEST(NotifyQueue, AProbeDoesNotCountAsATry) {
  NotifyQueue queue(small());
  queue.add(name("a"), 0);
  ASSERT_TRUE(queue.take(0));
  queue.try_again(name("a"), 100);
  EXPECT_EQ(queue.next_due(), 100U);
  EXPECT_EQ(queue.take(100)->number, 1U);
}

TEST(NotifyQueue, PausesEndAndTriesCountOn) {
  NotifyQueue queue(small());
  queue.add(name("a"), 0);
  queue.add(name("b"), 5000);
  ASSERT_TRUE(queue.take(0));
  queue.unanswered(name("a"), silence(), 10);
  EXPECT_EQ(queue.next_due(), 10 + kPause);
  queue.end_pauses(20);
  EXPECT_EQ(queue.next_due(), 20U);
  EXPECT_EQ(queue.take(20)->number, 2U);
  EXPECT_EQ(queue.next_due(), 5000U) << "a delay before the first try is no pause";
}

TEST(NotifyQueue, ChangesWhileOneIsUnderWayAreOneMore) {
  NotifyQueue queue(small());
  queue.add(name("a"), 100);
  ASSERT_TRUE(queue.take(100));
  queue.add(name("a"), 110);
  queue.add(name("a"), 120);
  EXPECT_FALSE(queue.take(1000)) << "not two at a time";
  queue.answered(name("a"), success(), 105);
  EXPECT_EQ(queue.next_due(), 110U);
  EXPECT_EQ(queue.take(110)->number, 1U);
  queue.answered(name("a"), success(), 111);
  EXPECT_FALSE(queue.next_due());
}

TEST(NotifyQueue, TriesAreCountedAndPausesDouble) {
  NotifyQueue queue(small());
  queue.add(name("a"), 0);
  std::vector<std::uint64_t> pauses;
  for (std::uint64_t now = 0; queue.next_due();) {
    const auto next = queue.take(*queue.next_due());
    queue.unanswered(name("a"), silence(), now);
    if (queue.next_due()) pauses.push_back(*queue.next_due() - now);
    if (queue.next_due()) now = *queue.next_due();
    EXPECT_LE(next->number, 3U);
  }
  EXPECT_EQ(pauses, (std::vector<std::uint64_t>{kPause, 2 * kPause}));
  EXPECT_EQ(queue.waiting(), 0U);
}

TEST(NotifyQueue, ChangesDoNotHurryARemoteThatIsSilent) {
  NotifyQueue queue(small());
  queue.add(name("a"), 0);
  ASSERT_TRUE(queue.take(0));
  queue.unanswered(name("a"), silence(), 0);
  queue.add(name("a"), 1);
  EXPECT_EQ(queue.next_due(), kPause);
  ASSERT_TRUE(queue.take(kPause));
  queue.add(name("a"), kPause + 1);
  queue.unanswered(name("a"), silence(), kPause);
  EXPECT_GE(*queue.next_due(), 2 * kPause);
}

TEST(NotifyQueue, FailuresAreToldMoreAndMoreRarely) {
  NotifyQueue queue(small());
  std::vector<int> notified;
  for (int i = 1; i <= 16; ++i)
    if (give_up(queue, name("a"), static_cast<std::uint64_t>(i) * 100'000) == Tell::kFailed)
      notified.push_back(i);
  EXPECT_EQ(notified, (std::vector<int>{1, 2, 4, 8, 16}));
  queue.add(name("a"), 10'000'000);
  queue.take(10'000'000);
  EXPECT_EQ(queue.answered(name("a"), success(), 10'000'001), Tell::kWorksAgain);
  EXPECT_EQ(give_up(queue, name("a"), 20'000'000), Tell::kFailed) << "counted anew";
}

TEST(NotifyQueue, AnErrorIsAFailureAndIsNotTriedAgain) {
  NotifyQueue queue(small());
  queue.add(name("a"), 0);
  queue.take(0);
  NotifyQueue::Outcome refused{dns::Serial{1}, 7, "REFUSED", false, 0};
  EXPECT_EQ(queue.answered(name("a"), refused, 1), Tell::kFailed);
  EXPECT_FALSE(queue.next_due());
  ASSERT_NE(queue.last(name("a")), nullptr);
  EXPECT_EQ(queue.last(name("a"))->text, "REFUSED");
}

TEST(NotifyQueue, HoldsSoManyZonesAndOutcomes) {
  NotifyQueue queue(small());
  EXPECT_TRUE(queue.add(name("a"), 0));
  EXPECT_TRUE(queue.add(name("b"), 0));
  EXPECT_FALSE(queue.add(name("c"), 0));
  EXPECT_TRUE(queue.add(name("a"), 0)) << "is there";
  for (const char* zone : {"a", "b", "c"}) {
    queue.add(name(zone), 0);
    queue.take(0);
    queue.answered(name(zone), success(), 1);
  }
  EXPECT_EQ(queue.last(name("a")), nullptr) << "the oldest makes room";
  EXPECT_NE(queue.last(name("b")), nullptr);
  EXPECT_NE(queue.last(name("c")), nullptr);
}

TEST(NotifyQueue, BacklogGivesEachZoneOnce) {
  NotifyQueue queue(small());
  queue.put_off_all(5);
  EXPECT_EQ(queue.next_put_off(), 0U);
  EXPECT_EQ(queue.next_put_off(), 1U);
  queue.put_off(0, 5);
  queue.put_off(3, 5);
  std::vector<std::size_t> rest;
  while (const auto index = queue.next_put_off()) rest.push_back(*index);
  EXPECT_EQ(rest, (std::vector<std::size_t>{2, 3, 4, 0}));
  EXPECT_EQ(queue.put_off_count(), 0U);
  queue.put_off(4, 6);
  EXPECT_EQ(queue.next_put_off(), 4U);
  EXPECT_FALSE(queue.next_put_off());
}

TEST(TokenBucket, IsEvenAfterABurst) {
  TokenBucket pace(10, 3);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(pace.take(1000));
  EXPECT_FALSE(pace.take(1000));
  EXPECT_EQ(pace.next_ms(), 1100U);
  EXPECT_FALSE(pace.take(1099));
  EXPECT_TRUE(pace.take(1100));
  EXPECT_FALSE(pace.take(1150));
  int taken = 0;
  for (std::uint64_t now = 2000; now < 12'000; ++now) taken += pace.take(now) ? 1 : 0;
  EXPECT_EQ(taken, 2 + 100);
}

}  // namespace notify_queue_test
}  // namespace pando::manager
