#include "manager/secondary/refresh_slots.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/unit/manager/zone_support.h"

namespace pando::manager {
namespace refresh_slots_test {

using testing::name;

const Endpoint kOne = *Endpoint::from_text("192.0.2.1@53");
const Endpoint kTwo = *Endpoint::from_text("192.0.2.2@53");

class Places : public ::testing::Test {
 protected:
  Places() { places_.set_limits({4, 2}); }

  void begin(const Endpoint& primary, int visits) {
    for (int i = 0; i < visits; ++i) places_.begin(primary);
  }
  void wait(const Endpoint& primary, const std::string& zone) {
    wanted_.insert_or_assign(zone, primary);
    places_.wait(primary, name(zone));
  }
  /// The first label of the zone that comes out; "-": none.
  std::string next() {
    const auto zone = places_.next([this](const dns::Name& waiting) -> const Endpoint* {
      const auto found = wanted_.find(first_label(waiting));
      return found == wanted_.end() ? nullptr : &found->second;
    });
    return zone ? first_label(*zone) : "-";
  }
  static std::string first_label(const dns::Name& zone) {
    return to_text(zone).substr(0, to_text(zone).find('.'));
  }

  RefreshSlots places_;
  std::map<std::string, Endpoint> wanted_;
};

TEST_F(Places, AreBoundedForEachPrimaryAndForAll) {
  begin(kOne, 2);
  EXPECT_FALSE(places_.has_room(kOne));
  EXPECT_TRUE(places_.has_room(kTwo));
  begin(kTwo, 2);
  EXPECT_TRUE(places_.full());
  EXPECT_FALSE(places_.has_room(*Endpoint::from_text("192.0.2.3@53")));
  places_.end(kOne);
  EXPECT_FALSE(places_.full());
  EXPECT_TRUE(places_.has_room(kOne));
  EXPECT_FALSE(places_.has_room(kTwo));
}

TEST_F(Places, GoToWhoWaitedLongestWhenAVisitEnds) {
  begin(kOne, 2);
  wait(kOne, "a");
  wait(kOne, "b");
  EXPECT_EQ(next(), "-") << "no visit has ended";
  places_.end(kOne);
  EXPECT_EQ(next(), "a");
  places_.begin(kOne);
  EXPECT_EQ(next(), "-");
  places_.end(kOne);
  places_.end(kOne);
  EXPECT_EQ(next(), "b");
  EXPECT_EQ(next(), "-");
}

TEST_F(Places, OfOnePrimaryAreNotForThoseWhoWaitForAnother) {
  begin(kOne, 2);
  begin(kTwo, 2);
  wait(kOne, "a");
  wait(kTwo, "b");
  places_.end(kTwo);
  EXPECT_EQ(next(), "b");
  places_.begin(kTwo);
  EXPECT_EQ(next(), "-");
}

TEST_F(Places, AreNotGivenToAZoneThatDoesNotWaitAnyMore) {
  begin(kOne, 2);
  wait(kOne, "a");
  wait(kOne, "b");
  wanted_.erase("a");
  places_.end(kOne);
  EXPECT_EQ(next(), "b");
}

TEST_F(Places, AZoneThatWantsAnotherPrimaryByNowLeavesItsQueue) {
  begin(kOne, 2);
  begin(kTwo, 2);
  wait(kOne, "a");
  wait(kOne, "b");
  wanted_.insert_or_assign("a", kTwo);
  places_.end(kOne);
  EXPECT_EQ(next(), "a");
  EXPECT_FALSE(places_.has_room(kTwo)) << "so it has to wait again";
  EXPECT_EQ(next(), "b");
}

TEST_F(Places, ThatNewLimitsBringAreGivenWhenAllQueuesAreLookedAt) {
  begin(kOne, 2);
  begin(kTwo, 2);
  wait(kOne, "a");
  wait(kTwo, "b");
  places_.set_limits({5, 3});
  EXPECT_EQ(next(), "-");
  places_.recheck_all();
  EXPECT_EQ(next(), "a");
  places_.begin(kOne);
  EXPECT_EQ(next(), "-") << "there are as many as may be at once";
  places_.end(kOne);
  EXPECT_EQ(next(), "b") << "it was not forgotten meanwhile";
}

}  // namespace refresh_slots_test
}  // namespace pando::manager
