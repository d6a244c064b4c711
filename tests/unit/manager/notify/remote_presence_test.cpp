#include "manager/notify/remote_presence.h"

#include <gtest/gtest.h>

namespace pando::manager {
namespace remote_presence_test {

constexpr RemotePresence::Options kOptions{.probe_time = 30, .rest = 600};

TEST(RemotePresence, AnUnknownRemoteIsProbedForSomeTimeAfterNews) {
  RemotePresence remote(kOptions);
  EXPECT_FALSE(remote.is_probed(100)) << "there is nothing to tell";
  remote.news(100);
  EXPECT_TRUE(remote.is_probed(129));
  EXPECT_FALSE(remote.is_probed(130));
}

TEST(RemotePresence, ARemoteThatAnswersIsNotProbed) {
  RemotePresence remote(kOptions);
  remote.news(100);
  EXPECT_FALSE(remote.answered()) << "it was not silent";
  EXPECT_FALSE(remote.is_probed(101));
  remote.news(102);
  EXPECT_FALSE(remote.is_probed(102));
}

TEST(RemotePresence, ARemoteThatGoesAwayIsProbedAndItsReturnIsTold) {
  RemotePresence remote(kOptions);
  remote.news(100);
  remote.answered();
  remote.unanswered(110);
  EXPECT_TRUE(remote.is_silent());
  EXPECT_TRUE(remote.is_probed(139));
  EXPECT_FALSE(remote.is_probed(140));
  EXPECT_TRUE(remote.answered());
  EXPECT_FALSE(remote.is_silent());
}

TEST(RemotePresence, ARemoteThatIsAwayForLongIsProbedRarelyHoweverMuchNewsThereIs) {
  RemotePresence remote(kOptions);
  std::uint64_t probed = 0;
  for (std::uint64_t now = 1000; now < 2200; ++now) {
    remote.news(now);
    if (remote.is_probed(now)) ++probed;
    remote.unanswered(now);
  }
  EXPECT_EQ(probed, 2 * kOptions.probe_time);
}

/// A remote whose answers are lost asks for zones, as its timers say.
TEST(RemotePresence, QueriesWithoutAnswersCauseNoMoreProbes) {
  RemotePresence remote(kOptions);
  remote.news(100);
  remote.unanswered(140);
  remote.seen();
  EXPECT_FALSE(remote.is_silent());
  remote.unanswered(150);
  EXPECT_TRUE(remote.is_silent());
  EXPECT_FALSE(remote.is_probed(150));
}

TEST(RemotePresence, NewsOfLaterIsProbedThen) {
  RemotePresence remote(kOptions);
  remote.news(100 + 60);  // notify-delay
  EXPECT_TRUE(remote.is_probed(189));
}

}  // namespace remote_presence_test
}  // namespace pando::manager
