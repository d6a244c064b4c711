#include "manager/request/recent_replies.h"

#include <gtest/gtest.h>

#include <utility>

namespace pando::manager {
namespace recent_replies_test {

using Key = RecentReplies::Key;

constexpr std::size_t kMaxOctets = RecentReplies::kMaxOctets;
const Endpoint kClient = Endpoint::from_text("192.0.2.1@1000").value();
const Key kKey = RecentReplies::key_of(kClient, Bytes{1, 2, 3});

struct Sink {
  int calls = 0;
  Bytes last;
  RecentReplies::Reply reply() {
    return [this](Bytes response) {
      ++calls;
      last = std::move(response);
    };
  }
};

/// True: the request is new, and has begun.
bool admit(RecentReplies& recent, const Key& key, std::uint64_t now_ms,
           RecentReplies::Reply reply) {
  if (recent.join(key, reply, now_ms)) return false;
  recent.begin(key, std::move(reply));
  return true;
}

/// Requests of other clients, answered at once.
void answer_others(RecentReplies& recent, std::uint32_t count, std::uint64_t now_ms,
                   const Bytes& response) {
  for (std::uint32_t i = 0; i < count; ++i) {
    const Key key = {~std::uint64_t{i}, i};
    if (admit(recent, key, now_ms, [](const Bytes&) {})) recent.finish(key, response, now_ms);
  }
}

TEST(RecentReplies, ARetransmissionGetsTheFirstAnswer) {
  RecentReplies recent;
  Sink first, second;
  EXPECT_TRUE(admit(recent, kKey, 0, first.reply()));
  recent.finish(kKey, {9}, 0);
  EXPECT_FALSE(admit(recent, kKey, 100, second.reply()));
  EXPECT_EQ(first.last, Bytes{9});
  EXPECT_EQ(second.last, Bytes{9});
}

TEST(RecentReplies, ARetransmissionBeforeTheAnswerWaitsForIt) {
  RecentReplies recent;
  Sink first, second;
  EXPECT_TRUE(admit(recent, kKey, 0, first.reply()));
  EXPECT_FALSE(admit(recent, kKey, 1, second.reply()));
  EXPECT_EQ(second.calls, 0);
  recent.finish(kKey, {9}, 2);
  EXPECT_EQ(second.last, Bytes{9});
}

TEST(RecentReplies, EachRetransmissionIsRepliedToHoweverManyWait) {
  RecentReplies recent;
  Sink sink;
  constexpr int kCopies = 100;
  for (int i = 0; i < kCopies; ++i) admit(recent, kKey, 1, sink.reply());
  recent.finish(kKey, {9}, 1);
  EXPECT_EQ(sink.calls, kCopies);
}

TEST(RecentReplies, AnAnswerIsGivenOnce) {
  RecentReplies recent;
  Sink sink;
  admit(recent, kKey, 0, sink.reply());
  recent.finish(kKey, {9}, 0);
  recent.finish(kKey, {8}, 0);
  EXPECT_EQ(sink.calls, 1);
  admit(recent, kKey, 0, sink.reply());
  EXPECT_EQ(sink.last, Bytes{9});
}

TEST(RecentReplies, AnotherPortAddressOrMessageIsAnotherRequest) {
  const Bytes message = {1, 2, 3};
  EXPECT_EQ(RecentReplies::key_of(kClient, message), kKey);
  EXPECT_NE(RecentReplies::key_of(kClient, Bytes{1, 2, 4}), kKey);
  EXPECT_NE(RecentReplies::key_of(kClient, Bytes{1, 2, 3, 0}), kKey);
  Endpoint other = kClient;
  other.port = 1001;
  EXPECT_NE(RecentReplies::key_of(other, message), kKey);
  other = Endpoint::from_text("192.0.2.2@1000").value();
  EXPECT_NE(RecentReplies::key_of(other, message), kKey);
}

TEST(RecentReplies, AfterItsLifeARequestIsNewAgain) {
  RecentReplies recent(16, kMaxOctets, 1000);
  Sink sink;
  admit(recent, kKey, 0, sink.reply());
  recent.finish(kKey, {9}, 0);
  EXPECT_FALSE(admit(recent, kKey, 999, sink.reply()));
  EXPECT_TRUE(admit(recent, kKey, 1000, sink.reply()));
}

TEST(RecentReplies, TheLifeOfALateAnswerBeginsWhenItIsGiven) {
  RecentReplies recent(16, kMaxOctets, 1000);
  Sink sink;
  admit(recent, kKey, 0, sink.reply());
  recent.finish(kKey, {9}, 5000);
  EXPECT_FALSE(admit(recent, kKey, 5999, sink.reply()));
}

TEST(RecentReplies, EachRepetitionOfNsupdateGetsTheAnswerWhileTenThousandASecondGoThrough) {
  RecentReplies recent;
  Sink sink;
  const Bytes response(150, 7);
  EXPECT_TRUE(admit(recent, kKey, 0, sink.reply()));
  recent.finish(kKey, {9}, 0);
  answer_others(recent, 100'000, 0, response);
  for (const std::uint64_t now_ms : {3000U, 6000U, 9000U}) {
    EXPECT_FALSE(admit(recent, kKey, now_ms, sink.reply())) << now_ms;
    EXPECT_EQ(sink.last, Bytes{9});
  }
}

TEST(RecentReplies, TheNumberOfAnsweredOnesIsBounded) {
  RecentReplies recent(16);
  Sink sink;
  admit(recent, kKey, 0, sink.reply());
  recent.finish(kKey, {9}, 0);
  answer_others(recent, 15, 0, {1});
  EXPECT_FALSE(admit(recent, kKey, 0, sink.reply()));
  answer_others(recent, 16, 0, {1});  // one more than these fifteen
  EXPECT_EQ(recent.size(), 16U);
  EXPECT_TRUE(admit(recent, kKey, 0, sink.reply()));
}

TEST(RecentReplies, AFailureGoesToAllWhoWaitAndIsForgotten) {
  RecentReplies recent;
  Sink first, second, third;
  EXPECT_TRUE(admit(recent, kKey, 0, first.reply()));
  EXPECT_FALSE(admit(recent, kKey, 1, second.reply()));
  recent.fail(kKey, {9});
  EXPECT_EQ(first.last, Bytes{9});
  EXPECT_EQ(second.last, Bytes{9});
  EXPECT_EQ(recent.size(), 0U);
  EXPECT_TRUE(admit(recent, kKey, 2, third.reply()));
  recent.finish(kKey, {1}, 3);
  recent.fail(kKey, {2});
  EXPECT_EQ(third.last, Bytes{1});
  EXPECT_EQ(third.calls, 1) << "it was answered";
  EXPECT_EQ(recent.size(), 1U);
}

TEST(RecentReplies, TheirOctetsAreBounded) {
  RecentReplies recent(1000, 10'000);
  answer_others(recent, 100, 0, Bytes(1000));
  EXPECT_LT(recent.size(), 10U);
  EXPECT_GT(recent.size(), 5U);
  answer_others(recent, 1000, 0, {});
  EXPECT_LT(recent.size(), 200U) << "an entry counts, too, and not its answer alone";
}

TEST(RecentReplies, AnUnansweredOneStaysAndDoesNotKeepTheOthers) {
  RecentReplies recent(16, kMaxOctets, 1000);
  Sink sink;
  admit(recent, kKey, 0, sink.reply());
  answer_others(recent, 100, 0, {1});
  EXPECT_EQ(recent.size(), 17U);
  EXPECT_FALSE(admit(recent, kKey, 2000, sink.reply()));
  EXPECT_EQ(recent.size(), 1U);
  recent.finish(kKey, {9}, 2000);
  EXPECT_EQ(sink.calls, 2);
}

}  // namespace recent_replies_test
}  // namespace pando::manager
