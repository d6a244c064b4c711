#include "manager/workers/rules/slot_rules.h"

#include <gtest/gtest.h>

namespace pando::manager {
namespace slot_rules_test {

using std::chrono::milliseconds;
using Numbers = std::vector<std::uint32_t>;

const auto kNow = std::chrono::steady_clock::time_point(std::chrono::hours(1));

/// A slot of that state without a process, whose next step is due.
SlotFacts vacant(std::uint32_t number, SlotState state = SlotState::kDead) {
  SlotFacts slot;
  slot.number = number;
  slot.state = state;
  return slot;
}
SlotFacts occupied(std::uint32_t number, SlotState state = SlotState::kServing) {
  SlotFacts slot = vacant(number, state);
  slot.has_process = true;
  return slot;
}
SlotFacts due(std::uint32_t number, milliseconds in) {
  SlotFacts slot = vacant(number);
  slot.next_step = kNow + in;
  return slot;
}

TEST(SlotNeeds, AWantedSlotWithoutAProcessNeedsAWorker) {
  EXPECT_EQ(need_of(vacant(0), kNow, false), SlotNeed::kWorker);
  EXPECT_EQ(need_of(vacant(0), kNow, true), SlotNeed::kNothing) << "others start workers";
  EXPECT_EQ(need_of(occupied(0), kNow, false), SlotNeed::kNothing);
}

TEST(SlotNeeds, ALeavingSlotWithoutAProcessEnds) {
  EXPECT_EQ(need_of(vacant(0, SlotState::kDraining), kNow, false), SlotNeed::kEnd);
  EXPECT_EQ(need_of(vacant(0, SlotState::kDraining), kNow, true), SlotNeed::kEnd);
  EXPECT_EQ(need_of(occupied(0, SlotState::kDraining), kNow, false), SlotNeed::kNothing);
}

TEST(SlotNeeds, NothingIsDoneWhereSomethingIsUnderWay) {
  bool SlotFacts::* const under_way[] = {&SlotFacts::connected, &SlotFacts::awaited,
                                         &SlotFacts::lost, &SlotFacts::previous_layout};
  for (const auto fact : under_way)
    for (const auto state : {SlotState::kDead, SlotState::kStarting, SlotState::kDraining}) {
      SlotFacts slot = vacant(0, state);
      slot.*fact = true;
      EXPECT_EQ(need_of(slot, kNow, false), SlotNeed::kNothing);
    }
  EXPECT_EQ(need_of(due(0, milliseconds(1)), kNow, false), SlotNeed::kNothing);
}

TEST(SlotNeeds, AQueueThatIsReadForTheLastTimeEndsALeavingSlotAlone) {
  SlotFacts slot = vacant(0, SlotState::kDraining);
  slot.closes = true;
  EXPECT_EQ(need_of(slot, kNow, false), SlotNeed::kNothing);
  slot.state = SlotState::kDead;
  EXPECT_EQ(need_of(slot, kNow, false), SlotNeed::kWorker);
}

TEST(SlotEnds, TheSlotsStateDecidesWhatFollows) {
  EXPECT_EQ(after_end(vacant(0), true, false), AfterEnd::kRestart);
  EXPECT_EQ(after_end(vacant(0), true, true), AfterEnd::kAwait);
  EXPECT_EQ(after_end(vacant(0, SlotState::kDraining), true, false), AfterEnd::kRetire);
}

TEST(SlotEnds, AnExternalWorkerThatNeverCameLeavesNothingBehind) {
  SlotFacts slot = vacant(0, SlotState::kStarting);
  EXPECT_EQ(after_end(slot, false, true), AfterEnd::kAwait) << "its unit starts it again";
  slot.awaited = true;
  EXPECT_EQ(after_end(slot, false, true), AfterEnd::kForget);
  EXPECT_EQ(after_end(slot, true, true), AfterEnd::kAwait) << "queries wait in its sockets";
  EXPECT_EQ(after_end(slot, false, false), AfterEnd::kRestart);
  slot.state = SlotState::kDraining;
  EXPECT_EQ(after_end(slot, false, true), AfterEnd::kRetire);
}

TEST(SlotStart, WaitsForEachWorkerOfAnEarlierManager) {
  std::vector<SlotFacts> slots{occupied(0), vacant(1)};
  EXPECT_TRUE(none_awaited(slots));
  EXPECT_TRUE(none_awaited({}));
  slots[1].previous_layout = slots[1].previous_layout_awaited = true;
  EXPECT_FALSE(none_awaited(slots));
  slots[1].previous_layout_awaited = false;
  EXPECT_TRUE(none_awaited(slots));
  slots[0].awaited = true;
  EXPECT_FALSE(none_awaited(slots));
}

TEST(SurplusSlots, AreTheHighestThatStay) {
  const std::vector<SlotFacts> slots{occupied(0), occupied(2), occupied(3, SlotState::kDraining),
                                     vacant(5)};
  EXPECT_EQ(surplus_slots(slots, 3), Numbers{});
  EXPECT_EQ(surplus_slots(slots, 4), Numbers{});
  EXPECT_EQ(surplus_slots(slots, 2), Numbers{5});
  EXPECT_EQ(surplus_slots(slots, 1), (Numbers{5, 2}));
  EXPECT_EQ(surplus_slots(slots, 0), (Numbers{5, 2, 0}));
}

TEST(Hastening, TheNextSlotComesSoonWhenNobodyServes) {
  const std::vector<SlotFacts> slots{due(0, milliseconds(5000)), due(1, milliseconds(1600))};
  EXPECT_EQ(slot_to_hasten(slots, kNow + milliseconds(100)), 1U);
  EXPECT_EQ(slot_to_hasten(slots, kNow + milliseconds(1600)), std::nullopt) << "soon enough";
  EXPECT_EQ(slot_to_hasten({}, kNow), std::nullopt);
}

TEST(Hastening, ABackOffStandsWhileSomebodyLives) {
  std::vector<SlotFacts> slots{due(0, milliseconds(5000)), occupied(1)};
  EXPECT_EQ(slot_to_hasten(slots, kNow), std::nullopt);
  slots[1] = vacant(1);
  slots[1].previous_layout = true;
  EXPECT_EQ(slot_to_hasten(slots, kNow), std::nullopt);
  slots[1] = occupied(1, SlotState::kDraining);  // answers only what is queued
  EXPECT_EQ(slot_to_hasten(slots, kNow), 0U);
}

}  // namespace slot_rules_test
}  // namespace pando::manager
