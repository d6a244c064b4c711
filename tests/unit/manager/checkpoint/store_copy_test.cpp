// Copies and dumps of a live store: they hold a pace, and end at once when the manager does.

#include "manager/checkpoint/store_copy.h"

#include <gmock/gmock.h>

#include "manager/checkpoint/image.h"
#include "manager/checkpoint/store_dump.h"
#include "tests/unit/manager/commit/parts.h"
#include "tests/unit/manager/io/fake_disk.h"

namespace pando::manager {
namespace store_copy_test {

using shm::test::must;
using testing::FakeDisk;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::name;
using testing::Parts;
using testing::record;

class StoreCopies : public ::testing::Test {
 protected:
  StoreCopies() {
    disk.fail = [this](FakeDisk::Call call, const std::string&) {
      if (call == FakeDisk::Call::kWrite) ++writes;
      return Status();
    };
  }
  ~StoreCopies() override { *ended = true; }

  /// A few MiB, hence many writes.
  void fill() {
    zone::Changeset changes{name("@"), {}, {}};
    for (int i = 0; i < 20'000; ++i)
      changes.added.push_back(
          record(fmt::format("host{} 300 TXT \"{}\"", i, std::string(200, 'x'))));
    auto result = parts.submit(std::move(changes));
    ASSERT_TRUE(parts.run_until([&] { return result->has_value(); }));
    ASSERT_TRUE((*result)->has_value());
  }
  void copy(std::uint64_t bytes_per_second) {
    copy_store(parts.zone.store(), parts.slots, parts.journal, parts.io, parts.pool, disk,
               {"/disk/copy", ended, bytes_per_second},
               [this](const Status& status) { done = status; });
  }
  void dump(std::uint64_t bytes_per_second) {
    auto history =
        std::make_shared<HistorySource>(native_files(), parts.journal, [](const JournalNote&) {});
    dump_store(parts.zone.store(), parts.slots, parts.journal, parts.io, parts.pool, disk,
               {"/disk/dump", {5, 6}, history, ended, bytes_per_second},
               [this](const Result<WrittenDump>& written) {
                 done = written ? Status() : Status(tl::unexpected<Error>(written.error()));
               });
  }
  void give_up_after(int first_writes) {
    ASSERT_TRUE(parts.run_until([&] { return writes >= first_writes || done; }));
    *ended = true;
    ASSERT_TRUE(parts.run_until([&] { return done.has_value(); }));
    ASSERT_FALSE(*done);
    EXPECT_EQ(done->error().code, Errc::kDenied);
    EXPECT_THAT(done->error().text, HasSubstr("the manager is ending"));
    EXPECT_EQ(writes.load(), first_writes) << "a pace of an byte per second allows no more";
    EXPECT_THAT(disk.paths(), IsEmpty());
  }

  FakeDisk disk;
  std::atomic<int> writes{0};
  std::shared_ptr<std::atomic<bool>> ended = std::make_shared<std::atomic<bool>>(false);
  std::optional<Status> done;
  Parts parts;
};

TEST_F(StoreCopies, ACopyIsAnImageOfTheVersion) {
  fill();
  copy(WriteRateLimiter::kBytesPerSecond);
  ASSERT_TRUE(parts.run_until([&] { return done.has_value(); }));
  must(*done);
  EXPECT_GT(writes.load(), 4);
  Image image(disk, {"/disk/copy", zone::layout_fingerprint(), {}, true});
  must(image.open());
  EXPECT_EQ(image.index()->state.version, parts.zone.store().current().number);
}

TEST_F(StoreCopies, ACopyHoldsItsPaceAndEndsWithTheManager) {
  fill();
  copy(1);
  give_up_after(2);  // the file's name, and the first part
}

TEST_F(StoreCopies, ADumpHoldsItsPaceAndEndsWithTheManager) {
  fill();
  dump(1);
  give_up_after(1);
}

}  // namespace store_copy_test
}  // namespace pando::manager
