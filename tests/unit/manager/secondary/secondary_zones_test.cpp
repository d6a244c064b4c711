#include "manager/secondary/secondary_zones.h"

#include <gtest/gtest.h>

#include <ctime>
#include <set>

#include "tests/unit/manager/commit/parts.h"

namespace pando::manager {
namespace secondary_zones_test {

using testing::name;
using testing::Parts;

/// More than are taken over, or forgotten, in one go.
constexpr int kMany = 250;

/// Configurations are taken over; no visit begins, since none may be under way.
class Secondaries : public ::testing::Test {
 protected:
  ~Secondaries() override {
    zones_.stop();
    visits_.stop();
    changes_.stop();
    network_.stop();
  }

  struct Entry {
    std::string zone;
    std::vector<std::string> primaries;  // remotes; none: the zone is a primary
  };
  static std::vector<Entry> many(const std::string& prefix) {
    std::vector<Entry> entries;
    for (int i = 0; i < kMany; ++i) entries.push_back({prefix + std::to_string(i), {"one"}});
    return entries;
  }
  static RuntimePtr configuration(const std::vector<Entry>& entries) {
    config::Settings settings;
    settings.limits.transfers_in = 0;
    settings.remotes = {{"one", {*Endpoint::from_text("192.0.2.1@53")}, {}, {}},
                        {"two", {*Endpoint::from_text("192.0.2.2@53")}, {}, {}}};
    for (const Entry& entry : entries) {
      config::ZoneOptions options;
      options.primaries = entry.primaries;
      EXPECT_TRUE(settings.zones.add(name(entry.zone), "", settings.zones.add_options(options)));
    }
    return make_runtime(std::move(settings)).value();
  }
  /// Until all is taken over and nothing is left to be done.
  void run() {
    parts_.io.restart();
    parts_.io.poll();
  }
  bool knows(const std::string& zone) const { return visits_.status(name(zone)).has_value(); }
  std::uint64_t due(const std::string& zone) const {
    return visits_.status(name(zone)).value().next_refresh;
  }
  static std::uint64_t now() { return static_cast<std::uint64_t>(std::time(nullptr)); }
  /// "example.", which the store has, was to be looked at in half an hour when the process ended.
  void save_timer() {
    saved_ = now() + 1800;
    parts_.zone.store().side(parts_.zone.zone().side_index())->next_refresh.store(saved_);
  }

  Parts parts_;
  Network network_;
  ChangeRoad changes_{parts_.io,    network_.builders(), parts_.zone.store(),
                           parts_.slots, parts_.committer,    {}};
  Refresher visits_{parts_.io,        network_, parts_.zone.store(),          parts_.slots,
                    parts_.committer, changes_, {}};
  std::set<std::string> waiting_;  // zones whose copies were not looked at
  SecondaryZones zones_{parts_.io, network_, visits_, [this](const dns::Name& zone) {
                          return !waiting_.contains(to_text(zone));
                        }};
  std::uint64_t saved_ = 0;
};

TEST_F(Secondaries, AreTakenOverInSlicesAndThoseThatAreGoneForgotten) {
  std::vector<Entry> entries = many("a");
  entries.insert(entries.begin(), {"primary", {}});
  zones_.configure(configuration(entries));
  EXPECT_TRUE(knows("a0"));
  EXPECT_FALSE(knows("a249")) << "in a later slice";
  run();
  for (int i = 0; i < kMany; ++i) EXPECT_TRUE(knows("a" + std::to_string(i))) << i;
  EXPECT_FALSE(knows("primary"));
  EXPECT_EQ(visits_.status(name("a7"))->primaries.front(), *Endpoint::from_text("192.0.2.1@53"));
  entries = many("b");
  entries.push_back({"a5", {"one"}});
  entries.push_back({"a6", {}});
  zones_.configure(configuration(entries));
  run();
  for (int i = 0; i < kMany; ++i) {
    EXPECT_EQ(knows("a" + std::to_string(i)), i == 5) << i;
    EXPECT_TRUE(knows("b" + std::to_string(i))) << i;
  }
}

TEST_F(Secondaries, AreLetGoBeforeTheConfigurationThatHasThemNotOrFromOthers) {
  zones_.configure(configuration(many("a")));
  run();
  std::vector<Entry> next = many("a");
  next[3].primaries = {"two"};
  next[4].primaries = {};
  next.pop_back();
  bool done = false;
  zones_.let_go(configuration(next), [&] { done = true; });
  EXPECT_FALSE(done) << "not all were looked at";
  run();
  EXPECT_TRUE(done);
  for (int i = 0; i < kMany; ++i)
    EXPECT_EQ(knows("a" + std::to_string(i)), i != 3 && i != 4 && i != kMany - 1) << i;
}

TEST_F(Secondaries, OfAConfigurationThatIsReplacedMeanwhileDoNotStay) {
  zones_.configure(configuration(many("a")));
  zones_.configure(configuration(many("b")));
  run();
  for (int i = 0; i < kMany; ++i) {
    EXPECT_FALSE(knows("a" + std::to_string(i))) << i;
    EXPECT_TRUE(knows("b" + std::to_string(i))) << i;
  }
}

TEST_F(Secondaries, AreLetGoAlsoWhileAConfigurationIsBeingTakenOver) {
  zones_.configure(configuration(many("a")));
  bool done = false;
  zones_.let_go(configuration(many("b")), [&] { done = true; });
  run();
  EXPECT_TRUE(done);
  for (int i = 0; i < kMany; ++i) EXPECT_FALSE(knows("a" + std::to_string(i))) << i;
}

TEST_F(Secondaries, KeepTheirTimersUntilTheirPrimariesChange) {
  save_timer();
  for (int round = 0; round < 2; ++round) {
    zones_.configure(configuration({{"@", {"one"}}}));
    run();
    EXPECT_EQ(due("@"), saved_) << round;
  }
  zones_.configure(configuration({{"@", {"two"}}}));
  run();
  EXPECT_LE(due("@"), now());
}

TEST_F(Secondaries, ANotifyThatComesBeforeTheZoneIsKnownIsHeededThen) {
  save_timer();
  std::vector<Entry> entries = many("a");
  entries.push_back({"@", {"one"}});
  zones_.configure(configuration(entries));
  ASSERT_FALSE(knows("@"));
  zones_.notified({name("@"), *Endpoint::from_text("192.0.2.1@4711"), dns::Serial{11}});
  run();
  EXPECT_LE(due("@"), now());
  EXPECT_EQ(visits_.counters().notifies, 1U);
}

TEST_F(Secondaries, ANotifyForAZoneThatIsNoSecondaryIsNotKept) {
  save_timer();
  zones_.configure(configuration({{"@", {}}}));
  run();
  zones_.notified({name("@"), *Endpoint::from_text("192.0.2.1@4711"), dns::Serial{11}});
  zones_.configure(configuration({{"@", {"one"}}}));
  run();
  EXPECT_EQ(due("@"), saved_);
}

TEST_F(Secondaries, WithoutDataAreKnownWhenTheirCopiesWereLookedAt) {
  waiting_ = {"a1.example.", "a2.example."};
  zones_.configure(configuration({{"a0", {"one"}}, {"a1", {"one"}}, {"a2", {"one"}}, {"p", {}}}));
  zones_.looked_at(name("a2"));  // while the configuration is taken over
  run();
  EXPECT_TRUE(knows("a0"));
  EXPECT_FALSE(knows("a1"));
  EXPECT_TRUE(knows("a2"));
  zones_.looked_at(name("a1"));
  zones_.looked_at(name("p"));
  zones_.looked_at(name("gone"));
  EXPECT_TRUE(knows("a1"));
  EXPECT_FALSE(knows("p"));
  EXPECT_FALSE(knows("gone"));
}

TEST_F(Secondaries, ThatWereLetGoComeBackWithTheNextConfigurationOnly) {
  waiting_ = {"a0.example."};
  zones_.configure(configuration({{"a0", {"one"}}}));
  run();
  const RuntimePtr next = configuration({{"a0", {}}});
  zones_.let_go(next, [] {});
  run();
  zones_.looked_at(name("a0"));  // by the configuration before
  EXPECT_FALSE(knows("a0"));
  zones_.configure(next);
  run();
  zones_.looked_at(name("a0"));
  EXPECT_FALSE(knows("a0"));
}

TEST_F(Secondaries, ANotifyForOneThatIsToBeLookedAtIsHeededThen) {
  save_timer();
  waiting_ = {to_text(name("@"))};
  zones_.configure(configuration({{"@", {"one"}}}));
  run();
  zones_.notified({name("@"), *Endpoint::from_text("192.0.2.1@4711"), dns::Serial{11}});
  zones_.looked_at(name("@"));  // its copy has it, and its timer half an hour
  EXPECT_LE(due("@"), now());
}

TEST_F(Secondaries, AreLetGoByName) {
  std::vector<Entry> entries = many("a");
  zones_.configure(configuration(entries));
  EXPECT_FALSE(zones_.let_go_of({name("a1")}, configuration(entries))) << "is being taken over";
  run();
  entries[1].primaries = {"two"};
  entries[2].primaries = {};
  entries[3].zone = "new";
  entries.pop_back();
  const RuntimePtr next = configuration(entries);
  ASSERT_TRUE(
      zones_.let_go_of({name("a0"), name("a1"), name("a2"), name("a3"), name("new")}, next));
  EXPECT_TRUE(knows("a0"));
  for (const char* zone : {"a1", "a2", "a3"}) EXPECT_FALSE(knows(zone)) << zone;
  zones_.looked_at(name("a1"));
  EXPECT_FALSE(knows("a1")) << "no data may come from the primaries before";
  zones_.configure_released(next);
  for (const char* zone : {"a1", "a2", "new"}) zones_.looked_at(name(zone));
  run();
  EXPECT_EQ(visits_.status(name("a1"))->primaries.front(), *Endpoint::from_text("192.0.2.2@53"));
  EXPECT_FALSE(knows("a2"));
  EXPECT_TRUE(knows("new"));
  EXPECT_TRUE(knows("a249")) << "was not named";
}

}  // namespace secondary_zones_test
}  // namespace pando::manager
