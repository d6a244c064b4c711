// A start that cannot make the journal's end durable again serves what it found there, and a crash
// of the host may still take it away. Until it is durable nothing is promised that depends on it,
// and nothing that outlives the host is made of it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "manager/change/change_staging.h"
#include "manager/checkpoint/checkpointer.h"
#include "manager/commit/rollback.h"
#include "tests/unit/manager/checkpoint/parts_steps.h"
#include "tests/unit/manager/io/fake_disk.h"

namespace pando::manager {
namespace unsecured_journal_test {

using shm::test::must;
using testing::FakeDisk;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::name;
using ::testing::Not;
using testing::Parts;
using ::testing::SizeIs;
using Call = FakeDisk::Call;

class UnsecuredJournal : public ::testing::Test {
 protected:
  UnsecuredJournal() {
    must(parts_.apply({}, {"found 60 A 192.0.2.9"}));
    break_disk();
  }
  void break_disk() {
    disk_.fail = [](Call call, const std::string&) -> Status {
      return call == Call::kSync ? fail(Errc::kIo, "EIO") : Status();
    };
    testing::open_journal_again(parts_);
    EXPECT_FALSE(parts_.journal.health().has_durable_end());
  }
  void mend_disk() {
    disk_.fail = [](Call, const std::string&) { return Status(); };
  }
  /// The outcome of the manager's ticks.
  void secure() {
    mend_disk();
    EXPECT_TRUE(parts_.run_until([this] {
      parts_.committer.secure_journal();
      return parts_.journal.health().has_durable_end() && parts_.journal_thread.idle();
    }));
  }
  void wait_for_journal_thread() {
    ASSERT_TRUE(parts_.run_until([this] { return parts_.journal_thread.idle(); }));
  }
  template <class T>
  static void expect_put_off(const Result<T>& result) {
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Errc::kIo);
    EXPECT_THAT(result.error().text, HasSubstr("could not be made durable again"));
  }

  FakeDisk disk_;        // the journal's
  FakeDisk other_disk_;  // which is well
  Parts parts_{64 << 20, disk_};
};

// Updates ----------------------------------------------------------------------------------------

TEST_F(UnsecuredJournal, AnUpdateThatFindsAllThatItWantsIsNotDone) {
  expect_put_off(parts_.apply({}, {"found 60 A 192.0.2.9"}));
  expect_put_off(parts_.apply({"never 60 A 192.0.2.9"}, {}));
  expect_put_off(parts_.apply({}, {}));
  secure();
  must(parts_.apply({}, {"found 60 A 192.0.2.9"}));
  must(parts_.apply({"never 60 A 192.0.2.9"}, {}));
  must(parts_.apply({}, {}));
  EXPECT_THAT(parts_.journalled(), SizeIs(1));
}

TEST_F(UnsecuredJournal, AnUpdateWithAnEffectIsNotDoneAndSecuresItOnceThatIsPossible) {
  expect_put_off(parts_.apply({}, {"new 60 A 192.0.2.9"}));
  EXPECT_THAT(parts_.zone.at("new"), IsEmpty());
  mend_disk();
  must(parts_.apply({}, {"new 60 A 192.0.2.9"}));
  EXPECT_TRUE(parts_.journal.health().has_durable_end());
  EXPECT_THAT(parts_.journalled(), SizeIs(2));
  must(parts_.apply({}, {"found 60 A 192.0.2.9"}));
}

TEST_F(UnsecuredJournal, ARollbackToWhatIsServedIsNotDone) {
  const auto roll_back = [this] {
    const RollbackTarget present{parts_.zone.zone().serial()};
    ZoneChange change = Parts::computed_change([present](const zone::StoreView& version) {
      return rollback_of(version, name("@"), present, config::SerialPolicy::kIncrement, 0);
    });
    change.source = ChangeSource::kRollback;
    return parts_.commit([this, &change](Stage& stage) {
      return status_of(stage_changesets(stage, change, parts_.committer));
    });
  };
  expect_put_off(roll_back());
  secure();
  must(roll_back());
}

TEST_F(UnsecuredJournal, ItIsTriedAgainUntilItIsDurable) {
  const int before = disk_.calls[Call::kSync];
  for (int tick = 1; tick <= 3; ++tick) {
    parts_.committer.secure_journal();
    wait_for_journal_thread();
    EXPECT_EQ(disk_.calls[Call::kSync], before + tick);
    EXPECT_FALSE(parts_.journal.health().has_durable_end());
    parts_.io.restart();
    parts_.io.poll();
  }
  secure();
  parts_.io.restart();
  parts_.io.poll();
  ::testing::internal::CaptureStderr();
  parts_.committer.secure_journal();
  wait_for_journal_thread();
  parts_.io.restart();
  parts_.io.poll();
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), Not(HasSubstr("durable_again")));
  std::mt19937_64 random(1);
  disk_.power_cut(random);
  testing::open_journal_again(parts_);
  EXPECT_THAT(parts_.journalled(), SizeIs(1));
}

/// A disk that hangs must not have a try waiting for each second.
TEST_F(UnsecuredJournal, OneTryIsUnderWayAtATime) {
  std::promise<void> resume;
  parts_.journal_thread.post([&] { resume.get_future().wait(); });
  const int before = disk_.calls[Call::kSync];
  for (int tick = 0; tick < 3; ++tick) parts_.committer.secure_journal();
  resume.set_value();
  wait_for_journal_thread();
  EXPECT_EQ(disk_.calls[Call::kSync], before + 1);
}

// Data that outlive the host ---------------------------------------------------------------------

TEST_F(UnsecuredJournal, NoCheckpointIsMadeOfIt) {
  Checkpointer checkpointer(
      parts_.io, parts_.zone.store(), parts_.slots, parts_.journal,
      std::make_unique<Image>(other_disk_,
                              Image::Options{"/disk/image", zone::layout_fingerprint(), {1, 2}}),
      {});
  checkpointer.check(true);
  EXPECT_FALSE(checkpointer.running());
  std::optional<Status> asked;
  checkpointer.write_now([&](const Status& status) { asked = status; });
  ASSERT_TRUE(asked);
  expect_put_off(*asked);
  EXPECT_FALSE(checkpointer.running());
  EXPECT_THAT(other_disk_.paths(), IsEmpty());
  secure();
  checkpointer.check(true);
  EXPECT_TRUE(parts_.run_until([&] { return !checkpointer.running(); }));
  EXPECT_EQ(checkpointer.counters().checkpoints, 1U);
  EXPECT_EQ(checkpointer.version(), parts_.zone.store().current().number);
  checkpointer.write_now([&](const Status& status) { asked = status; });
  must(*asked);
}

/// A checkpoint that fails must not let the image that is there fill the store.
TEST_F(UnsecuredJournal, AnImageIsLeftWhenTheStoreHasNoRoomForWhatItHolds) {
  secure();
  Checkpointer checkpointer(
      parts_.io, parts_.zone.store(), parts_.slots, parts_.journal,
      std::make_unique<Image>(other_disk_,
                              Image::Options{"/disk/image", zone::layout_fingerprint(), {1, 2}}),
      {});
  const auto write = [&] {
    std::optional<Status> done;
    checkpointer.write_now([&](const Status& status) { done = status; });
    EXPECT_TRUE(parts_.run_until([&] { return done.has_value(); }));
    must(*done);
  };
  shm::Store& store = parts_.zone.store();
  shm::Transaction taking = store.begin();
  const shm::Ref<> block = must(taking.allocate(4 * shm::kChunkBytes));
  const shm::VersionInfo now = store.current();
  must(store.publish(std::move(taking), now.root, now.journal_position));
  write();
  const std::vector<std::string> first = other_disk_.paths();
  shm::Transaction giving = store.begin();
  giving.release(block, 4 * shm::kChunkBytes);
  must(store.publish(std::move(giving), now.root, now.journal_position));
  break_disk();
  store.reclaim();
  checkpointer.check(true);
  store.reclaim();
  EXPECT_EQ(checkpointer.held_chunks(), 4U) << "there is room";
  shm::Transaction others = store.begin_private();
  while (!store.low_space()) ASSERT_TRUE(others.allocate(60'000));
  checkpointer.check(true);
  EXPECT_FALSE(checkpointer.running());
  store.reclaim();
  EXPECT_EQ(checkpointer.held_chunks(), 0U);
  EXPECT_EQ(other_disk_.paths(), first) << "it is an image still";
  secure();
  write();
  EXPECT_EQ(other_disk_.paths().size(), first.size());
  EXPECT_NE(other_disk_.paths(), first) << "the next one has a file of its own";
}

/// Its reader would keep a serial that this server gives to other data.
TEST_F(UnsecuredJournal, NoCopyIsMadeOfIt) {
  expect_put_off(testing::write_copy(parts_, other_disk_, "/disk/copy"));
  EXPECT_THAT(other_disk_.paths(), IsEmpty());
  secure();
  must(testing::write_copy(parts_, other_disk_, "/disk/copy"));
}

/// A start from it would pass over what the journal has at a position that the dump has, too.
TEST_F(UnsecuredJournal, NoDumpIsMadeOfIt) {
  expect_put_off(testing::write_dump(parts_, other_disk_, "/disk/dump"));
  EXPECT_THAT(other_disk_.paths(), IsEmpty());
  secure();
  EXPECT_EQ(must(testing::write_dump(parts_, other_disk_, "/disk/dump")).position, 1U);
}

}  // namespace unsecured_journal_test
}  // namespace pando::manager
