#include "manager/secondary/transfer_staging.h"

#include <gtest/gtest.h>

#include <optional>

#include "tests/unit/manager/commit/parts.h"

namespace pando::manager {
namespace transfer_staging_test {

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
  ASSERT_TRUE(stage_changesets(noted.stage, two, {}, &parts_.committer).has_value());
  ASSERT_EQ(noted.journal.size(), 2U);
  EXPECT_EQ(noted.journal[0].kind, RecordKind::kTransfer);
  EXPECT_EQ(noted.journal[0].to.value, 11U);
  EXPECT_EQ(noted.journal[1].to.value, 12U);
  EXPECT_EQ(noted.draft.view().zone_at(testing::name("@")).serial().value, 12U);
  Attempt unnoted(parts_);
  ASSERT_TRUE(stage_changesets(unnoted.stage, two, {}, nullptr).has_value());
  EXPECT_TRUE(unnoted.journal.empty());
}

TEST_F(StagedChangesets, ThatRemoveWhatIsNotThereAreUnfit) {
  Attempt attempt(parts_);
  const auto staged = stage_changesets(
      attempt.stage, {parts_.changes({soa(10), "nobody 60 A 192.0.2.9"}, {soa(11)})}, {}, nullptr);
  ASSERT_FALSE(staged.has_value());
  EXPECT_EQ(staged.error().code, Errc::kInvalid);
  EXPECT_TRUE(is_unfit(staged.error(), attempt.transaction));
}

TEST_F(StagedChangesets, ThatAddWhatIsThereAreUnfit) {
  Attempt before(parts_);
  ASSERT_TRUE(stage_changesets(before.stage,
                               {parts_.changes({soa(10)}, {soa(11), "new 60 A 192.0.2.9"}),
                                parts_.changes({soa(11), "new 60 A 192.0.2.9"},
                                               {soa(12), "new 60 A 192.0.2.9"})},
                               {}, nullptr)
                  .has_value())
      << "what the same difference removes is not there any more";
  for (const char* again : {"new 60 A 192.0.2.9", "NEW 60 A 192.0.2.9"}) {
    Attempt attempt(parts_);
    const auto staged =
        stage_changesets(attempt.stage,
                         {parts_.changes({soa(10)}, {soa(11), "new 60 A 192.0.2.9"}),
                          parts_.changes({soa(11)}, {soa(12), again})},
                         {}, nullptr);
    ASSERT_FALSE(staged.has_value()) << again;
    EXPECT_EQ(staged.error().code, Errc::kInvalid);
    EXPECT_TRUE(is_unfit(staged.error(), attempt.transaction));
  }
}

TEST_F(StagedChangesets, ThatALimitRefusesAreUnfit) {
  Attempt attempt(parts_);
  zone::DataLimits limits;
  limits.rrset_records = 1;
  const auto staged = stage_changesets(
      attempt.stage,
      {parts_.changes({soa(10)}, {soa(11), "new 60 A 192.0.2.8", "new 60 A 192.0.2.9"})}, limits,
      nullptr);
  ASSERT_FALSE(staged.has_value());
  EXPECT_EQ(staged.error().code, Errc::kFull);
  EXPECT_TRUE(is_unfit(staged.error(), attempt.transaction));
}

TEST_F(StagedChangesets, ThatAStoreHasNoRoomForAreNot) {
  std::optional<shm::Transaction> others(parts_.zone.store().begin_private());
  while (others->allocate(60'000).has_value()) {
  }
  {
    Attempt attempt(parts_);
    const auto staged = stage_changesets(attempt.stage, {large()}, {}, nullptr);
    ASSERT_FALSE(staged.has_value());
    EXPECT_EQ(staged.error().code, Errc::kFull);
    EXPECT_FALSE(is_unfit(staged.error(), attempt.transaction));
  }
  others.reset();
  Attempt attempt(parts_);
  EXPECT_TRUE(stage_changesets(attempt.stage, {large()}, {}, nullptr).has_value());
}

TEST_F(StagedChangesets, ThatADiskFailsAreNot) {
  Attempt attempt(parts_);
  EXPECT_FALSE(is_unfit({Errc::kIo, "pread: Input/output error"}, attempt.transaction));
}

}  // namespace transfer_staging_test
}  // namespace pando::manager
