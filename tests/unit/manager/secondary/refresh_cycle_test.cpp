#include "manager/secondary/refresh_cycle.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/unit/manager/zone_support.h"

namespace pando::manager {
namespace refresh_cycle_test {

using dns::Serial;
using testing::name;

Endpoint at(const std::string& address) { return *Endpoint::from_text(address + "@53"); }

/// Two primaries, of which the second signs with a key.
const Primaries kTwo = {{at("192.0.2.1"), {}}, {at("192.0.2.2"), name("key")}};

NotifyRequest notify_from(const std::string& address, std::optional<Serial> serial,
                          std::optional<dns::Name> key = {}) {
  return {name("@"), *Endpoint::from_text(address + "@4711"), serial, std::move(key)};
}

std::string asked(const RefreshCycle& cycle) { return to_text(cycle.primary().endpoint.address); }

/// Runs an attempt that finds nothing, and goes on to the next primary.
bool pass_on(RefreshCycle& cycle) {
  cycle.begin_attempt();
  cycle.end_attempt();
  return cycle.ask_next();
}

TEST(RefreshCycle, AsksOnePrimaryAfterAnother) {
  RefreshCycle cycle(kTwo);
  EXPECT_EQ(asked(cycle), "192.0.2.1");
  EXPECT_TRUE(pass_on(cycle));
  EXPECT_EQ(asked(cycle), "192.0.2.2");
  EXPECT_FALSE(pass_on(cycle)) << "all were asked";
  EXPECT_FALSE(cycle.end(false)) << "nobody wishes for another cycle";
  EXPECT_EQ(asked(cycle), "192.0.2.1");
}

TEST(RefreshCycle, AConfirmationOfOnePrimaryHoldsForTheCycleAlone) {
  RefreshCycle cycle(kTwo);
  cycle.begin_attempt();
  cycle.confirm();
  cycle.end_attempt();
  EXPECT_TRUE(cycle.ask_next());
  EXPECT_TRUE(cycle.confirmed());
  cycle.end(false);
  EXPECT_FALSE(cycle.confirmed());
}

TEST(RefreshCycle, FallsBackToAWholeZoneOncePerPrimary) {
  RefreshCycle cycle(kTwo);
  EXPECT_FALSE(cycle.begin_attempt().whole_zone);
  cycle.end_attempt();
  EXPECT_TRUE(cycle.fall_back());
  EXPECT_EQ(asked(cycle), "192.0.2.1");
  const auto again = cycle.begin_attempt();
  EXPECT_TRUE(again.whole_zone);
  EXPECT_FALSE(again.any_serial);
  cycle.end_attempt();
  EXPECT_FALSE(cycle.fall_back()) << "the whole zone failed as well";
  EXPECT_TRUE(cycle.ask_next());
  EXPECT_FALSE(cycle.begin_attempt().whole_zone) << "of the next primary an IXFR suffices";
}

TEST(RefreshCycle, AnOrderToReplaceTheZoneWaitsForTheNextCycle) {
  RefreshCycle cycle(kTwo);
  cycle.begin_attempt();
  cycle.replace_next();
  EXPECT_TRUE(cycle.put_off({.paced = false}));
  cycle.end_attempt();
  EXPECT_TRUE(cycle.ask_next());
  EXPECT_FALSE(cycle.begin_attempt().any_serial);
  cycle.end_attempt();
  ASSERT_TRUE(cycle.end(false));
  for (int primary = 0; primary < 2; ++primary) {
    const auto request = cycle.begin_attempt();
    EXPECT_TRUE(request.any_serial) << "all primaries of the cycle are asked so";
    EXPECT_TRUE(request.whole_zone);
    cycle.end_attempt();
    cycle.ask_next();
  }
  cycle.end(false);
  EXPECT_FALSE(cycle.begin_attempt().any_serial);
}

TEST(RefreshCycle, TellsOfAnOrderToReplaceTheZoneUntilItsCycleHasEnded) {
  RefreshCycle cycle(kTwo);
  EXPECT_FALSE(cycle.is_replacing());
  cycle.begin_attempt();
  cycle.replace_next();
  EXPECT_TRUE(cycle.is_replacing()) << "the next one";
  cycle.end_attempt();
  cycle.end(false);
  cycle.begin_attempt();
  EXPECT_TRUE(cycle.is_replacing()) << "this one";
  cycle.end_attempt();
  cycle.end(false);
  EXPECT_FALSE(cycle.is_replacing());
}

TEST(RefreshCycle, ANotifyPutsItsPrimaryFirstAndItsSerialIsUsedOnce) {
  RefreshCycle cycle(kTwo);
  const auto wish = cycle.on_notify(notify_from("192.0.2.2", Serial{11}, name("key")));
  ASSERT_TRUE(wish);
  EXPECT_FALSE(wish->paced) << "it is signed";
  EXPECT_EQ(asked(cycle), "192.0.2.2");
  EXPECT_EQ(cycle.begin_attempt().notified, Serial{11});
  EXPECT_FALSE(cycle.notified_serial());
  cycle.end_attempt();
  EXPECT_TRUE(cycle.ask_next());
  EXPECT_EQ(asked(cycle), "192.0.2.1") << "the other one follows";
  EXPECT_FALSE(cycle.begin_attempt().notified);
}

TEST(RefreshCycle, ANotifyThatItsPrimaryHasNotSignedIsPacedAndItsSerialNoHint) {
  for (const auto& key : {std::optional<dns::Name>(), std::optional(name("other"))}) {
    RefreshCycle cycle(kTwo);
    const auto wish = cycle.on_notify(notify_from("192.0.2.2", Serial{11}, key));
    ASSERT_TRUE(wish);
    EXPECT_TRUE(wish->paced);
    EXPECT_EQ(asked(cycle), "192.0.2.2");
    EXPECT_FALSE(cycle.begin_attempt().notified);
  }
}

TEST(RefreshCycle, ANotifyOfAStrangerChangesNoOrder) {
  RefreshCycle cycle(kTwo);
  const auto wish = cycle.on_notify(notify_from("192.0.2.9", Serial{11}));
  ASSERT_TRUE(wish);
  EXPECT_TRUE(wish->paced);
  EXPECT_EQ(asked(cycle), "192.0.2.1");
  EXPECT_FALSE(cycle.notified_serial());
}

TEST(RefreshCycle, KeepsTheHighestSerialThatIsNotifiedMeanwhile) {
  RefreshCycle cycle(kTwo);
  cycle.begin_attempt();
  for (const std::uint32_t serial : {12U, 13U, 11U})
    EXPECT_FALSE(cycle.on_notify(notify_from("192.0.2.1", Serial{serial})));
  EXPECT_EQ(cycle.notified_serial(), Serial{13});
  cycle.end_attempt();
  const auto wish = cycle.end(true);
  ASSERT_TRUE(wish);
  EXPECT_TRUE(wish->paced) << "that primary signs nothing";
  EXPECT_EQ(cycle.begin_attempt().notified, Serial{13});
}

TEST(RefreshCycle, ASerialThatIsNoNewsAnyMoreIsForgotten) {
  RefreshCycle cycle(kTwo);
  cycle.begin_attempt();
  cycle.on_notify(notify_from("192.0.2.2", Serial{12}, name("key")));
  cycle.end_attempt();
  EXPECT_FALSE(cycle.end(false));
  EXPECT_FALSE(cycle.notified_serial());
  EXPECT_EQ(asked(cycle), "192.0.2.1");
}

TEST(RefreshCycle, ASerialKeptForAnotherPrimaryStaysUntilThatOneIsAsked) {
  RefreshCycle cycle(kTwo);
  cycle.begin_attempt();
  cycle.on_notify(notify_from("192.0.2.2", Serial{12}, name("key")));
  cycle.end_attempt();
  EXPECT_TRUE(cycle.fall_back());
  EXPECT_FALSE(cycle.begin_attempt().notified);
  cycle.end_attempt();
  EXPECT_TRUE(cycle.ask_next());
  EXPECT_EQ(cycle.begin_attempt().notified, Serial{12});
}

/// Anybody can send unsigned NOTIFYs in the name of a primary. One wish that not anybody could have
/// had is enough for a cycle at once.
TEST(RefreshCycle, WishesOfTheCycleUnderWayArePacedIfAllOfThemAre) {
  for (const bool first : {false, true})
    for (const bool second : {false, true}) {
      RefreshCycle cycle(kTwo);
      EXPECT_FALSE(cycle.put_off({.paced = first})) << "no cycle is under way";
      cycle.begin_attempt();
      EXPECT_TRUE(cycle.put_off({.paced = first}));
      EXPECT_TRUE(cycle.put_off({.paced = second}));
      cycle.end_attempt();
      const auto wish = cycle.end(false);
      ASSERT_TRUE(wish);
      EXPECT_EQ(wish->paced, first && second);
      EXPECT_FALSE(cycle.end(false)) << "it is granted";
    }
}

TEST(RefreshCycle, ACycleThatIsGivenUpBeginsAgainAsItShouldHaveBeen) {
  RefreshCycle cycle(kTwo);
  cycle.replace_next();
  ASSERT_TRUE(pass_on(cycle));
  cycle.begin_attempt();
  cycle.give_up();
  EXPECT_FALSE(cycle.running());
  EXPECT_FALSE(cycle.put_off({.paced = false})) << "none is under way";
  EXPECT_EQ(asked(cycle), "192.0.2.1");
  EXPECT_TRUE(cycle.begin_attempt().any_serial);
}

TEST(RefreshCycle, MayBeginWithAnyPrimary) {
  RefreshCycle cycle(kTwo);
  cycle.begin_with(at("192.0.2.2"));
  EXPECT_EQ(asked(cycle), "192.0.2.2");
  ASSERT_TRUE(pass_on(cycle));
  cycle.begin_with(at("192.0.2.2"));
  EXPECT_EQ(asked(cycle), "192.0.2.1") << "a cycle is under way";
}

TEST(RefreshCycle, DoubtsSerialsThatContradictWhatIsKnown) {
  RefreshCycle cycle(kTwo);
  const auto doubts = [&](const std::string& sender, std::uint32_t serial) {
    return cycle.is_doubt(notify_from(sender, Serial{serial}), Serial{5});
  };
  EXPECT_TRUE(doubts("192.0.2.1", 4));
  EXPECT_FALSE(doubts("192.0.2.1", 5));
  EXPECT_TRUE(cycle.note_behind(at("192.0.2.1"), true));
  EXPECT_FALSE(cycle.note_behind(at("192.0.2.1"), true)) << "it is known";
  EXPECT_FALSE(doubts("192.0.2.1", 4));
  EXPECT_TRUE(doubts("192.0.2.1", 5)) << "the serials may agree again";
  EXPECT_TRUE(doubts("192.0.2.2", 4)) << "that is news about this one";
  EXPECT_FALSE(doubts("192.0.2.9", 4)) << "no primary";
  cycle.note_behind(at("192.0.2.1"), false);
  EXPECT_FALSE(doubts("192.0.2.1", 5));
  cycle.note_behind(at("192.0.2.2"), true);
  cycle.forget_behind();
  EXPECT_FALSE(doubts("192.0.2.2", 5));
}

TEST(RefreshCycle, IsUnderWayAlsoBetweenTwoPrimaries) {
  RefreshCycle cycle(kTwo);
  ASSERT_TRUE(pass_on(cycle));
  EXPECT_FALSE(cycle.running());
  EXPECT_TRUE(cycle.put_off({.paced = false}));
  cycle.begin_anew();
  EXPECT_FALSE(cycle.put_off({.paced = false}));
  EXPECT_EQ(asked(cycle), "192.0.2.1");
}

}  // namespace refresh_cycle_test
}  // namespace pando::manager
