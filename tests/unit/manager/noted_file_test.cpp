#include "manager/noted_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/unit/shm/support.h"

namespace pando::manager {
namespace {

using Kind = FileCheck::Kind;

class NotedFile : public ::testing::Test {
 protected:
  NotedFile() { write("one"); }

  /// Keeps the modification time.
  void write(const std::string& text) {
    std::ofstream(path_) << text;
    std::filesystem::last_write_time(path_, std::filesystem::file_time_type(std::chrono::hours(1)));
  }
  /// The file as it is, once its change time is far enough for a stamp.
  zone::ZoneSource settled() {
    zone::ZoneSource found = *stat_source(path_);
    for (int i = 0; found.stamp == 0 && i < 600; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      found = *stat_source(path_);
    }
    EXPECT_NE(found.stamp, 0U);
    found.hash = hash_file(path_);
    return found;
  }
  FileCheck check(const zone::ZoneSource& noted, std::uint64_t most_octets = UINT64_MAX) {
    return check_file(path_, noted, most_octets);
  }

  shm::test::Folder folder_;
  std::string path_ = folder_.path() + "/zone";
};

TEST_F(NotedFile, IsNotReadWhileNothingSaysThatItChanged) {
  const zone::ZoneSource noted = settled();
  const FileCheck found = check(noted);
  EXPECT_EQ(found.kind, Kind::kSame);
  EXPECT_FALSE(found.hashed);
  EXPECT_EQ(found.now, noted);
}

TEST_F(NotedFile, ThatWasJustChangedHasNoStampAndIsReadEachTime) {
  zone::ZoneSource noted = *stat_source(path_);
  noted.hash = hash_file(path_);
  noted.stamp = 0;  // had the machine been slow
  const FileCheck found = check(noted);
  EXPECT_TRUE(found.hashed);
  EXPECT_TRUE(found.kind == Kind::kSame || found.kind == Kind::kTouched);
  write("two");
  EXPECT_EQ(check(noted).kind, Kind::kOther);
}

TEST_F(NotedFile, IsReadWhenItsTimeOrItsInodeMoved) {
  const zone::ZoneSource noted = settled();
  ASSERT_EQ(::chmod(path_.c_str(), 0600), 0);
  FileCheck found = check(noted);
  EXPECT_EQ(found.kind, Kind::kTouched);
  EXPECT_TRUE(found.hashed);
  EXPECT_EQ(found.now.hash, noted.hash);
  EXPECT_EQ(found.now.file_mtime_ns, noted.file_mtime_ns);
  std::filesystem::last_write_time(path_, std::filesystem::file_time_type(std::chrono::hours(2)));
  found = check(noted);
  EXPECT_EQ(found.kind, Kind::kTouched);
  EXPECT_NE(found.now.file_mtime_ns, noted.file_mtime_ns);
  EXPECT_EQ(check(noted, 2).kind, Kind::kOther) << "too large to be read now";
  EXPECT_FALSE(check(noted, 2).hashed);
}

TEST_F(NotedFile, EditedWithinItsSizeAndTimeIsAnother) {
  const zone::ZoneSource noted = settled();
  write("two");
  ASSERT_EQ(stat_source(path_)->file_mtime_ns, noted.file_mtime_ns);
  EXPECT_EQ(check(noted).kind, Kind::kOther);
  EXPECT_TRUE(check(noted).hashed);
  write("longer");
  EXPECT_FALSE(check(noted).hashed) << "the size says enough";
}

/// Files that include others, and those that an earlier build noted.
TEST_F(NotedFile, WithoutAHashIsJudgedByItsTimeAndStamp) {
  zone::ZoneSource noted = settled();
  noted.hash = 0;
  EXPECT_EQ(check(noted).kind, Kind::kSame);
  write("two");
  EXPECT_EQ(check(noted).kind, Kind::kOther);
  noted.stamp = 0;
  EXPECT_EQ(check(noted).kind, Kind::kSame) << "nothing speaks against it";
  noted.file_mtime_ns += 1;
  EXPECT_EQ(check(noted).kind, Kind::kOther);
}

TEST_F(NotedFile, ThatIsGoneOrNoFileIsToldFromOthers) {
  EXPECT_EQ(check_file(path_ + ".none", {}).kind, Kind::kMissing);
  EXPECT_EQ(hash_file(path_ + ".none"), 0U);
  EXPECT_EQ(hash_file(folder_.path()), 0U);
  write("");
  EXPECT_NE(hash_file(path_), 0U);
}

}  // namespace
}  // namespace pando::manager
