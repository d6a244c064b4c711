#include "manager/merge/merge_base.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/unit/shm/support.h"

namespace pando::manager {
namespace merge_base_test {

using Kind = FileCheck::Kind;

class MergeBaseFile : public ::testing::Test {
 protected:
  MergeBaseFile() { write("one"); }

  /// Keeps the modification time.
  void write(const std::string& text) {
    std::ofstream(path_) << text;
    std::filesystem::last_write_time(path_, std::filesystem::file_time_type(std::chrono::hours(1)));
  }
  /// The file as it is, once its change time is far enough for a stamp.
  zone::ZoneFileInfo settled() {
    zone::ZoneFileInfo found = *stat_source(path_);
    for (int i = 0; found.stamp == 0 && i < 600; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      found = *stat_source(path_);
    }
    EXPECT_NE(found.stamp, 0U);
    add_content(found, read_content(path_));
    return found;
  }
  FileCheck check(const zone::ZoneFileInfo& noted, std::uint64_t most_bytes = UINT64_MAX) {
    return check_file(path_, noted, most_bytes);
  }

  shm::test::Folder folder_;
  std::string path_ = folder_.path() + "/zone";
};

TEST_F(MergeBaseFile, IsNotReadWhileNothingSaysThatItChanged) {
  const zone::ZoneFileInfo noted = settled();
  const FileCheck found = check(noted);
  EXPECT_EQ(found.kind, Kind::kSame);
  EXPECT_FALSE(found.hashed);
  EXPECT_EQ(found.now, noted);
}

TEST_F(MergeBaseFile, ThatWasJustChangedHasNoStampAndIsReadEachTime) {
  zone::ZoneFileInfo noted = *stat_source(path_);
  add_content(noted, read_content(path_));
  noted.stamp = 0;  // had the machine been slow
  const FileCheck found = check(noted);
  EXPECT_TRUE(found.hashed);
  EXPECT_TRUE(found.kind == Kind::kSame || found.kind == Kind::kTouched);
  write("two");
  EXPECT_EQ(check(noted).kind, Kind::kOther);
}

TEST_F(MergeBaseFile, IsReadWhenItsTimeOrItsInodeMoved) {
  const zone::ZoneFileInfo noted = settled();
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

TEST_F(MergeBaseFile, EditedWithinItsSizeAndTimeIsAnother) {
  const zone::ZoneFileInfo noted = settled();
  write("two");
  ASSERT_EQ(stat_source(path_)->file_mtime_ns, noted.file_mtime_ns);
  EXPECT_EQ(check(noted).kind, Kind::kOther);
  EXPECT_TRUE(check(noted).hashed);
  write("longer");
  EXPECT_FALSE(check(noted).hashed) << "the size says enough";
}

TEST_F(MergeBaseFile, ThatWasTooNearIsSettledByTheNextCheck) {
  zone::ZoneFileInfo noted = settled();
  noted.stamp = 0;  // had it been noted at once
  FileCheck found = check(noted);
  EXPECT_EQ(found.kind, Kind::kTouched);
  EXPECT_NE(found.now.stamp, 0U);
  found = check(found.now);
  EXPECT_EQ(found.kind, Kind::kSame);
  EXPECT_FALSE(found.hashed);
}

/// Two files that cannot be read have no equal content.
TEST_F(MergeBaseFile, ThatCannotBeReadIsAnother) {
  zone::ZoneFileInfo unreadable = *stat_source(folder_.path());
  unreadable.stamp = 0;
  const FileCheck found = check_file(folder_.path(), unreadable);
  EXPECT_EQ(found.kind, Kind::kOther);
  EXPECT_TRUE(found.hashed);
}

TEST_F(MergeBaseFile, ThatWasReadBeforeIsNotReadAgain) {
  const zone::ZoneFileInfo noted = settled();
  write("two");
  const FileCheck first = check(noted);
  ASSERT_TRUE(first.hashed);
  FileCheck again = check_file(path_, noted, UINT64_MAX, settled());
  EXPECT_EQ(again.kind, Kind::kOther);
  EXPECT_FALSE(again.hashed);
  const zone::ZoneFileInfo read_before = settled();
  write("one");
  settled();
  again = check_file(path_, noted, UINT64_MAX, read_before);
  EXPECT_EQ(again.kind, Kind::kTouched) << "it was written since";
  EXPECT_TRUE(again.hashed);
}

/// A file that includes one that includes another; each as long as it was before.
class IncludingFile : public MergeBaseFile {
 protected:
  IncludingFile() {
    include("inner", "$INCLUDE sub/innermost\n");
    include("sub/innermost", "a 5 A 192.0.2.1\n");
    write("@ 5 NS a\n$INCLUDE inner\n");
  }
  /// Keeps the modification time.
  void include(const std::string& leaf, const std::string& text) const {
    const std::filesystem::path path = folder_.path() + "/" + leaf;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
    std::filesystem::last_write_time(path, std::filesystem::file_time_type(std::chrono::hours(1)));
  }
};

TEST_F(IncludingFile, IsHashedWithAllThatItIncludes) {
  const zone::ZoneFileInfo noted = settled();
  EXPECT_EQ(noted.stamp, kIncludesOthers) << "its own inode does not tell";
  EXPECT_NE(noted.hash, 0U);
  FileCheck found = check(noted);
  EXPECT_EQ(found.kind, Kind::kSame);
  EXPECT_TRUE(found.hashed);
  EXPECT_EQ(found.now, noted);
  include("sub/innermost", "a 5 A 192.0.2.2\n");
  EXPECT_EQ(check(noted).kind, Kind::kOther);
  include("sub/innermost", "a 5 A 192.0.2.1\n");
  EXPECT_EQ(check(noted).kind, Kind::kSame);
  include("inner", "$INCLUDE sub/innermosT\n");
  EXPECT_EQ(check(noted).kind, Kind::kOther) << "there is no such file";
}

TEST_F(IncludingFile, ThatIsNotedByItsHashAloneIsToldByIt) {
  zone::ZoneFileInfo noted = settled();
  noted.stamp = 0;  // as a journal has it
  const FileCheck found = check(noted);
  EXPECT_EQ(found.kind, Kind::kTouched);
  EXPECT_EQ(found.now.stamp, kIncludesOthers);
  include("sub/innermost", "a 5 A 192.0.2.2\n");
  EXPECT_EQ(check(noted).kind, Kind::kOther);
}

TEST_F(IncludingFile, IsNotReadWhereItIsTooLargeWithWhatItIncludes) {
  include("sub/innermost", "a 5 A 192.0.2.1\n" + std::string(5000, '\n') + "b 5 A 192.0.2.1\n");
  const zone::ZoneFileInfo noted = settled();
  EXPECT_EQ(check(noted, 10'000).kind, Kind::kSame);
  EXPECT_EQ(check(noted, 4'000).kind, Kind::kOther);
}

TEST_F(IncludingFile, IsFoundWhereverTheDirectiveStands) {
  const std::string line = "; no directive: $INCLUDE other, $$INCLUDE\n";
  for (const std::size_t before : {0U, 262'130U, 262'134U, 262'138U, 262'144U, 262'145U}) {
    write(std::string(before, '\n') + "@ 5 NS a\n$include inner\n");
    EXPECT_TRUE(read_content(path_).has_included) << before;
    write(std::string(before, '\n') + line);
    EXPECT_FALSE(read_content(path_).has_included) << before;
    EXPECT_NE(read_content(path_).hash, 0U) << before;
  }
}

TEST_F(MergeBaseFile, WithTheWordInACommentIsAnOrdinaryOne) {
  write("; $INCLUDE other\n");
  const zone::ZoneFileInfo noted = settled();
  EXPECT_NE(noted.stamp, kIncludesOthers);
  EXPECT_FALSE(check(noted).hashed);
}

TEST_F(MergeBaseFile, ThatIsGoneOrNoFileIsToldFromOthers) {
  EXPECT_EQ(check_file(path_ + ".none", {}).kind, Kind::kMissing);
  EXPECT_EQ(read_content(path_ + ".none").hash, 0U);
  EXPECT_EQ(read_content(folder_.path()).hash, 0U);
  write("");
  EXPECT_NE(read_content(path_).hash, 0U);
}

}  // namespace merge_base_test
}  // namespace pando::manager
