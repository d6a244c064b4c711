#include "manager/commit/zone_snapshots.h"

#include <gmock/gmock.h>

#include "ipc/log.h"
#include "tests/unit/manager/commit/parts.h"

namespace pando::manager {
namespace zone_snapshots_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::name;
using ::testing::Not;

class SnapshotsOfZones : public ::testing::Test {
 protected:
  Result<dns::Serial> take(const std::string& label, const dns::Name& zone = name("@"),
                           const zone::DataLimits& limits = {}) {
    std::optional<Result<dns::Serial>> result;
    snapshots_.take(zone, label, 1'700'000'000, limits,
                    [&](Result<dns::Serial> done) { result = std::move(done); });
    EXPECT_TRUE(parts_.run_until([&] { return result.has_value(); }));
    return std::move(*result);
  }
  Status forget(const std::string& label) {
    std::optional<Status> result;
    snapshots_.forget(name("@"), label, {}, [&](const Status& done) { result = done; });
    EXPECT_TRUE(parts_.run_until([&] { return result.has_value(); }));
    return *result;
  }
  std::vector<std::string> labels() {
    std::vector<std::string> found;
    for (const auto& row : shm::test::must(snapshots_.list(name("@"))).snapshots)
      found.push_back(row.label);
    return found;
  }
  void add_zone(const std::string& apex) {
    const auto put = [&](zone::Draft& draft) {
      return draft.put_zone_settings(name(apex), zone::ZoneSettings{}, 1);
    };
    shm::test::must(parts_.edit(put));
  }
  /// A change that no snapshot can be reached over any more.
  void lose_all(const std::string& owner) {
    const auto clear = [&](zone::Draft& draft) -> Status {
      auto applied = draft.apply({name("@"), {}, {testing::record(owner + " 60 A 192.0.2.1")}}, {});
      return status_of(applied);
    };
    shm::test::must(parts_.edit(clear));
  }
  /// The log while losses are searched for.
  std::string log_of_losses() {
    ::testing::internal::CaptureStderr();
    log::start({});
    snapshots_.tell_losses();
    parts_.io.restart();
    while (parts_.io.poll_one() > 0) continue;
    return ::testing::internal::GetCapturedStderr();
  }

  testing::Parts parts_;
  ZoneSnapshots snapshots_{parts_.io, parts_.committer};
};

TEST_F(SnapshotsOfZones, OneIsTakenListedAndDeleted) {
  EXPECT_EQ(shm::test::must(take("before")), dns::Serial{10});
  const auto listed = shm::test::must(snapshots_.list(name("@")));
  ASSERT_EQ(listed.snapshots.size(), 1U);
  EXPECT_EQ(listed.snapshots[0], (ipc::SnapshotRow{"example.", "before", 10, 1'700'000'000,
                                                   parts_.zone.zone().record_count(), ""}));
  EXPECT_TRUE(forget("before"));
  EXPECT_THAT(labels(), ElementsAre());
  EXPECT_EQ(forget("before").error().code, Errc::kNotFound);
}

TEST_F(SnapshotsOfZones, ALabelIsTakenOnce) {
  shm::test::must(take("before"));
  EXPECT_EQ(take("before").error().code, Errc::kExists);
  EXPECT_EQ(take("no/label").error().code, Errc::kInvalid);
  EXPECT_THAT(labels(), ElementsAre("before"));
}

/// The server's own label: deleting that snapshot would lose data that wait for the journal.
TEST_F(SnapshotsOfZones, TheLabelOfWithheldDataIsNotForUsers) {
  const auto refused = take("withheld-at-7");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::kInvalid);
}

TEST_F(SnapshotsOfZones, AnUnknownZoneOrOneWithoutDataHasNone) {
  EXPECT_EQ(take("x", name("nowhere.")).error().code, Errc::kNotFound);
  EXPECT_EQ(snapshots_.list(name("nowhere.")).error().code, Errc::kNotFound);
  add_zone("empty.");
  EXPECT_EQ(take("x", name("empty.")).error().code, Errc::kNotFound);
}

/// A rollback would need signatures that only the zone's signer can make.
TEST_F(SnapshotsOfZones, AZoneThatOthersSignHasNone) {
  parts_.zone.put({"@ 3600 SOA ns1 admin 10 3600 600 86400 300", "@ 3600 NS ns1",
                   "@ 3600 NSEC ns1 NS SOA NSEC", "ns1 3600 A 192.0.2.1"});
  EXPECT_EQ(take("x").error().code, Errc::kInvalid);
}

TEST_F(SnapshotsOfZones, AListHasPages) {
  shm::test::must(take("one"));
  shm::test::must(take("two"));
  add_zone("zz.");
  const auto first = snapshots_.list_behind(nullptr, 1);
  EXPECT_EQ(first.snapshots.size(), 2U) << "a zone's snapshots stay together";
  EXPECT_EQ(first.next, "example.");
  const dns::Name after = name("@");
  const auto last = snapshots_.list_behind(&after, 1);
  EXPECT_TRUE(last.snapshots.empty());
  EXPECT_EQ(last.next, "");
}

TEST_F(SnapshotsOfZones, ALossIsReportedOnce) {
  shm::test::must(take("before"));
  lose_all("first");
  EXPECT_THAT(log_of_losses(),
              HasSubstr("zone_snapshot_lost zone=example. snapshot=before serial=10"));
  EXPECT_THAT(log_of_losses(), Not(HasSubstr("zone_snapshot_lost")));
  // A snapshot of the same label that is lost later is another loss.
  shm::test::must(take("before"));
  shm::test::must(take("other"));
  snapshots_.tell_losses();
  lose_all("second");
  EXPECT_THAT(log_of_losses(), HasSubstr("snapshot=other"));
}

}  // namespace zone_snapshots_test
}  // namespace pando::manager
