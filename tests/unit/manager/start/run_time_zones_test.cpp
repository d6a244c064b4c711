#include "manager/start/run_time_zones.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/manager/start/manager_parts.h"

namespace pando::manager {
namespace run_time_zones_test {

using ::testing::HasSubstr;
using testing::ManagerParts;
using testing::name;

/// A manager with one zone of the configuration, "own.test", whose zones are changed by commands.
class Changing : public ::testing::Test {
 protected:
  using Outcome = Result<ipc::ReloadResult>;
  using Place = std::shared_ptr<std::optional<Outcome>>;

  Changing() {
    parts_.write_zone("own.test", 1);
    parts_.configure(ManagerParts::primary("own.test"));
    parts_.reloader->allow();
    EXPECT_TRUE(parts_.reload());
    for (const char* zone : {"a.test", "b.test"}) parts_.write_zone(zone, 1);
  }
  ~Changing() override { zones_.stop(); }

  Place submit(RunTimeChange change) {
    auto place = std::make_shared<std::optional<Outcome>>();
    zones_.submit(std::move(change), [place](Outcome outcome) { *place = std::move(outcome); });
    return place;
  }
  Place add(const std::string& zone) {
    RunTimeChange change;
    change.add = {
        fmt::format(R"({{"name": "{0}", "file": "{1}/{0}.zone"}})", zone, parts_.folder.path())};
    return submit(std::move(change));
  }
  Place remove(std::string_view zone) {
    RunTimeChange change;
    change.remove = {name(zone)};
    return submit(std::move(change));
  }
  Outcome await(const Place& place) {
    EXPECT_TRUE(parts_.run_until([&] { return place->has_value(); }));
    return **place;
  }
  static std::string reason(const Outcome& outcome) { return outcome ? "" : outcome.error().text; }

  ManagerParts parts_;
  RunTimeZones zones_{parts_.io, parts_.pool, parts_.configuration, *parts_.reloader};
};

TEST_F(Changing, AZoneIsAddedAndRemovedForGood) {
  const auto added = await(add("a.test"));
  ASSERT_TRUE(added) << reason(added);
  EXPECT_EQ(added->zones_added, 1U);
  EXPECT_EQ(parts_.serial("a.test."), 1U);
  EXPECT_TRUE(parts_.reload());
  EXPECT_EQ(parts_.serial("a.test."), 1U) << "the list has it, not the configuration";
  const auto removed = await(remove("a.test."));
  ASSERT_TRUE(removed) << reason(removed);
  EXPECT_TRUE(parts_.reload());
  EXPECT_FALSE(parts_.zone("a.test."));
}

TEST_F(Changing, OfChangesThatAreMadeTogetherEachHasItsOwnCounts) {
  const Place first = add("a.test");
  const Place second = add("b.test");
  const Place wrong = remove("nobody.test.");
  EXPECT_EQ(await(first)->zones_added, 1U);
  EXPECT_EQ(await(second)->zones_added, 1U);
  EXPECT_THAT(reason(await(wrong)), HasSubstr("nobody.test"));
  EXPECT_EQ(parts_.serial("a.test."), 1U);
  EXPECT_EQ(parts_.serial("b.test."), 1U);
}

TEST_F(Changing, AZoneOfTheConfigurationIsNotRemoved) {
  EXPECT_NE(reason(await(remove("own.test."))), "");
  EXPECT_EQ(parts_.serial("own.test."), 1U);
  EXPECT_NE(reason(await(add("own.test"))), "") << "nor added once more";
}

TEST_F(Changing, FilesOfNamedZonesAreReadAgain) {
  parts_.write_zone("own.test", 2);
  RunTimeChange change;
  change.reread = {name("own.test.")};
  const auto outcome = await(submit(std::move(change)));
  ASSERT_TRUE(outcome) << reason(outcome);
  EXPECT_EQ(outcome->zones_changed, 1U);
  EXPECT_EQ(parts_.serial("own.test."), 2U);
}

TEST_F(Changing, ChangesWaitForAReloadAndTheOtherWayRound) {
  std::optional<bool> reloaded;
  parts_.reloader->reload([&](const Outcome& outcome) { reloaded = outcome.has_value(); });
  const Place added = add("a.test");
  EXPECT_TRUE(await(added)) << reason(**added);
  EXPECT_EQ(reloaded, true) << "it came first";
  const Place next = add("b.test");
  reloaded.reset();
  parts_.reloader->reload([&](const Outcome& outcome) { reloaded = outcome.has_value(); });
  ASSERT_TRUE(parts_.run_until([&] { return reloaded.has_value(); }));
  EXPECT_EQ(reloaded, true);
  EXPECT_TRUE(next->has_value()) << "it held the reload back";
  EXPECT_EQ(parts_.serial("b.test."), 1U);
}

TEST_F(Changing, NoneBeginsOnceTheProcessIsToEnd) {
  EXPECT_TRUE(parts_.reloader->hold()) << "changes wait";
  const Place waiting = add("a.test");
  zones_.stop();
  EXPECT_EQ(reason(**waiting), "the process ends");
  EXPECT_EQ(reason(await(add("b.test"))), "the process ends");
  EXPECT_FALSE(parts_.zone("a.test."));
}

}  // namespace run_time_zones_test
}  // namespace pando::manager
