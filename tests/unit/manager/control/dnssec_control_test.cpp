#include "manager/control/dnssec_control.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/unit/manager/start/manager_parts.h"

namespace pando::manager {
namespace dnssec_control_test {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using testing::ManagerParts;
using testing::name;
namespace verb = ipc::verb;

/// A manager that signs a.test and b.test; plain.test is served unsigned.
class DnssecCommandsTest : public ::testing::Test {
 protected:
  DnssecCommandsTest() {
    control_.add_to(table_);
    std::string zones;
    for (const char* zone : {"a.test", "b.test", "plain.test"}) {
      parts_.write_zone(zone, 7);
      zones += fmt::format("  - {{name: {0}, file: {0}.zone, dnssec: {1}}}\n", zone,
                           std::string_view(zone) == "plain.test" ? "'off'" : "default");
    }
    parts_.configure(zones);
    parts_.reloader->allow();
    const auto reloaded = parts_.reload();
    EXPECT_TRUE(reloaded) << reloaded.error().text;
    EXPECT_TRUE(parts_.run_until([this] {
      return parts_.zone_services.signing->zones().facts_of(name("b.test.")) != nullptr &&
             parts_.serial("b.test.") != 0;
    }));
  }
  Result<json> run(std::string_view verb, const std::string& zone = "", const std::string& label = "") {
    ipc::ControlRequest request;
    request.verb = verb;
    request.name = zone;
    request.label = label;
    return run(request);
  }
  Result<json> run(const ipc::ControlRequest& request) {
    return parts_.await<Result<json>>([&](auto& place) {
      table_.run(request, [&place](Result<json> result) { place = std::move(result); });
    });
  }
  std::string stage(const std::string& zone) {
    return run(verb::kDnssecStatus, zone).value()["stage"];
  }
  /// The fact that a look at the zone would find.
  void note_signed(const std::string& zone) {
    const Status noted = parts_.await<Status>([&](auto& place) {
      parts_.zone_services.signing->zones().edit_facts(
          name(zone), [](SigningFacts& facts) { facts.signed_since = 1; },
          [&place](const Status& done) { place = done; });
    });
    EXPECT_TRUE(noted);
  }

  ManagerParts parts_;
  CommandTable table_;
  DnssecControl control_{parts_.io, parts_.pool, parts_.parts()};
};

TEST_F(DnssecCommandsTest, ListsSignedZonesInPages) {
  ipc::ControlRequest request;
  request.verb = verb::kDnssecList;
  request.limit = 1;
  const json first = run(request).value();
  ASSERT_THAT(first["zones"], SizeIs(1));
  EXPECT_EQ(first["zones"][0]["zone"], "a.test.");
  request.after = first["next"];
  const json second = run(request).value();
  ASSERT_THAT(second["zones"], SizeIs(1));
  EXPECT_EQ(second["zones"][0]["zone"], "b.test.");
  EXPECT_EQ(second["next"], "");
}

TEST_F(DnssecCommandsTest, StatusHasKeysAndDsOfTheZone) {
  const json status = run(verb::kDnssecStatus, "a.test").value();
  EXPECT_EQ(status["policy"], "default");
  ASSERT_THAT(status["keys"], SizeIs(1));
  EXPECT_EQ(status["keys"][0]["role"], "CSK");
  EXPECT_THAT(status["ds"], SizeIs(1));
  EXPECT_THAT(run(verb::kDnssecStatus, "plain.test").error().text, HasSubstr("is not signed here"));
}

TEST_F(DnssecCommandsTest, CheckOfASignedZoneLeavesNothingOut) {
  const json check = run(verb::kDnssecCheck, "a.test").value();
  EXPECT_EQ(check["left_out"], 0) << "its signatures are of its own keys";
  EXPECT_FALSE(check["makes_key"]);
  EXPECT_EQ(check["keys"].size(), 1U);
}

TEST_F(DnssecCommandsTest, CheckTellsOfAZoneWithoutPolicy) {
  const json check = run(verb::kDnssecCheck, "plain.test").value();
  EXPECT_TRUE(check["makes_key"]);
  EXPECT_EQ(check["policy"], "default");
  // SOA, NS, DNSKEY and NSEC at the apex; A and NSEC of ns1.
  EXPECT_EQ(check["signatures"], 6);
  EXPECT_EQ(run(verb::kDnssecCheck, "plain.test", "none").error().code, Errc::kNotFound);
  EXPECT_EQ(run(verb::kDnssecCheck, "none.test").error().code, Errc::kNotFound);
}

TEST_F(DnssecCommandsTest, KeysComeByDescriptorForZonesThatHaveNone) {
  EXPECT_THAT(run(verb::kDnssecImport, "plain.test").error().text, HasSubstr("descriptor"));
  ipc::ControlRequest request;
  request.verb = verb::kDnssecImport;
  request.name = "a.test";
  request.descriptor = std::make_shared<const Fd>(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  EXPECT_THAT(run(request).error().text, HasSubstr("signed by its keys already"));
  request.name = "plain.test";
  EXPECT_EQ(run(request).error().code, Errc::kInvalid) << "an empty file";
  request.name = "none.test";
  EXPECT_EQ(run(request).error().code, Errc::kNotFound) << "no folder is made for any name";
}

TEST_F(DnssecCommandsTest, WhatTheOperatorSeesMovesTheStage) {
  EXPECT_THAT(run(verb::kDnssecDsSeen, "a.test").error().text, HasSubstr("not signed yet"));
  note_signed("a.test.");
  EXPECT_EQ(stage("a.test"), "ds-wanted");
  EXPECT_FALSE(run(verb::kDnssecDsGone, "a.test")) << "nobody wants it unsigned";
  ASSERT_TRUE(run(verb::kDnssecDsSeen, "a.test"));
  EXPECT_EQ(stage("a.test"), "secure");
  EXPECT_FALSE(run(verb::kDnssecStaySigned, "a.test"));
  ASSERT_TRUE(run(verb::kDnssecUnsign, "a.test"));
  EXPECT_EQ(stage("a.test"), "no-ds-wanted");
  EXPECT_FALSE(run(verb::kDnssecDsSeen, "a.test"));
  ASSERT_TRUE(run(verb::kDnssecStaySigned, "a.test"));
  EXPECT_EQ(stage("a.test"), "secure");
  ASSERT_TRUE(run(verb::kDnssecUnsign, "a.test"));
  ASSERT_TRUE(run(verb::kDnssecDsGone, "a.test"));
  EXPECT_EQ(stage("a.test"), "ds-expiring");
  EXPECT_FALSE(run(verb::kDnssecUnsign, "plain.test"));
}

TEST_F(DnssecCommandsTest, TheClockCanBeConfirmed) {
  EXPECT_TRUE(run(verb::kDnssecClockOk));
  EXPECT_EQ(run(verb::kDnssecStatus, "a.test").value()["clock"], "");
}

}  // namespace dnssec_control_test
}  // namespace pando::manager
