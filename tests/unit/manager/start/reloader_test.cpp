#include "manager/start/reloader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/manager/start/manager_parts.h"

namespace pando::manager {
namespace reloader_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::ManagerParts;
using testing::name;

/// A manager whose store is in line with an empty configuration.
class Reloading : public ::testing::Test {
 protected:
  Reloading() { parts_.reloader->allow(); }

  ipc::ReloadResult reload() {
    auto result = parts_.reload();
    EXPECT_TRUE(result) << result.error().text;
    return result ? *result : ipc::ReloadResult{};
  }
  /// Begins a reload whose result comes into results_.
  void begin() {
    parts_.reloader->reload(
        [this](Result<ipc::ReloadResult> result) { results_.push_back(std::move(result)); });
  }
  bool await(std::size_t results) {
    return parts_.run_until([&] { return results_.size() == results; });
  }
  /// The configuration in force with `more` zones of files, as RunTimeZones makes one.
  RuntimePtr with(const std::string& zone) {
    config::Settings settings = parts_.configuration.runtime->settings;
    EXPECT_TRUE(settings.zones.add(name(zone + "."), parts_.folder.path() + "/" + zone + ".zone",
                                   settings.zones.add_options({})));
    return make_runtime(std::move(settings)).value();
  }
  Result<ipc::ReloadResult> adopt(const RuntimePtr& runtime, std::vector<dns::Name> zones) {
    return parts_.await<Result<ipc::ReloadResult>>([&](auto& place) {
      parts_.reloader->adopt(runtime, make_zone_names(zones),
                             [&](const Result<ipc::ReloadResult>& result,
                                 const ZoneFileLoads::Counts&) { place = result; });
    });
  }
  bool has(std::string_view zone) { return bool{parts_.zone(zone)}; }

  ManagerParts parts_;
  std::vector<Result<ipc::ReloadResult>> results_;
};

TEST_F(Reloading, BringsTheStoreInLineWithTheFile) {
  parts_.write_zone("a.test", 1);
  parts_.write_zone("b.test", 2);
  parts_.configure(ManagerParts::primary("a.test") + ManagerParts::primary("b.test"));
  const auto added = reload();
  EXPECT_EQ(added.zones_added, 2U);
  EXPECT_EQ(added.zones_removed, 0U);
  EXPECT_EQ(added.zones_failed, 0U);
  EXPECT_EQ(parts_.serial("a.test."), 1U);
  EXPECT_EQ(parts_.serial("b.test."), 2U);
  parts_.write_zone("b.test", 3);
  parts_.configure(ManagerParts::primary("b.test"));
  const auto removed = reload();
  EXPECT_EQ(removed.zones_added, 0U);
  EXPECT_EQ(removed.zones_removed, 1U);
  EXPECT_EQ(removed.zones_changed, 1U);
  EXPECT_FALSE(has("a.test."));
  EXPECT_EQ(parts_.serial("b.test."), 3U);
  EXPECT_EQ(parts_.zone_services.loads->loaded(), 1U);
}

TEST_F(Reloading, CountsEachZoneOnce) {
  parts_.write_zone("a.test", 1);
  parts_.write_zone("b.test", 1);
  parts_.configure(ManagerParts::primary("a.test"));
  const auto added = reload();
  EXPECT_EQ(added.zones_added, 1U);
  EXPECT_EQ(added.zones_changed, 0U) << "its first data belong to the addition";
  parts_.write_zone("a.test", 2);
  parts_.configure(
      "  - {name: a.test, file: a.test.zone, allow-transfer: [{address: 192.0.2.1}]}\n" +
      ManagerParts::primary("b.test"));
  const auto both = reload();
  EXPECT_EQ(both.zones_added, 1U);
  EXPECT_EQ(both.zones_changed, 1U) << "settings and file of one zone";
  EXPECT_EQ(parts_.serial("a.test."), 2U);
  EXPECT_EQ(reload().zones_changed, 0U);
  parts_.write_zone("b.test", 2);
  EXPECT_EQ(reload().zones_changed, 1U);
}

TEST_F(Reloading, AConfigurationWithErrorsChangesNothing) {
  parts_.write_zone("a.test", 1);
  parts_.configure(ManagerParts::primary("a.test"));
  reload();
  const RuntimePtr before = parts_.configuration.runtime;
  parts_.configure("", "limits: {no-such-key: 1}\n");
  const auto failed = parts_.reload();
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().text, HasSubstr("no-such-key"));
  EXPECT_EQ(parts_.configuration.runtime, before);
  EXPECT_EQ(parts_.serial("a.test."), 1U);
  parts_.configure(ManagerParts::primary("a.test"));
  EXPECT_TRUE(parts_.reload()) << "the next one is not refused";
}

TEST_F(Reloading, AZoneWhoseFileIsWrongIsAddedWithoutDataAndReported) {
  parts_.configure(ManagerParts::primary("a.test"));
  const auto result = reload();
  EXPECT_EQ(result.zones_added, 1U);
  EXPECT_EQ(result.zones_failed, 1U);
  EXPECT_THAT(result.problems, ElementsAre(HasSubstr("a.test")));
  EXPECT_TRUE(has("a.test."));
  EXPECT_EQ(parts_.serial("a.test."), 0U);
}

TEST_F(Reloading, NamesTheKeysThatWaitForARestart) {
  parts_.configure("", "limits: {transfers-in: 3}\n");
  EXPECT_THAT(reload().restart_needed, IsEmpty()) << "a live key";
  EXPECT_EQ(parts_.configuration.runtime->settings.limits.transfers_in, 3U);
  std::ofstream(parts_.path())
      << "server: {run-directory: ., workers: external}\n"
         "store: {path: zones.store, journal: journal, size-limit: 128MiB, image: none}\n";
  EXPECT_THAT(reload().restart_needed, ElementsAre("store.size-limit"));
}

TEST_F(Reloading, ARemovedZoneWithUpdatesIsKeptInMind) {
  parts_.write_zone("a.test", 1);
  parts_.configure(ManagerParts::primary("a.test"));
  reload();
  std::optional<bool> done;
  ZoneChange change;
  change.zone = name("a.test.");
  change.limits = {};
  change.content = [](const zone::StoreView&) {
        const auto soa = [](std::uint32_t serial) {
          return testing::record(fmt::format(
              "a.test. 3600 SOA ns1.a.test. admin.a.test. {} 3600 600 86400 300", serial));
        };
        return ComputedChange::of(zone::Changeset{
            name("a.test."), {soa(1)}, {soa(2), testing::record("x.a.test. 60 A 192.0.2.9")}});
      };
  change.done = [&](const Result<ChangeOutcome>& outcome) { done = outcome.has_value(); };
  parts_.services.road->submit(std::move(change));
  ASSERT_TRUE(parts_.run_until([&] { return done.has_value(); }));
  ASSERT_TRUE(*done);
  parts_.configure("");
  const auto result = reload();
  EXPECT_EQ(result.zones_removed, 1U);
  EXPECT_EQ(result.zones_kept, 1U);
  ASSERT_TRUE(parts_.zone_services.removed->zones().contains(name("a.test.")));
  parts_.configure(ManagerParts::primary("a.test"));
  reload();
  EXPECT_THAT(parts_.zone_services.removed->zones(), IsEmpty());
  EXPECT_EQ(parts_.serial("a.test."), 2U) << "with its updates";
}

TEST_F(Reloading, RefusesACommandWhileOneIsUnderWay) {
  begin();
  begin();
  ASSERT_TRUE(await(2));
  ASSERT_FALSE(results_[0]) << "at once";
  EXPECT_EQ(results_[0].error().code, Errc::kExists);
  EXPECT_TRUE(results_[1]);
}

TEST_F(Reloading, ASignalIsServedAfterTheReloadUnderWay) {
  parts_.write_zone("a.test", 1);
  begin();
  // The reload may have read the file by now, hence the signal.
  parts_.configure(ManagerParts::primary("a.test"));
  parts_.reloader->reload_or_put_off();
  parts_.reloader->reload_or_put_off();
  EXPECT_TRUE(parts_.run_until([&] { return parts_.serial("a.test.") == 1; }));
}

TEST(ReloadBeforeTheStoreIsInLine, WaitsForIt) {
  ManagerParts parts;
  std::optional<bool> done;
  parts.reloader->reload(
      [&](const Result<ipc::ReloadResult>& result) { done = result.has_value(); });
  parts.io.poll();
  EXPECT_FALSE(done);
  EXPECT_FALSE(parts.reloader->hold());
  parts.reloader->allow();
  EXPECT_TRUE(parts.run_until([&] { return done.has_value(); }));
  EXPECT_EQ(done, true);
}

TEST(ReloadBeforeTheStoreIsInLine, GetsAnAnswerWhenTheProcessEnds) {
  ManagerParts parts;
  std::string reason;
  parts.reloader->reload(
      [&](const Result<ipc::ReloadResult>& result) { reason = result ? "" : result.error().text; });
  parts.reloader->stop();
  parts.reloader->give_up();
  EXPECT_EQ(reason, "the process ends");
}

TEST_F(Reloading, AChangeOfSingleZonesTouchesThoseAlone) {
  parts_.write_zone("a.test", 1);
  parts_.write_zone("b.test", 1);
  parts_.configure(ManagerParts::primary("a.test"));
  reload();
  parts_.write_zone("a.test", 2);
  ASSERT_TRUE(parts_.reloader->hold());
  const auto added = adopt(with("b.test"), {name("b.test.")});
  ASSERT_TRUE(added) << added.error().text;
  EXPECT_EQ(added->zones_added, 1U);
  EXPECT_EQ(parts_.serial("b.test."), 1U);
  EXPECT_EQ(parts_.serial("a.test."), 1U) << "its file was not looked at";
  EXPECT_EQ(parts_.zone_services.loads->loaded(), 2U);
  const auto again = adopt(parts_.configuration.runtime, {name("a.test.")});
  ASSERT_TRUE(again) << again.error().text;
  EXPECT_EQ(parts_.serial("a.test."), 2U) << "the files of named zones are read again";
}

TEST_F(Reloading, ReloadsWaitForAChangeOfSingleZones) {
  ASSERT_TRUE(parts_.reloader->hold());
  EXPECT_FALSE(parts_.reloader->hold());
  begin();
  parts_.io.poll();
  EXPECT_THAT(results_, IsEmpty());
  parts_.reloader->release();
  ASSERT_TRUE(await(1));
  EXPECT_TRUE(results_[0]);
}

}  // namespace reloader_test
}  // namespace pando::manager
