// An image of which only the index's head was read at a start: whether there is one behind it is
// found out without a change of the store.

#include "manager/checkpoint/checkpointer.h"

#include <gtest/gtest.h>

#include "tests/unit/manager/commit/parts.h"
#include "tests/unit/manager/io/fake_disk.h"
#include "zone/draft/draft.h"

namespace pando::manager {
namespace checkpointer_test {

using shm::test::must;
using testing::FakeDisk;
using testing::Parts;
using Call = FakeDisk::Call;

constexpr const char* kPath = "/disk/zones.image";

/// A manager that has started anew beside a live store, which its last one has written to an image.
class LookedAt : public ::testing::Test {
 protected:
  LookedAt() {
    start();
    must(checkpoint());
    checkpointer_.reset();
    disk.calls.clear();
    start();
  }

  void start() {
    auto image =
        std::make_unique<Image>(disk, Image::Options{kPath, zone::layout_fingerprint(), {1, 2}});
    const Status looked = image->look(parts.zone.store().lineage());
    ASSERT_TRUE(looked || looked.error().code == Errc::kNotFound) << looked.error().text;
    auto pin = Checkpointer::pin(*image, parts.slots);
    checkpointer_.emplace(parts.io, parts.zone.store(), parts.slots, parts.journal,
                          std::move(image),
                          Checkpointer::Options{.limits = {.again = std::chrono::milliseconds(0)}});
    checkpointer_->set_pin(std::move(pin));
  }
  Checkpointer& checkpointer() { return *checkpointer_; }
  Status checkpoint() {
    std::optional<Status> done;
    checkpointer_->write_now([&](const Status& status) { done = status; });
    EXPECT_TRUE(parts.run_until([&] { return done.has_value(); }));
    return *done;
  }
  /// A tick of the manager, and all work that it begins.
  void tick(bool settled = true) {
    checkpointer_->check(settled);
    EXPECT_TRUE(parts.run_until([&] { return !checkpointer_->running(); }));
  }
  std::string chunks() {
    for (const std::string& path : disk.paths())
      if (path != kPath) return path;
    return {};
  }
  void expect_replaced(const std::string& old_chunks) {
    EXPECT_EQ(checkpointer_->counters().checkpoints, 1U);
    EXPECT_NE(chunks(), old_chunks);
    EXPECT_EQ(disk.paths().size(), 2U) << "the old chunks are gone";
    Image image(disk, {kPath, zone::layout_fingerprint(), {1, 2}});
    must(image.open());
    EXPECT_EQ(image.index()->state.version, parts.zone.store().current().number);
    EXPECT_EQ(checkpointer_->version(), image.index()->state.version);
  }

  FakeDisk disk;
  Parts parts;

 private:
  std::optional<Checkpointer> checkpointer_;
};

TEST_F(LookedAt, ASoundOneIsReadOnceAndNotWrittenAgain) {
  EXPECT_EQ(disk.calls[Call::kRead], 1) << "the head";
  tick();
  const int reads = disk.calls[Call::kRead];
  EXPECT_EQ(reads, 3) << "the whole index, and the name of the chunks' file";
  tick();
  EXPECT_EQ(disk.calls[Call::kRead], reads);
  EXPECT_EQ(disk.calls[Call::kWrite], 0);
  EXPECT_EQ(checkpointer().counters().checkpoints, 0U);
  EXPECT_EQ(checkpointer().version(), parts.zone.store().current().number);
}

TEST_F(LookedAt, ItIsNotReadWhileZonesAreLoaded) {
  tick(false);
  EXPECT_EQ(disk.calls[Call::kRead], 1);
}

TEST_F(LookedAt, OneWithADamagedIndexIsReplacedWithoutAChange) {
  const std::string old_chunks = chunks();
  disk.contents(kPath).back() ^= 1;
  tick();
  expect_replaced(old_chunks);
}

TEST_F(LookedAt, OneWithoutItsChunksIsReplacedWithoutAChange) {
  const std::string old_chunks = chunks();
  must(disk.remove(old_chunks));
  tick();
  expect_replaced(old_chunks);
}

TEST_F(LookedAt, OneWhoseChunksAreCutOffIsReplacedWithoutAChange) {
  const std::string old_chunks = chunks();
  disk.contents(old_chunks).pop_back();
  tick();
  expect_replaced(old_chunks);
}

TEST_F(LookedAt, WhileItCannotBeReplacedItIsTriedAgain) {
  const std::string old_chunks = chunks();
  disk.contents(kPath).back() ^= 1;
  disk.fail = [](Call call, const std::string&) {
    return call == Call::kWrite ? Status(fail(Errc::kFull, "full")) : Status();
  };
  tick();
  EXPECT_EQ(checkpointer().counters().failed, 1U);
  EXPECT_EQ(checkpointer().version(), 0U) << "the disk has nothing";
  tick();
  EXPECT_EQ(checkpointer().counters().failed, 2U);
  disk.fail = [](Call, const std::string&) { return Status(); };
  tick();
  expect_replaced(old_chunks);
}

/// Neither too many open files nor an error of the disk says anything against the image.
TEST_F(LookedAt, OneThatCannotBeReadNowIsReadAgainAndNotReplaced) {
  const std::string old_chunks = chunks();
  const std::uint64_t version = checkpointer().version();
  disk.fail = [](Call call, const std::string&) {
    return call == Call::kOpen ? Status(fail(Errc::kIo, "too many open files")) : Status();
  };
  tick();
  EXPECT_EQ(checkpoint().error().code, Errc::kIo) << "nobody is told that there is one";
  EXPECT_EQ(checkpointer().version(), version) << "and it stays pinned";
  EXPECT_EQ(checkpointer().problem(), "too many open files");
  disk.fail = [](Call, const std::string&) { return Status(); };
  tick();
  EXPECT_EQ(disk.calls[Call::kWrite], 0);
  EXPECT_EQ(chunks(), old_chunks);
  must(checkpoint());
  EXPECT_EQ(checkpointer().counters().checkpoints, 0U);
}

TEST_F(LookedAt, WhoeverAsksForACheckpointHasASoundOne) {
  must(checkpoint());
  EXPECT_EQ(disk.calls[Call::kWrite], 0);
  EXPECT_EQ(disk.calls[Call::kRead], 3);
}

TEST_F(LookedAt, WhoeverAsksForACheckpointHasADamagedOneReplaced) {
  const std::string old_chunks = chunks();
  disk.contents(kPath).back() ^= 1;
  must(checkpoint());
  expect_replaced(old_chunks);
}

TEST_F(LookedAt, AChangeMeanwhileIsWrittenToASoundOne) {
  const std::string old_chunks = chunks();
  checkpointer().check(true);  // reads
  ASSERT_TRUE(parts.apply({}, {"new 60 A 192.0.2.1"}));
  EXPECT_TRUE(parts.run_until([&] { return !checkpointer().running(); }));
  tick();
  EXPECT_EQ(checkpointer().counters().checkpoints, 1U);
  EXPECT_EQ(chunks(), old_chunks);
  EXPECT_EQ(checkpointer().version(), parts.zone.store().current().number);
}

}  // namespace checkpointer_test
}  // namespace pando::manager
