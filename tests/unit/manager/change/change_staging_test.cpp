#include "manager/change/change_staging.h"

#include <gtest/gtest.h>

#include <optional>

#include "tests/unit/manager/commit/parts.h"

namespace pando::manager {
namespace change_staging_test {

using testing::Parts;

std::string soa(int serial) {
  return "@ 3600 SOA ns1 admin " + std::to_string(serial) + " 3600 600 86400 300";
}

/// The next version under construction; nothing of it is published.
struct Attempt {
  explicit Attempt(Parts& parts)
      : transaction(parts.zone.store().begin()),
        draft(transaction, parts.zone.store().current().root,
              parts.zone.store().current().number + 1) {}

  shm::Transaction transaction;
  zone::Draft draft;
  std::vector<JournalEntry> journal;
  Stage stage{transaction, draft, journal, true};
};

class StagedChangesets : public ::testing::Test {
 protected:
  Parts parts_{8 << 20};

  /// As those of a primary.
  Status stage(Attempt& attempt, std::vector<zone::Changeset> changesets,
               const zone::DataLimits& limits = {}, bool is_whole = false) {
    ZoneChange change;
    change.zone = testing::name("@");
    change.source = ChangeSource::kTransfer;
    change.limits = limits;
    change.is_whole = is_whole;
    change.content = std::make_shared<const std::vector<zone::Changeset>>(std::move(changesets));
    return status_of(stage_changesets(attempt.stage, change, parts_.committer));
  }
  Errc error(Attempt& attempt, std::vector<zone::Changeset> changesets,
             const zone::DataLimits& limits = {}) {
    const Status staged = stage(attempt, std::move(changesets), limits);
    EXPECT_FALSE(staged.has_value());
    return staged ? Errc{} : staged.error().code;
  }

  /// So much that the rest of a chunk does not do.
  zone::Changeset large() {
    std::vector<std::string> added{soa(11)};
    for (int i = 0; i < 1000; ++i)
      added.push_back(fmt::format("n{} 60 TXT {}", i, std::string(250, 'x')));
    return parts_.changes({soa(10)}, added);
  }
};

TEST_F(StagedChangesets, AreNotedInTheJournalOneByOne) {
  const std::vector<zone::Changeset> two{
      parts_.changes({soa(10)}, {soa(11), "new 60 A 192.0.2.9"}),
      parts_.changes({soa(11), "new 60 A 192.0.2.9"}, {soa(12)})};
  Attempt noted(parts_);
  ASSERT_TRUE(stage(noted, two));
  ASSERT_EQ(noted.journal.size(), 2U);
  EXPECT_EQ(noted.journal[0].kind, RecordKind::kTransfer);
  EXPECT_EQ(noted.journal[0].to.value, 11U);
  EXPECT_EQ(noted.journal[1].to.value, 12U);
  EXPECT_EQ(noted.draft.view().zone_at(testing::name("@")).serial().value, 12U);
  Attempt whole(parts_);
  ASSERT_TRUE(stage(whole, two, {}, true));
  EXPECT_TRUE(whole.journal.empty());
}

TEST_F(StagedChangesets, AreReportedOnceForTheirZone) {
  Attempt attempt(parts_);
  ASSERT_TRUE(
      stage(attempt, {parts_.changes({soa(10)}, {soa(11)}), parts_.changes({soa(11)}, {soa(12)})}));
  ASSERT_EQ(attempt.stage.changed.size(), 1U);
  const PublishedZone& changed = attempt.stage.changed.front();
  EXPECT_EQ(changed.zone, testing::name("@"));
  EXPECT_EQ(changed.source, ChangeSource::kTransfer);
  EXPECT_FALSE(changed.is_whole);
  EXPECT_TRUE(changed.had_data);
}

TEST_F(StagedChangesets, ThatRemoveWhatIsNotThereAreUnfit) {
  Attempt attempt(parts_);
  EXPECT_EQ(error(attempt, {parts_.changes({soa(10), "nobody 60 A 192.0.2.9"}, {soa(11)})}),
            Errc::kInvalid);
}

TEST_F(StagedChangesets, ThatAddWhatIsThereAreUnfit) {
  Attempt before(parts_);
  ASSERT_TRUE(stage(
      before, {parts_.changes({soa(10)}, {soa(11), "new 60 A 192.0.2.9"}),
               parts_.changes({soa(11), "new 60 A 192.0.2.9"}, {soa(12), "new 60 A 192.0.2.9"})}))
      << "what the same difference removes is not there any more";
  for (const char* again : {"new 60 A 192.0.2.9", "NEW 60 A 192.0.2.9"}) {
    Attempt attempt(parts_);
    EXPECT_EQ(error(attempt, {parts_.changes({soa(10)}, {soa(11), "new 60 A 192.0.2.9"}),
                              parts_.changes({soa(11)}, {soa(12), again})}),
              Errc::kInvalid)
        << again;
  }
}

/// The zone sent whole may be within the limits.
TEST_F(StagedChangesets, ThatALimitRefusesAreUnfit) {
  Attempt attempt(parts_);
  zone::DataLimits limits;
  limits.rrset_records = 1;
  EXPECT_EQ(
      error(attempt,
            {parts_.changes({soa(10)}, {soa(11), "new 60 A 192.0.2.8", "new 60 A 192.0.2.9"})},
            limits),
      Errc::kInvalid);
}

TEST_F(StagedChangesets, ThatAStoreHasNoRoomForAreNot) {
  std::optional<shm::Transaction> others(parts_.zone.store().begin_private());
  while (others->allocate(60'000).has_value()) {
  }
  {
    Attempt attempt(parts_);
    EXPECT_EQ(error(attempt, {large()}), Errc::kFull);
  }
  others.reset();
  Attempt attempt(parts_);
  EXPECT_TRUE(stage(attempt, {large()}));
}

}  // namespace change_staging_test
}  // namespace pando::manager
