#include "manager/control/control_commands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/unit/manager/start/manager_parts.h"

namespace pando::manager {
namespace control_commands_test {

using ipc::ControlRequest;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using testing::ManagerParts;
using testing::name;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAreArray;
namespace verb = ipc::verb;

/// All commands of a manager without zones.
class Commands : public ::testing::Test {
 protected:
  Commands() { parts_.reloader->allow(); }
  ~Commands() override {
    commands_.stop();
    commands_.join();
  }

  Result<json> run(const ControlRequest& request) {
    return parts_.await<Result<json>>([&](auto& place) {
      commands_.run(request, [&place](Result<json> result) { place = std::move(result); });
    });
  }
  Result<json> run(std::string_view verb, std::vector<std::string> names = {}) {
    ControlRequest request;
    request.verb = verb;
    request.names = std::move(names);
    return run(request);
  }
  /// The error's text; empty: there was none.
  static std::string reason(const Result<json>& result) {
    return result ? "" : result.error().text;
  }
  static ControlRequest addition(std::vector<std::string> zones) {
    ControlRequest request;
    request.verb = verb::kZoneAdd;
    request.zones = std::move(zones);
    return request;
  }
  static std::string created(const std::string& zone) {
    const std::string content =
        "@ 3600 SOA ns1 admin 7 3600 600 86400 300\n@ 3600 NS ns1\nns1 3600 A 192.0.2.1\n";
    return json({{"name", zone}, {"content", content}}).dump();
  }

  ManagerParts parts_;
  int stopped_ = 0;
  RunTimeZones run_time_zones_{parts_.io, parts_.pool, parts_.configuration, *parts_.reloader};
  Catalogs catalogs_{parts_.io, parts_.pool, parts_.parts(), run_time_zones_};
  ControlCommands commands_{parts_.io,         parts_.pool,     parts_.parts(),
                            *parts_.reloader,  run_time_zones_, catalogs_,
                            {[this] { ++stopped_; }, [] {}},    1234};
};

TEST_F(Commands, StatusIsTheReportWithTheCatalogs) {
  const auto status = run(verb::kStatus);
  ASSERT_TRUE(status);
  EXPECT_EQ((*status)["started"], 1234);
  EXPECT_EQ((*status)["zone_lists"], "read");
  EXPECT_TRUE((*status)["catalogs"].is_array());
}

TEST_F(Commands, AVerbThatNobodyKnowsIsUnsupported) {
  const auto result = run("no-such-verb");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Errc::kUnsupported);
}

TEST_F(Commands, AreTheVerbsOfTheTable) {
  std::vector<std::string> verbs;
  for (const ipc::ControlVerb& row : ipc::kControlVerbs) verbs.emplace_back(row.name);
  EXPECT_THAT(commands_.verbs(), UnorderedElementsAreArray(verbs));
}

/// Of each text or list that a row demands; the row is the usage that the error names.
TEST_F(Commands, WithoutAnArgumentThatTheyNeedAreRefusedWithTheirUsage) {
  for (const ipc::ControlVerb& row : ipc::kControlVerbs) {
    if (row.arguments.empty() || row.arguments.front() == '[') continue;
    const auto result = run(row.name);
    ASSERT_FALSE(result) << row.name;
    EXPECT_EQ(result.error().code, Errc::kInvalid) << row.name;
    EXPECT_THAT(reason(result), AllOf(StartsWith(std::string(row.name) + " needs '"),
                                      EndsWith("; its arguments: " + std::string(row.arguments))));
  }
}

TEST_F(Commands, WithoutASectionHttpThereAreNoSettingsOfIt) {
  const auto settings = run(verb::kHttpSettings);
  ASSERT_FALSE(settings);
  EXPECT_EQ(settings.error().code, Errc::kNotFound);
}

TEST_F(Commands, QueriesOfZonesAreCountedOnDemand) {
  const auto counted = run(verb::kZoneQueries);
  ASSERT_TRUE(counted) << reason(counted);
  EXPECT_TRUE((*counted)["rows"].is_array());
}

TEST_F(Commands, AReloadAnswersWithItsCounts) {
  parts_.write_zone("a.test", 1);
  parts_.configure(ManagerParts::primary("a.test"));
  const auto result = run(verb::kReload);
  ASSERT_TRUE(result) << reason(result);
  EXPECT_EQ((*result)["zones_added"], 1);
  parts_.configure("", "no-such-section: 1\n");
  EXPECT_THAT(reason(run(verb::kReload)), HasSubstr("no-such-section"));
}

TEST_F(Commands, AZoneIsAddedReadAgainAndRemoved) {
  parts_.write_zone("a.test", 1);
  const std::string zone =
      R"({"name": "a.test", "file": ")" + parts_.folder.path() + R"(/a.test.zone"})";
  const auto added = run(addition({zone}));
  ASSERT_TRUE(added) << reason(added);
  EXPECT_EQ((*added)["zones_added"], 1);
  EXPECT_EQ(parts_.serial("a.test."), 1U);
  parts_.write_zone("a.test", 2);
  EXPECT_TRUE(run(verb::kZoneReload, {"a.test"}));
  EXPECT_EQ(parts_.serial("a.test."), 2U);
  const auto removed = run(verb::kZoneRemove, {"a.test"});
  ASSERT_TRUE(removed) << reason(removed);
  EXPECT_EQ((*removed)["zones_removed"], 1);
  EXPECT_FALSE(parts_.zone("a.test."));
}

TEST_F(Commands, ChangesOfZonesThatNameNoneAreRefused) {
  EXPECT_EQ(reason(run(addition({}))), "zone-add needs 'zones'; its arguments: zones");
  EXPECT_EQ(reason(run(verb::kZoneRemove)), "zone-remove needs 'names'; its arguments: names");
  EXPECT_NE(reason(run(verb::kZoneRemove, {"a..test"})), "") << "no name";
  ControlRequest set;
  set.verb = verb::kZoneConfigure;
  set.name = "gone.test";
  set.key = "notify";
  EXPECT_THAT(reason(run(set)), HasSubstr("gone.test"));
}

/// Updates of the zone that left would come on top of the new content.
TEST_F(Commands, AZoneWithContentIsRefusedWhileUpdatesOfAnEarlierOneAreKept) {
  const auto added = run(addition({created("a.test")}));
  ASSERT_TRUE(added) << reason(added);
  EXPECT_EQ(parts_.serial("a.test."), 7U);
  ControlRequest edit;
  edit.verb = verb::kZoneBegin;
  edit.names = {"a.test"};
  ASSERT_TRUE(run(edit));
  edit.verb = verb::kZoneSet;
  edit.name = "a.test";
  edit.owner = "www";
  edit.type = "A";
  edit.rdata = "192.0.2.9";
  edit.ttl = 60;
  ASSERT_EQ(reason(run(edit)), "");
  edit.verb = verb::kZoneCommit;
  ASSERT_EQ(reason(run(edit)), "");
  ASSERT_TRUE(run(verb::kZoneRemove, {"a.test"}));
  EXPECT_THAT(reason(run(addition({created("a.test")}))), HasSubstr("purge it first"));
  ControlRequest purge;
  purge.verb = verb::kZonePurge;
  purge.name = "a.test";
  ASSERT_EQ(reason(run(purge)), "");
  const auto again = run(addition({created("a.test")}));
  EXPECT_TRUE(again) << reason(again);
}

TEST_F(Commands, AZoneThatIsBeingAddedIsNotPurged) {
  std::optional<bool> added;
  commands_.run(addition({created("a.test")}),
                [&](const Result<json>& result) { added = result.has_value(); });
  ControlRequest purge;
  purge.verb = verb::kZonePurge;
  purge.name = "a.test";
  EXPECT_THAT(reason(run(purge)), HasSubstr("is being added"));
  ASSERT_TRUE(parts_.run_until([&] { return added.has_value(); }));
  EXPECT_TRUE(*added);
}

TEST_F(Commands, TransactionsEndWithTheirConnection) {
  ASSERT_TRUE(run(addition({created("a.test")})));
  ControlRequest request;
  request.verb = verb::kZoneBegin;
  request.names = {"a.test"};
  request.while_connected = true;
  request.connection = 7;
  ASSERT_EQ(reason(run(request)), "");
  EXPECT_NE(reason(run(request)), "") << "there is one";
  commands_.end_connection(7);
  EXPECT_EQ(reason(run(request)), "");
}

TEST_F(Commands, StopIsAnsweredBeforeTheProcessEnds) {
  ControlRequest request;
  request.verb = verb::kStop;
  bool answered = false;
  commands_.run(request, [&](const Result<json>& result) {
    EXPECT_TRUE(result);
    EXPECT_EQ(stopped_, 0);
    answered = true;
  });
  EXPECT_TRUE(answered);
  EXPECT_TRUE(parts_.run_until([this] { return stopped_ == 1; }));
}

}  // namespace control_commands_test
}  // namespace pando::manager
