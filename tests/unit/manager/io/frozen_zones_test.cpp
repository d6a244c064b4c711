#include "manager/io/frozen_zones.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <optional>

#include "tests/unit/manager/io/failing_files.h"
#include "tests/unit/manager/run_until.h"
#include "tests/unit/shm/support.h"

namespace pando::manager {
namespace frozen_zones_test {

using ::testing::HasSubstr;
using testing::FailingFiles;
using testing::FakeDisk;

dns::Name frozen_name(std::string_view text) { return dns::Name::from_text(text).value(); }

class Frozen : public ::testing::Test {
 protected:
  ~Frozen() override { pool_.join(); }

  Status change(FrozenZones& zones, std::string_view zone, bool freezes) {
    std::optional<Status> done;
    const auto take = [&](const Status& status) { done = status; };
    if (freezes)
      zones.freeze(frozen_name(zone), take);
    else
      zones.thaw(frozen_name(zone), take);
    EXPECT_FALSE(done.has_value()) << "not before it is durable";
    EXPECT_TRUE(testing::run_until(io_, [&] { return done.has_value(); }));
    return done.value_or(Status());
  }
  Status freeze(std::string_view zone) { return change(zones_, zone, true); }
  Status thaw(std::string_view zone) { return change(zones_, zone, false); }
  /// As the next start finds them.
  FrozenZones restarted() {
    FrozenZones zones(io_, pool_, files_, folder_.path());
    EXPECT_TRUE(zones.load().has_value());
    return zones;
  }
  void write(std::string_view text) { std::ofstream(folder_.path() + "/frozen-zones.list") << text; }

  shm::test::Folder folder_;
  FailingFiles files_;
  asio::io_context io_;
  asio::thread_pool pool_{1};
  FrozenZones zones_{io_, pool_, files_, folder_.path()};
};

TEST_F(Frozen, ZonesStaySoOverARestartUntilTheyAreThawed) {
  ASSERT_TRUE(zones_.load()) << "no file: no zone";
  EXPECT_TRUE(zones_.check(frozen_name("a.test")));
  ASSERT_TRUE(freeze("A.test"));
  ASSERT_TRUE(freeze("#b.test"));
  ASSERT_TRUE(freeze("a.test")) << "twice changes nothing";
  EXPECT_TRUE(zones_.contains(frozen_name("a.TEST")));
  EXPECT_EQ(zones_.check(frozen_name("a.test")).error().code, Errc::kDenied);
  EXPECT_THAT(zones_.check(frozen_name("a.test")).error().text, HasSubstr("a.test. is frozen"));
  EXPECT_FALSE(zones_.contains(frozen_name("sub.a.test")));
  const FrozenZones later = restarted();
  EXPECT_EQ(later.size(), 2U);
  EXPECT_TRUE(later.contains(frozen_name("#b.test"))) << "no comment";
  ASSERT_TRUE(thaw("a.test"));
  EXPECT_TRUE(zones_.check(frozen_name("a.test")));
  EXPECT_EQ(thaw("a.test").error().code, Errc::kNotFound);
  EXPECT_EQ(restarted().size(), 1U);
}

TEST_F(Frozen, ZonesThatCannotBeWrittenAreNotFrozen) {
  ASSERT_TRUE(freeze("a.test"));
  files_.fail = [](FakeDisk::Call call, const std::string&) -> Status {
    return call == FakeDisk::Call::kSync ? fail(Errc::kFull, "disk is full") : Status();
  };
  EXPECT_EQ(freeze("b.test").error().code, Errc::kFull);
  EXPECT_EQ(thaw("a.test").error().code, Errc::kFull);
  EXPECT_TRUE(zones_.contains(frozen_name("a.test")));
  EXPECT_FALSE(zones_.contains(frozen_name("b.test")));
  files_.fail = [](FakeDisk::Call, const std::string&) { return Status(); };
  EXPECT_EQ(restarted().size(), 1U);
}

TEST_F(Frozen, ChangesThatComeTogetherAreAllMade) {
  std::size_t done = 0;
  for (int i = 0; i < 100; ++i)
    zones_.freeze(frozen_name(fmt::format("z{}.test", i)), [&](const Status& status) {
      EXPECT_TRUE(status);
      ++done;
    });
  for (int i = 0; i < 50; ++i)
    zones_.thaw(frozen_name(fmt::format("z{}.test", i)), [&](const Status& status) {
      EXPECT_TRUE(status);
      ++done;
    });
  ASSERT_TRUE(testing::run_until(io_, [&] { return done == 150; }));
  EXPECT_EQ(zones_.size(), 50U);
  EXPECT_EQ(restarted().size(), 50U);
}

TEST_F(Frozen, ThereIsALimit) {
  std::string text = "# comment\n\n";
  for (std::size_t i = 0; i < FrozenZones::kMaxZones; ++i) text += fmt::format("z{}.test.\n", i);
  write(text);
  ASSERT_TRUE(zones_.load());
  EXPECT_EQ(zones_.size(), FrozenZones::kMaxZones);
  EXPECT_EQ(freeze("more.test").error().code, Errc::kFull);
  EXPECT_TRUE(freeze("z1.test"));
  ASSERT_TRUE(thaw("z1.test"));
  EXPECT_TRUE(freeze("more.test"));
}

TEST_F(Frozen, AFileThatIsNotOursNamesTheLine) {
  write("a.test.\n\nb..test\n");
  const Status loaded = zones_.load();
  ASSERT_FALSE(loaded.has_value());
  EXPECT_THAT(loaded.error().text, HasSubstr("frozen-zones.list:3: "));
  EXPECT_EQ(zones_.size(), 0U);
}

}  // namespace frozen_zones_test
}  // namespace pando::manager
