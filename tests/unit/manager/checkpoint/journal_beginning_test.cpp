#include "manager/checkpoint/journal_beginning.h"

#include <gtest/gtest.h>

#include "manager/journal/journal_history.h"
#include "tests/unit/manager/commit/parts.h"
#include "tests/unit/manager/io/fake_disk.h"

namespace pando::manager {
namespace journal_beginning_test {

using shm::test::must;
using testing::name;
using testing::Parts;

/// A store that has come with position 500, and a journal without files.
class JournalBeginning : public ::testing::Test {
 protected:
  JournalBeginning() {
    must(parts_.zone.store().publish(parts_.zone.store().begin(), store().current().root, 500));
    reopen();
  }
  shm::Store& store() { return parts_.zone.store(); }
  /// As the next process does.
  void reopen() {
    journal_.emplace(
        must(Journal::open({folder_, 64 << 10}, native_files(), [](const JournalNote&) {})));
    journal_->skip_to(store().current().journal_position);
  }
  void append() {
    const JournalEntry entry[] = {
        {name("@"), {10}, {11}, zone::encode(parts_.changes({}, {"dyn 60 A 192.0.2.1"}))}};
    must(journal_->append(entry));
  }
  /// What a process that reads all of it is told, and knows of the zone.
  MergeBase state() {
    told_.clear();
    const auto history =
        JournalHistory::read(native_files(), journal_->files(),
                             [&](const JournalNote& note) { told_.push_back(note.text); });
    return must(history->merge_base(name("@"), UINT64_MAX));
  }
  void allow_updates() {
    parts_.zone.commit([](zone::Draft& draft) {
      zone::ZoneSettings settings;
      settings.allow_update = {zone::AclRule{}};
      return draft.put_zone_settings(name("@"), settings, 0);
    });
    must(store().publish(store().begin(), store().current().root, 500));
  }

  Parts parts_;
  std::string folder_ = parts_.folder.path() + "/other";
  std::optional<Journal> journal_;
  std::vector<std::string> told_;
};

TEST_F(JournalBeginning, MissesNothingThatWasBefore) {
  must(begin_journal(store(), *journal_));
  reopen();  // before anything was written
  append();
  reopen();
  EXPECT_TRUE(state().dynamic_changes.known()) << "there can have been no updates before";
  EXPECT_TRUE(told_.empty()) << told_.front();
  EXPECT_EQ(journal_->last_position(), 501U);
}

TEST_F(JournalBeginning, KnowsThatItDoesNotKnowWhatCameByUpdate) {
  allow_updates();
  must(begin_journal(store(), *journal_));
  EXPECT_EQ(store().current().journal_position, 501U);
  append();
  reopen();
  EXPECT_FALSE(state().dynamic_changes.known());
  EXPECT_TRUE(told_.empty()) << told_.front();
}

/// A disk that fails, or a kill, at any of its steps.
TEST_F(JournalBeginning, HasItsNotesOrHasNotBegun) {
  allow_updates();
  for (int step = 0;; ++step) {
    testing::FakeDisk disk;
    Journal journal = must(Journal::open({folder_, 64 << 10}, disk, [](const JournalNote&) {}));
    journal.skip_to(500);
    int calls = 0;
    disk.fail = [&](testing::FakeDisk::Call, const std::string&) {
      return calls++ == step ? Status(fail(Errc::kIo, "EIO")) : Status();
    };
    const bool begun = begin_journal(store(), journal).has_value();
    const bool reached = calls > step;
    disk.fail = [](testing::FakeDisk::Call, const std::string&) { return Status(); };
    must(store().publish(store().begin(), store().current().root, 500));
    const JournalEntry entry[] = {
        {name("@"), {10}, {11}, zone::encode(parts_.changes({}, {"dyn 60 A 192.0.2.1"}))}};
    must(journal.append(entry));
    Journal next = must(Journal::open({folder_, 64 << 10}, disk, [](const JournalNote&) {}));
    const auto history = JournalHistory::read(disk, next.files(), [](const JournalNote&) {});
    EXPECT_FALSE(must(history->merge_base(name("@"), UINT64_MAX)).dynamic_changes.known())
        << "step " << step << (begun ? ", begun" : ", not begun");
    if (reached) continue;
    EXPECT_GT(step, 4) << "few calls of the disk are enough";
    return;
  }
}

TEST_F(JournalBeginning, ThatHasFilesOrNothingBeforeItIsLeftAlone) {
  append();
  must(begin_journal(store(), *journal_));
  EXPECT_EQ(journal_->last_position(), 501U);
  state();
  EXPECT_EQ(told_.size(), 1U) << "records that should be there are not";
  Parts fresh;
  Journal empty =
      must(Journal::open({folder_ + "2", 64 << 10}, native_files(), [](const JournalNote&) {}));
  must(begin_journal(fresh.zone.store(), empty));
  EXPECT_TRUE(empty.files().segments.empty());
}

}  // namespace journal_beginning_test
}  // namespace pando::manager
