#include "manager/journal/journal_tail.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "manager/journal/journal_recovery.h"
#include "tests/unit/manager/io/fake_disk.h"

namespace pando::manager {
namespace journal_tail_test {

using ::testing::ElementsAre;
using testing::FakeDisk;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Call = FakeDisk::Call;

constexpr const char* kFolder = "/journal";
const std::string kFile = "/journal/0000000000000001.journal";

/// A file whose bytes are only in the page cache, as a killed process leaves them.
class UnsecuredTail : public ::testing::Test {
 protected:
  UnsecuredTail() {
    auto file = disk_.open(kFile, OpenMode::kCreate).value();
    EXPECT_TRUE(file->write_at(0, bytes_));
    EXPECT_TRUE(disk_.sync_directory(kFolder));
  }
  const Bytes bytes_ = Bytes(3000, 7);
  FakeDisk disk_;
  JournalTail tail_{disk_, kFolder};
  std::mt19937_64 random_{1};
};

TEST_F(UnsecuredTail, IsNoneBeforeOneWasFound) {
  EXPECT_TRUE(tail_.is_secured());
  EXPECT_FALSE(tail_.is_in(kFile));
  EXPECT_TRUE(tail_.secure());
  EXPECT_EQ(disk_.calls[Call::kRename], 0);
}

TEST_F(UnsecuredTail, OutlivesALossOfPowerOnceItIsSecured) {
  tail_.found(kFile, bytes_);
  EXPECT_FALSE(tail_.is_secured());
  EXPECT_TRUE(tail_.is_in(kFile));
  ASSERT_TRUE(tail_.secure());
  EXPECT_TRUE(tail_.is_secured());
  EXPECT_FALSE(tail_.is_in(kFile));
  disk_.power_cut(random_);
  EXPECT_EQ(disk_.contents(kFile), bytes_);
  EXPECT_THAT(disk_.paths(), ElementsAre(kFile));
}

TEST_F(UnsecuredTail, StaysWhereItWasWithEachCallThatFails) {
  for (const Call call :
       {Call::kPreallocate, Call::kWrite, Call::kSync, Call::kRename, Call::kSyncDirectory}) {
    JournalTail tail(disk_, kFolder);
    tail.found(kFile, bytes_);
    disk_.fail = [call](Call asked, const std::string&) -> Status {
      return asked == call ? fail(Errc::kIo, "EIO") : Status();
    };
    const Status done = tail.secure();
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, Errc::kIo);
    EXPECT_THAT(done.error().text, HasSubstr(kFile + ": could not be made durable again: EIO"));
    EXPECT_FALSE(tail.is_secured());
    EXPECT_EQ(disk_.contents(kFile), bytes_);
    EXPECT_THAT(disk_.paths(), ElementsAre(kFile)) << "nothing half-written is left";
    disk_.fail = [](Call, const std::string&) { return Status(); };
    EXPECT_TRUE(tail.secure());
    EXPECT_TRUE(tail.is_secured());
  }
}

TEST_F(UnsecuredTail, IsForgottenWithItsFile) {
  tail_.found(kFile, bytes_);
  tail_.forget();
  EXPECT_TRUE(tail_.is_secured());
  ASSERT_TRUE(disk_.remove(kFile));
  EXPECT_TRUE(tail_.secure());
  EXPECT_THAT(disk_.paths(), IsEmpty()) << "it does not come back";
}

TEST(JournalRecovery, OfAFolderWithoutFilesHasNothing) {
  FakeDisk disk;
  JournalTail tail(disk, kFolder);
  const auto found = recover_journal(disk, kFolder, tail,
                                     [](const JournalNote& note) { ADD_FAILURE() << note.text; });
  ASSERT_TRUE(found);
  EXPECT_EQ(found->last, 0U);
  EXPECT_THAT(found->files.segments, IsEmpty());
  EXPECT_EQ(found->files.snapshot, "");
  EXPECT_TRUE(tail.is_secured());
}

/// Where the tail could not be secured, what was found is known all the same.
TEST(JournalRecovery, FindsWhatItCannotSecure) {
  FakeDisk disk;
  const auto ignore = [](const JournalNote&) {};
  {
    auto journal = Journal::open({kFolder, 4096}, disk, ignore).value();
    const JournalEntry entry{dns::Name::from_text("example.").value(), {1}, {2}, {1, 2, 3}};
    ASSERT_EQ(journal.append(std::span(&entry, 1)), 1U);
  }
  disk.fail = [](Call call, const std::string&) -> Status {
    return call == Call::kSync ? fail(Errc::kIo, "EIO") : Status();
  };
  JournalTail tail(disk, kFolder);
  std::vector<std::string> notes;
  const auto found = recover_journal(disk, kFolder, tail,
                                     [&](const JournalNote& note) { notes.push_back(note.text); });
  ASSERT_TRUE(found);
  EXPECT_EQ(found->last, 1U);
  ASSERT_EQ(found->files.segments.size(), 1U);
  EXPECT_TRUE(tail.is_in(found->files.segments.front().path));
  EXPECT_THAT(notes, ElementsAre(HasSubstr("updates are refused until it is")));
}

}  // namespace journal_tail_test
}  // namespace pando::manager
