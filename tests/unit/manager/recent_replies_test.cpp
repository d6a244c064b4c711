#include "manager/recent_replies.h"

#include <gtest/gtest.h>

namespace pando::manager {
namespace {

using Verdict = RecentReplies::Verdict;

const Endpoint kClient = Endpoint::from_text("192.0.2.1@1000").value();
const Bytes kMessage = {1, 2, 3};

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

TEST(RecentReplies, ARetransmissionGetsTheFirstAnswer) {
  RecentReplies recent;
  Sink first, second;
  const auto admitted = recent.admit(kClient, kMessage, 0, first.reply());
  EXPECT_EQ(admitted.verdict, Verdict::kNew);
  recent.finish(admitted.number, {9});
  EXPECT_EQ(recent.admit(kClient, kMessage, 100, second.reply()).verdict, Verdict::kAnswered);
  EXPECT_EQ(first.last, Bytes{9});
  EXPECT_EQ(second.last, Bytes{9});
}

TEST(RecentReplies, ARetransmissionBeforeTheAnswerWaitsForIt) {
  RecentReplies recent;
  Sink first, second;
  const auto admitted = recent.admit(kClient, kMessage, 0, first.reply());
  EXPECT_EQ(recent.admit(kClient, kMessage, 1, second.reply()).verdict, Verdict::kAnswered);
  EXPECT_EQ(second.calls, 0);
  recent.finish(admitted.number, {9});
  EXPECT_EQ(second.last, Bytes{9});
}

TEST(RecentReplies, EachRetransmissionIsRepliedToHoweverManyWait) {
  RecentReplies recent;
  Sink sink;
  constexpr int kCopies = 100;
  const auto admitted = recent.admit(kClient, kMessage, 0, sink.reply());
  for (int i = 1; i < kCopies; ++i) recent.admit(kClient, kMessage, 1, sink.reply());
  recent.finish(admitted.number, {9});
  EXPECT_EQ(sink.calls, kCopies);
}

TEST(RecentReplies, AnotherPortAddressOrMessageIsAnotherRequest) {
  RecentReplies recent;
  Sink sink;
  recent.admit(kClient, kMessage, 0, sink.reply());
  Endpoint other = kClient;
  other.port = 1001;
  EXPECT_EQ(recent.admit(other, kMessage, 0, sink.reply()).verdict, Verdict::kNew);
  other = Endpoint::from_text("192.0.2.2@1000").value();
  EXPECT_EQ(recent.admit(other, kMessage, 0, sink.reply()).verdict, Verdict::kNew);
  EXPECT_EQ(recent.admit(kClient, Bytes{1, 2, 4}, 0, sink.reply()).verdict, Verdict::kNew);
}

TEST(RecentReplies, AfterItsLifeARequestIsNewAgain) {
  RecentReplies recent(1024, 1000);
  Sink sink;
  recent.finish(recent.admit(kClient, kMessage, 0, sink.reply()).number, {9});
  EXPECT_EQ(recent.admit(kClient, kMessage, 999, sink.reply()).verdict, Verdict::kAnswered);
  EXPECT_EQ(recent.admit(kClient, kMessage, 1000, sink.reply()).verdict, Verdict::kNew);
}

TEST(RecentReplies, TheNumberOfFinishedOnesIsBounded) {
  RecentReplies recent(16);
  Sink sink;
  for (std::uint8_t i = 0; i < 100; ++i)
    recent.finish(recent.admit(kClient, Bytes{i}, 0, sink.reply()).number, {i});
  EXPECT_LE(recent.size(), 16U);
  EXPECT_EQ(recent.admit(kClient, Bytes{99}, 0, sink.reply()).verdict, Verdict::kAnswered);
  EXPECT_EQ(recent.admit(kClient, Bytes{0}, 0, sink.reply()).verdict, Verdict::kNew);
}

}  // namespace
}  // namespace pando::manager
