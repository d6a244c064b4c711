#include "ctl/import/draft_folder.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <iterator>

namespace pando::ctl {

namespace draft_folder_test {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class DraftFolderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/pando-drafts-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }

  /// An import that ends before its result has its name.
  void leave_names() const {
    auto drafts = DraftFolder::claim(folder_);
    ASSERT_TRUE(drafts.has_value()) << drafts.error().text;
    ASSERT_TRUE(drafts->write("a b", "text", 0600).has_value());
    ASSERT_TRUE(drafts->write("zones/z", "zone", 0600).has_value());
    ASSERT_TRUE(drafts->write_names().has_value());
    ASSERT_TRUE(drafts->write_result("result", "r", 0600).has_value());
    ASSERT_TRUE(drafts->name_files().has_value());
    ASSERT_TRUE(fs::exists(folder_ / "zones/z"));
  }
  [[nodiscard]] DraftFolder::Leftovers take_back() const {
    DraftFolder::Leftovers found;
    const auto drafts = DraftFolder::claim(folder_);
    EXPECT_TRUE(drafts.has_value() && drafts->take_back(found).has_value());
    EXPECT_TRUE(drafts.has_value() && drafts->clear().has_value());
    if (drafts) drafts->remove();
    EXPECT_FALSE(fs::exists(folder_ / DraftFolder::kName));
    return found;
  }
  /// Changes the file in place; its time becomes what it was.
  void change(const std::string& name, const std::string& text) const {
    struct stat before;
    ASSERT_EQ(::stat((folder_ / name).c_str(), &before), 0);
    std::ofstream(folder_ / name) << text;
    const timespec times[] = {before.st_atim, before.st_mtim};
    ASSERT_EQ(::utimensat(AT_FDCWD, (folder_ / name).c_str(), times, 0), 0);
  }

  fs::path folder_;
};

TEST_F(DraftFolderTest, TakesNamesBackThatAreAsItMadeThem) {
  leave_names();
  const auto found = take_back();
  EXPECT_EQ(found.removed, 2U);
  EXPECT_THAT(found.retained, IsEmpty());
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(DraftFolderTest, LeavesAFileOfAnotherSize) {
  leave_names();
  change("zones/z", "zone; mine");
  const auto found = take_back();
  EXPECT_EQ(found.removed, 1U);
  EXPECT_THAT(found.retained, ElementsAre(folder_ / "zones/z"));
}

TEST_F(DraftFolderTest, LeavesAFileOfAnotherTime) {
  leave_names();
  const timespec times[] = {{1, 0}, {1, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, (folder_ / "a b").c_str(), times, 0), 0);
  const auto found = take_back();
  EXPECT_EQ(found.removed, 1U);
  EXPECT_THAT(found.retained, ElementsAre(folder_ / "a b"));
}

TEST_F(DraftFolderTest, LeavesAnotherFileOfThatName) {
  leave_names();
  fs::rename(folder_ / "a b", folder_ / "moved");
  fs::copy_file(folder_ / "moved", folder_ / "a b");
  struct stat made;
  ASSERT_EQ(::stat((folder_ / "moved").c_str(), &made), 0);
  const timespec times[] = {made.st_atim, made.st_mtim};
  ASSERT_EQ(::utimensat(AT_FDCWD, (folder_ / "a b").c_str(), times, 0), 0);
  EXPECT_THAT(take_back().retained, ElementsAre(folder_ / "a b"));
}

TEST_F(DraftFolderTest, DoesNotTakeBackThroughALink) {
  leave_names();
  fs::rename(folder_ / "zones", folder_ / "elsewhere");
  fs::create_symlink("elsewhere", folder_ / "zones");
  EXPECT_EQ(take_back().removed, 1U);
  EXPECT_TRUE(fs::exists(folder_ / "elsewhere/z"));
}

TEST_F(DraftFolderTest, IsRefusedWithAnythingThatNoImportMade) {
  leave_names();
  std::ofstream(folder_ / DraftFolder::kName / "only-copy") << "precious";
  const auto claimed = DraftFolder::claim(folder_);
  ASSERT_FALSE(claimed.has_value());
  EXPECT_EQ(claimed.error().code, Errc::kExists);
  EXPECT_THAT(claimed.error().text, HasSubstr("/.pando-import/only-copy is of no import"));
  EXPECT_TRUE(fs::exists(folder_ / "a b"));
}

TEST_F(DraftFolderTest, IsAnotherOneWhenItHasBeenReplaced) {
  const auto drafts = DraftFolder::claim(folder_);
  ASSERT_TRUE(drafts.has_value());
  fs::rename(folder_ / DraftFolder::kName, folder_ / "gone");
  fs::create_directory(folder_ / DraftFolder::kName);
  std::ofstream(folder_ / DraftFolder::kName / "pando-file-0") << "theirs";
  EXPECT_TRUE(drafts->clear().has_value());
  drafts->remove();
  EXPECT_TRUE(fs::exists(folder_ / DraftFolder::kName / "pando-file-0"));
}

TEST_F(DraftFolderTest, TellsOfADraftThatItCannotRemove) {
  const auto drafts = DraftFolder::claim(folder_);
  ASSERT_TRUE(drafts.has_value());
  fs::create_directory(folder_ / DraftFolder::kName / "pando-result");
  const auto cleared = drafts->clear();
  ASSERT_FALSE(cleared.has_value());
  EXPECT_THAT(cleared.error().text, HasSubstr("cannot remove " + folder_.string()));
}

}  // namespace draft_folder_test

}  // namespace pando::ctl
