#include "manager/journal/journal_health.h"

#include <gmock/gmock.h>

namespace pando::manager {
namespace journal_health_test {

using State = JournalHealth::State;
using std::chrono::seconds;

constexpr auto kTimeout = seconds(30);

class JournalHealthTest : public ::testing::Test {
 protected:
  /// The health of the same journal when its files were read again, and `fault` was found.
  void read_again(State fault = State::kWhole, const std::string& why = {}) {
    JournalHealth found;
    found.report(fault, why, now_);
    found.continue_from(health_);
    health_ = found;
  }

  JournalHealth::Clock::time_point now_ = JournalHealth::Clock::now();
  JournalHealth health_{kTimeout};
};

TEST_F(JournalHealthTest, BeginsWhole) {
  EXPECT_EQ(health_.state(), State::kWhole);
  EXPECT_EQ(health_.reason(), "");
  EXPECT_FALSE(health_.lacks_records());
  EXPECT_TRUE(health_.has_durable_end());
  EXPECT_EQ(health_.refusal(), "");
  EXPECT_EQ(health_.lost(), LostRange());
  EXPECT_FALSE(health_.has_lasting_gap(now_ + kTimeout));
}

TEST_F(JournalHealthTest, LostRecordsAreNoWaitForTheDisk) {
  health_.report(State::kBehind, "records 4 to 6 are missing", now_);
  EXPECT_EQ(health_.state(), State::kBehind);
  EXPECT_EQ(health_.reason(), "records 4 to 6 are missing");
  EXPECT_TRUE(health_.lacks_records());
  EXPECT_TRUE(health_.has_durable_end()) << "groups could be appended";
  EXPECT_EQ(health_.refusal(), "");
  EXPECT_FALSE(health_.has_lasting_gap(now_ + kTimeout));
}

TEST_F(JournalHealthTest, AnUnreadPartIsTakenForLostAfterTheTimeout) {
  health_.report(State::kPartUnread, "EIO", now_);
  EXPECT_EQ(health_.state(), State::kPartUnread);
  EXPECT_TRUE(health_.has_durable_end());
  EXPECT_FALSE(health_.has_gap_to_close(now_ + kTimeout - seconds(1)));
  health_.report(State::kPartUnread, "EIO again", now_ + kTimeout - seconds(1));
  EXPECT_TRUE(health_.has_gap_to_close(now_ + kTimeout)) << "the first failure counts";
  health_.report(State::kBehind, "damage of another place", now_ + kTimeout);
  EXPECT_EQ(health_.state(), State::kPartUnread);
  EXPECT_EQ(health_.reason(), "damage of another place");
  EXPECT_TRUE(health_.has_gap_to_close(now_ + kTimeout));
}

TEST_F(JournalHealthTest, AnUnreadableJournalRefusesGroupsAndIsReplacedBesideACompleteStoreOnly) {
  health_.report(State::kUnreadable, "EIO", now_);
  health_.report(State::kUnreadable, "EIO elsewhere", now_ + kTimeout);
  EXPECT_EQ(health_.state(), State::kUnreadable);
  EXPECT_EQ(health_.reason(), "EIO");
  EXPECT_EQ(health_.refusal(), "EIO");
  EXPECT_FALSE(health_.has_durable_end());
  EXPECT_FALSE(health_.lacks_records()) << "the records may be there";
  EXPECT_FALSE(health_.has_lasting_gap(now_ + kTimeout - seconds(1)));
  EXPECT_TRUE(health_.has_lasting_gap(now_ + kTimeout));
  EXPECT_FALSE(health_.has_gap_to_close(now_ + kTimeout));
  health_.set_store_has_all();
  EXPECT_TRUE(health_.has_gap_to_close(now_ + kTimeout));
}

TEST_F(JournalHealthTest, RecordsAreMissingAlsoWhileAnotherPartCannotBeRead) {
  health_.report(State::kBehind, "a gap", now_);
  health_.report(State::kUnreadable, "EIO", now_);
  EXPECT_EQ(health_.state(), State::kUnreadable);
  EXPECT_TRUE(health_.lacks_records());
  EXPECT_EQ(health_.lack(), "a gap");
  read_again();
  EXPECT_EQ(health_.state(), State::kBehind);
  EXPECT_EQ(health_.reason(), "a gap");
  EXPECT_EQ(health_.refusal(), "");
}

TEST_F(JournalHealthTest, ReadingAgainKeepsWhatTheFilesDoNotTell) {
  health_.set_store_has_all();
  health_.extend_lost(9);
  health_.report(State::kUnreadable, "EIO", now_);
  now_ += seconds(10);
  read_again(State::kUnreadable, "still EIO");
  EXPECT_TRUE(health_.store_has_all());
  EXPECT_EQ(health_.lost(), (LostRange{0, 9}));
  EXPECT_EQ(health_.reason(), "still EIO");
  EXPECT_FALSE(health_.has_gap_to_close(now_ + seconds(19)));
  EXPECT_TRUE(health_.has_gap_to_close(now_ + seconds(20))) << "the first failure counts";
  read_again(State::kBehind, "damage");
  EXPECT_EQ(health_.state(), State::kBehind);
  EXPECT_EQ(health_.reason(), "damage");
}

TEST_F(JournalHealthTest, ASnapshotHealsWhatWasKnownWhenItsFilesWereSealed) {
  health_.report(State::kBehind, "a gap", now_);
  health_.leave_out(7);
  const JournalHealth sealed = health_;
  health_.report(State::kPartUnread, "EIO", now_);
  EXPECT_FALSE(health_.heal(sealed));
  EXPECT_EQ(health_.state(), State::kPartUnread) << "found since";
  EXPECT_EQ(health_.lost().from, 7U);
  EXPECT_FALSE(health_.heal(JournalHealth(health_)));
  EXPECT_EQ(health_.state(), State::kWhole);
  EXPECT_EQ(health_.reason(), "");
  EXPECT_EQ(health_.lost().from, 0U);
}

TEST_F(JournalHealthTest, ASnapshotInPlaceOfAnUnreadablePartEndsTheRefusal) {
  health_.report(State::kUnreadable, "EIO", now_);
  health_.refuse("EIO");
  EXPECT_TRUE(health_.heal(JournalHealth(health_))) << "the part's positions are unknown";
  EXPECT_EQ(health_.state(), State::kWhole);
  EXPECT_EQ(health_.refusal(), "");
  EXPECT_TRUE(health_.has_durable_end());
}

TEST_F(JournalHealthTest, ARefusalIsNoLackAndEndsWithTheNextGroup) {
  health_.refuse("no space left");
  health_.set_secured(false);
  EXPECT_EQ(health_.state(), State::kWhole);
  EXPECT_EQ(health_.refusal(), "no space left");
  EXPECT_FALSE(health_.has_durable_end());
  health_.accept();
  health_.set_secured(true);
  EXPECT_EQ(health_.refusal(), "");
  EXPECT_TRUE(health_.has_durable_end());
}

TEST_F(JournalHealthTest, TheLastDamageLeftOutCountsAndEachReplacedFile) {
  health_.leave_out(9);
  health_.leave_out(4);
  EXPECT_EQ(health_.lost().from, 9U);
  health_.add_replaced("1.journal.unread");
  health_.add_replaced("4.journal.unread");
  EXPECT_EQ(health_.replaced().files, 2U);
  EXPECT_EQ(health_.replaced().last, "4.journal.unread");
}

}  // namespace journal_health_test
}  // namespace pando::manager
