#include "manager/start/reload_gate.h"

#include <gtest/gtest.h>

namespace pando::manager {
namespace reload_gate_test {

using Signal = ReloadGate::Signal;

ReloadGate allowed() {
  ReloadGate gate;
  gate.allow();
  return gate;
}

TEST(ReloadGate, LetsOneReloadInAtATime) {
  ReloadGate gate = allowed();
  EXPECT_FALSE(gate.is_under_way());
  EXPECT_TRUE(gate.enter());
  EXPECT_FALSE(gate.enter());
  EXPECT_TRUE(gate.is_under_way());
  EXPECT_FALSE(gate.leave()) << "nobody asked for another one";
  EXPECT_FALSE(gate.is_under_way());
  EXPECT_TRUE(gate.enter());
}

TEST(ReloadGate, IsClosedBeforeTheStoreIsInLineWithTheConfiguration) {
  ReloadGate gate;
  EXPECT_TRUE(gate.enter()) << "it waits inside";
  EXPECT_FALSE(gate.is_open());
  EXPECT_FALSE(gate.is_allowed());
  gate.allow();
  EXPECT_TRUE(gate.is_open());
  EXPECT_TRUE(gate.is_allowed());
}

TEST(ReloadGate, ReloadsWaitWhileItIsHeld) {
  ReloadGate gate = allowed();
  ASSERT_TRUE(gate.hold());
  EXPECT_FALSE(gate.hold()) << "by one change at a time";
  EXPECT_TRUE(gate.enter());
  EXPECT_FALSE(gate.is_open());
  gate.release();
  EXPECT_TRUE(gate.is_open());
  EXPECT_FALSE(gate.hold()) << "the reload comes first";
  EXPECT_FALSE(gate.leave());
  EXPECT_TRUE(gate.hold());
}

TEST(ReloadGate, CannotBeHeldBeforeItIsAllowed) {
  ReloadGate gate;
  EXPECT_FALSE(gate.hold());
  gate.allow();
  EXPECT_TRUE(gate.hold());
}

TEST(ReloadGate, OneMoreReloadServesAllSignalsOfTheOneUnderWay) {
  ReloadGate gate = allowed();
  EXPECT_EQ(gate.signal(), Signal::kEnters);
  ASSERT_TRUE(gate.enter());
  EXPECT_EQ(gate.signal(), Signal::kWaits);
  EXPECT_EQ(gate.signal(), Signal::kIsServed);
  EXPECT_TRUE(gate.leave());
  EXPECT_EQ(gate.signal(), Signal::kEnters);
  ASSERT_TRUE(gate.enter());
  EXPECT_FALSE(gate.leave()) << "that was the one for both";
}

TEST(ReloadGate, NothingBeginsOnceTheProcessIsToEnd) {
  ReloadGate gate = allowed();
  ASSERT_TRUE(gate.enter());
  gate.stop();
  EXPECT_EQ(gate.signal(), Signal::kEnters) << "only to be refused";
  EXPECT_FALSE(gate.leave());
  EXPECT_FALSE(gate.enter());
  EXPECT_FALSE(gate.hold());
}

}  // namespace reload_gate_test
}  // namespace pando::manager
