#include "manager/control/report/status_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "manager/support/found_damage.h"
#include "tests/unit/manager/start/manager_parts.h"

namespace pando::manager {
namespace status_report_test {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::ManagerParts;

class Report : public ::testing::Test {
 protected:
  explicit Report(const std::string& zones = "", const std::string& rest = "")
      : parts_(zones, rest) {
    parts_.reloader->allow();
  }
  [[nodiscard]] ipc::StatusResult make() const { return report_.make(); }
  void reload() {
    const auto result = parts_.reload();
    ASSERT_TRUE(result) << result.error().text;
  }

  ManagerParts parts_;
  StatusReport report_{parts_.parts(), 1234};
};

TEST_F(Report, TellsOfTheProcessAndItsConfiguration) {
  parts_.configuration.read_at = 5678;
  const ipc::StatusResult status = make();
  EXPECT_EQ(status.version, PANDO_VERSION);
  EXPECT_EQ(status.pid, static_cast<std::uint32_t>(::getpid()));
  EXPECT_EQ(status.started, 1234U);
  EXPECT_EQ(status.configuration, parts_.path());
  EXPECT_EQ(status.configured, 5678U);
  EXPECT_EQ(status.zone_lists, "read");
  EXPECT_EQ(status.problem, "");
  EXPECT_EQ(status.program, own_program());
}

TEST_F(Report, CountsZonesAndThoseWithData) {
  parts_.write_zone("a.test", 1);
  parts_.configure(ManagerParts::primary("a.test") + ManagerParts::primary("b.test"));
  const std::uint64_t version = make().store_version;
  reload();
  const ipc::StatusResult status = make();
  EXPECT_EQ(status.zones, 2U);
  EXPECT_EQ(status.zones_loaded, 1U) << "b.test has no file";
  EXPECT_GT(status.store_version, version);
  EXPECT_GT(status.counters.at("versions"), 0U);
}

TEST_F(Report, HasTheStoresBytesAndTheJournalsPlace) {
  const ipc::StatusResult status = make();
  EXPECT_EQ(status.store.at("limit"), 64U << 20);
  EXPECT_LE(status.store.at("effective_limit"), 64U << 20);
  EXPECT_LE(status.store.at("live"), status.store.at("memory"));
  EXPECT_EQ(status.journal.at("position"), parts_.data->journal->last_position());
  EXPECT_EQ(status.journal.at("in_memory"), 1U) << "the test's folder is on tmpfs";
  EXPECT_THAT(status.image, IsEmpty()) << "none is configured";
}

TEST_F(Report, OfExternalWorkersWantsNone) {
  const ipc::StatusResult status = make();
  EXPECT_EQ(status.worker_mode, "external");
  EXPECT_EQ(status.worker_isolation, "none");
  EXPECT_EQ(status.workers_wanted, 0U);
  EXPECT_EQ(status.workers_running, 0U);
}

TEST_F(Report, TheProblemIsThatOfTheListsBeforeAllOthers) {
  parts_.configuration.list_problem = "no list of added zones";
  EXPECT_EQ(make().problem, "no list of added zones");
  parts_.lists->set_problem("no zone lists");
  EXPECT_EQ(make().problem, "no zone lists");
}

TEST_F(Report, AnImageThatWasNotUsedIsToldUntilThereIsANewOne) {
  const std::string path = parts_.folder.path() + "/zones.image";
  std::ofstream(path) << "an image";
  Image image(native_files(), {path, 1, {1, 2}, false});
  parts_.data->quarantined.mark_unused({Errc::kFull, "no room for it"});
  parts_.data->quarantined.quarantine_if_good(image);
  EXPECT_THAT(make().image_not_used, HasSubstr("no room for it"));
  EXPECT_EQ(make().image_quarantined, parts_.data->quarantined.quarantined());
}

TEST_F(Report, HasTheDamageThatWasFound) {
  found_damage().add("status_report_test: a wrong checksum");
  std::vector<std::string> texts;
  for (const ipc::FoundDamageRow& row : make().damage_found) texts.push_back(row.text);
  EXPECT_THAT(texts, Contains("status_report_test: a wrong checksum"));
}

/// A manager whose configuration has sections that only a restart changes all of.
class ReportOfAllSections : public Report {
 protected:
  static std::string sections(int zones) {
    return fmt::format("http: {{listen: [127.0.0.1@8953], user: root, metrics-zones: {}}}\n", zones);
  }
  ReportOfAllSections() : Report("", sections(10)) {}
};

TEST_F(ReportOfAllSections, NoKeyWaitsForARestartAfterTheStart) {
  EXPECT_THAT(make().restart_needed, IsEmpty());
  reload();
  EXPECT_THAT(make().restart_needed, IsEmpty()) << "nothing has changed";
}

TEST_F(ReportOfAllSections, KeysWaitUntilTheyAreAsAtTheStartAgain) {
  parts_.configure("", sections(20));
  reload();
  EXPECT_THAT(make().restart_needed, ElementsAre("http.metrics-zones"));
  reload();
  EXPECT_THAT(make().restart_needed, ElementsAre("http.metrics-zones")) << "a reload changes none";
  parts_.configure("", sections(10));
  reload();
  EXPECT_THAT(make().restart_needed, IsEmpty());
}

}  // namespace status_report_test
}  // namespace pando::manager
