#include "manager/journal/journal_examination.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/manager/journal/journal_fixture.h"

namespace pando::manager {
namespace journal_examination_test {

using ::testing::HasSubstr;

/// A journal of three segments with one record each.
class Examined : public testing::JournalFixture {
 protected:
  Examined() {
    for (const char* payload : {"first", "second", "third"}) {
      append(journal_, payload);
      journal_.seal();
    }
    append(journal_, "open");
  }
  JournalFaults faults() { return examine_journal(disk, journal_.files()); }
  std::string segment(std::size_t number) { return journal_.files().segments.at(number).path; }

  Journal journal_ = open();
};

TEST_F(Examined, ASoundJournalHasNoFaults) {
  EXPECT_EQ(faults().damage, "");
  EXPECT_EQ(faults().unreadable, "");
  tell_faults(faults(), journal_);
  EXPECT_EQ(journal_.health().state(), JournalHealth::State::kWhole);
}

TEST_F(Examined, DamageIsLost) {
  disk.contents(segment(1))[kSegmentHeaderBytes + kRecordHeaderBytes] ^= 1;
  EXPECT_NE(faults().damage, "");
  EXPECT_EQ(faults().unreadable, "");
  tell_faults(faults(), journal_);
  EXPECT_EQ(journal_.health().state(), JournalHealth::State::kBehind);
}

/// What cannot be read may come back, so nothing is given up yet.
TEST_F(Examined, AnUnreadablePartOutweighsDamage) {
  disk.contents(segment(1))[kSegmentHeaderBytes + kRecordHeaderBytes] ^= 1;
  disk.unreadable = [bad = segment(0)](const std::string& path, std::uint64_t, std::uint64_t) {
    return path == bad;
  };
  EXPECT_THAT(faults().unreadable, HasSubstr(segment(0)));
  tell_faults(faults(), journal_);
  EXPECT_EQ(journal_.health().state(), JournalHealth::State::kPartUnread);
}

}  // namespace journal_examination_test
}  // namespace pando::manager
