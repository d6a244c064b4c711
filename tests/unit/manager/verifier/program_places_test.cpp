#include "manager/verifier/program_places.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace pando::manager {
namespace program_places_test {

using std::chrono::milliseconds;
using std::chrono::seconds;

dns::Name zone(int number) {
  return dns::Name::from_text("z" + std::to_string(number) + ".test.").value();
}

/// Places, at a time that the test sets.
class PlacesOfPrograms : public ::testing::Test {
 protected:
  std::optional<ProgramPlaces::Taken> take(int number) {
    return places_.try_take(zone(number), "/judge", milliseconds(1500), now_);
  }
  ProgramPlaces places_;
  ProgramPlaces::Clock::time_point now_ = ProgramPlaces::Clock::now();
};

constexpr int kAtOnce = ProgramPlaces::kAtOnce;

TEST_F(PlacesOfPrograms, AreAsManyAsProgramsMayComputeAtOnce) {
  std::vector<ProgramPlaces::Taken> taken;
  for (int i = 0; i < kAtOnce; ++i) taken.push_back(take(i).value());
  EXPECT_FALSE(take(kAtOnce));
  places_.leave(taken[1]);
  EXPECT_TRUE(take(kAtOnce));
  EXPECT_FALSE(take(kAtOnce + 1));
}

TEST_F(PlacesOfPrograms, OfSlowProgramsGoToOthers) {
  for (int i = 0; i < kAtOnce; ++i) ASSERT_TRUE(take(i));
  now_ += ProgramPlaces::kSlow - milliseconds(1);
  EXPECT_FALSE(take(kAtOnce));
  EXPECT_FALSE(places_.is_slow(zone(0), now_));
  now_ += milliseconds(1);
  EXPECT_TRUE(places_.is_slow(zone(0), now_));
  for (int i = 0; i < kAtOnce; ++i) EXPECT_TRUE(take(kAtOnce + i)) << i;
  EXPECT_FALSE(take(2 * kAtOnce)) << "the new ones are quick";
  EXPECT_FALSE(places_.is_slow(zone(kAtOnce), now_));
}

TEST_F(PlacesOfPrograms, TellWhichProgramJudgesAZone) {
  EXPECT_FALSE(places_.find(zone(1)));
  const auto taken = take(1).value();
  const auto found = places_.find(zone(1));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->program, "/judge");
  EXPECT_GT(found->since, 0U);
  EXPECT_EQ(found->until - found->since, 2U) << "a part of a second counts as one";
  EXPECT_FALSE(places_.find(zone(2)));
  places_.leave(taken);
  EXPECT_FALSE(places_.find(zone(1)));
}

TEST_F(PlacesOfPrograms, AreWaitedForUntilOneIsFreeOrTheWorkIsGivenUp) {
  const auto never = [] { return false; };
  std::vector<std::unique_ptr<ProgramPlaces::Place>> held;
  for (int i = 0; i < kAtOnce; ++i)
    held.push_back(places_.wait(zone(i), "/judge", seconds(1), never));
  std::atomic<bool> is_over{false};
  std::thread given_up([&] {
    EXPECT_EQ(places_.wait(zone(8), "/judge", seconds(1), [&] { return is_over.load(); }), nullptr);
  });
  is_over = true;
  given_up.join();
  std::thread waits(
      [&] { EXPECT_NE(places_.wait(zone(9), "/judge", seconds(1), never), nullptr); });
  held.pop_back();
  waits.join();
}

}  // namespace program_places_test
}  // namespace pando::manager
