#include "ipc/control_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pando::ipc {
namespace control_json_test {

using nlohmann::json;

TEST(ControlResults, SurviveTheTripThroughJson) {
  const StatusResult status{.version = "1",
                            .pid = 2,
                            .started = 3,
                            .configuration = "/c",
                            .configured = 4,
                            .zone_lists = "failed",
                            .problem = "why",
                            .worker_mode = "managed",
                            .workers_wanted = 5,
                            .workers_running = 6,
                            .zones = 7,
                            .zones_loaded = 8,
                            .store_version = 9,
                            .store = {{"live", 10}},
                            .journal = {{"position", 11}},
                            .image_not_used = "/i: no room",
                            .image_quarantined = "/i.quarantined: by an earlier start",
                            .counters = {{"updates", 12}}};
  EXPECT_EQ(read_json<StatusResult>(json(status)).value(), status);
  const ZoneRow zone{"a.",
                     "secondary",
                     "ok",
                     1,
                     2,
                     3,
                     9,
                     true,
                     true,
                     "catalog.",
                     "producer",
                     10,
                     "/f",
                     {"192.0.2.1@53"},
                     {{"192.0.2.2@53", "NOERROR"}},
                     4,
                     5,
                     6,
                     11,
                     13,
                     12,
                     "timeout",
                     "reading",
                     7,
                     8};
  EXPECT_EQ(read_json<ZoneRow>(json(zone)).value(), zone);
  const ZoneListResult zones{{zone, ZoneRow{.name = "b."}}, "b."};
  EXPECT_EQ(read_json<ZoneListResult>(json(zones)).value(), zones);
  const WorkerListResult workers{
      "external", {{0, 0, "absent", 0, 0, 0, {}}, {1, 9, "running", 3, 1, 2, {{"queries", 7}}}}};
  EXPECT_EQ(read_json<WorkerListResult>(json(workers)).value(), workers);
  const ReloadResult reload{1, 2, 1, 3, {"store.path"}, {"careful"}, 1, {"a.: bad"}};
  EXPECT_EQ(read_json<ReloadResult>(json(reload)).value(), reload);
  const SnapshotListResult snapshots{{{"a.", "one", 1, 2, 3, "lost"}}, "a."};
  EXPECT_EQ(read_json<SnapshotListResult>(json(snapshots)).value(), snapshots);
  const StoreAudit audit{1, 2, 3, 4, {{"trie", 5}}, 1, {"a fault"}, {{"a.", "one", 6}}};
  EXPECT_EQ(read_json<StoreAudit>(json(audit)).value(), audit);
  const DumpResult dump{1, 2, 3, 4, 5};
  EXPECT_EQ(read_json<DumpResult>(json(dump)).value(), dump);
  const ExportResult exported{"a.", 7, 3, "/a.zone", true};
  EXPECT_EQ(read_json<ExportResult>(json(exported)).value(), exported);
}

TEST(ControlResults, RowsHaveEveryKeyEvenWhereItIsEmpty) {
  const json row = json(ZoneRow{.name = "a."});
  for (const char* key :
       {"name", "kind", "state", "serial", "records", "names", "history", "file", "primaries",
        "refresh_at", "expires_at", "last_ok", "problem", "load_phase", "load_done", "load_total",
        "judged_by", "judged_since", "judged_until", "change_from", "change_step", "change_since"})
    EXPECT_TRUE(row.contains(key)) << key;
  EXPECT_EQ(row["serial"], 0);
  EXPECT_EQ(json(WorkerRow{})["restarts"], 0);
}

TEST(ControlResults, OfTheWrongTypeAreErrors) {
  EXPECT_FALSE(read_json<ExportResult>(json::parse(R"({"written":1})")));
  EXPECT_FALSE(read_json<StatusResult>(json::parse(R"({"pid":"x"})")));
  EXPECT_FALSE(read_json<StatusResult>(json::parse(R"({"store":{"live":"x"}})")));
  EXPECT_FALSE(read_json<StatusResult>(json::parse("[]")));
  EXPECT_FALSE(read_json<ZoneListResult>(json::parse(R"({"zones":{}})")));
  EXPECT_FALSE(read_json<ZoneListResult>(json::parse(R"({"zones":[7]})")));
  EXPECT_FALSE(read_json<ZoneListResult>(json::parse("{}")));
  EXPECT_FALSE(read_json<WorkerListResult>(json::parse(R"({"workers":[{"slot":-1}]})")));
  EXPECT_FALSE(read_json<ReloadResult>(json::parse(R"({"warnings":[1]})")));
}

/// The names and their values are public: programs read them.
TEST(ControlResults, HaveTheNamesOfTheReference) {
  EXPECT_EQ(json(ExportResult{"a.", 7, 3, "/a.zone", true}).dump(),
            R"({"file":"/a.zone","records":3,"serial":7,"written":true,"zone":"a."})");
  EXPECT_EQ(json(DumpResult{1, 2, 3, 4, 5}).dump(),
            R"({"bytes":4,"changesets":3,"position":5,"records":2,"zones":1})");
  EXPECT_EQ(json(SnapshotListResult{}).dump(), R"({"next":"","snapshots":[]})");
  EXPECT_EQ(json(WorkerListResult{"managed", {}}).dump(), R"({"mode":"managed","workers":[]})");
}

TEST(ControlResults, WithoutAMemberHaveItsDefaultAndIgnoreOthers) {
  const auto exported = read_json<ExportResult>(json::parse(R"({"serial":7,"new":[{}]})"));
  ASSERT_TRUE(exported) << exported.error().text;
  EXPECT_EQ(exported->serial, 7U);
  EXPECT_FALSE(exported->written);
}

TEST(ControlResults, OfANumberOutOfRangeAreErrors) {
  for (const char* serial : {"-1", "4294967296", "1.5", "1e3", "true", "null", "\"1\""})
    EXPECT_FALSE(read_json<ExportResult>(json::parse(fmt::format(R"({{"serial":{}}})", serial))))
        << serial;
  EXPECT_FALSE(read_json<ExportResult>(json::parse(R"({"records":-1})"))) << "of 64 bits";
  EXPECT_FALSE(read_json<StatusResult>(json::parse(R"({"store":{"live":-1}})")));
  EXPECT_TRUE(read_json<ExportResult>(json::parse(R"({"serial":4294967295})")));
}

TEST(ControlResults, HaveErrorsOfOneLineInPlainWords) {
  const auto result = read_json<ExportResult>(json::parse(R"({"file":7})"));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Errc::kInvalid);
  EXPECT_EQ(result.error().text, "type must be string, but is number");
}

}  // namespace control_json_test
}  // namespace pando::ipc
