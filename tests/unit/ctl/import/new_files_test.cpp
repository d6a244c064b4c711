#include "ctl/import/new_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>

namespace pando::ctl {

namespace new_files_test {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class NewFilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/pando-files-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }

  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : fs::recursive_directory_iterator(folder_))
      found.push_back(entry.path().lexically_relative(folder_).string());
    std::sort(found.begin(), found.end());
    return found;
  }
  [[nodiscard]] std::string text(const std::string& name) const {
    std::ifstream file(folder_ / name);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  Status create(const std::vector<std::string>& wanted) {
    NewFiles files(folder_);
    for (const std::string& name : wanted) files.add(name, name, 0644);
    return files.create();
  }

  fs::path folder_;
};

TEST_F(NewFilesTest, HaveTheirTextModeAndOneName) {
  const std::string large(3'000'000, 'a');
  NewFiles files(folder_);
  files.add("secret", "s", 0600);
  files.add("zones/a", large, 0644);
  files.add("result", "r", 0644);
  const auto created = files.create();
  ASSERT_TRUE(created.has_value()) << created.error().text;
  EXPECT_THAT(names(), ElementsAre("result", "secret", "zones", "zones/a"));
  EXPECT_EQ(text("zones/a"), large);
  for (const auto& [name, mode] :
       {std::pair{"secret", 0600}, {"zones/a", 0644}, {"result", 0644}}) {
    struct stat seen;
    ASSERT_EQ(::stat((folder_ / name).c_str(), &seen), 0);
    EXPECT_EQ(seen.st_nlink, 1U) << name;
    EXPECT_EQ(seen.st_mode & 07777, mode & ~0022U) << name;
  }
}

TEST_F(NewFilesTest, AreAllThereOrNone) {
  std::ofstream(folder_ / "b") << "theirs";
  const auto created = create({"a", "zones/z", "b", "c"});
  ASSERT_FALSE(created.has_value());
  EXPECT_EQ(created.error().code, Errc::kExists);
  EXPECT_THAT(created.error().text, HasSubstr("/b: it is there already"));
  EXPECT_THAT(names(), ElementsAre("b"));
  EXPECT_EQ(text("b"), "theirs");
}

TEST_F(NewFilesTest, GoThroughALinkToTheSameFolder) {
  fs::create_symlink(".", folder_ / "zones");
  EXPECT_TRUE(create({"zones/a", "result"}).has_value());
  EXPECT_THAT(names(), ElementsAre("a", "result", "zones"));
  EXPECT_FALSE(create({"zones/b", "b"}).has_value()) << "both are one file";
  EXPECT_THAT(names(), ElementsAre("a", "result", "zones"));
}

TEST_F(NewFilesTest, AreRefusedWhereAFolderLeadsNowhere) {
  fs::create_symlink("missing", folder_ / "zones");
  EXPECT_FALSE(create({"zones/a", "result"}).has_value());
  EXPECT_THAT(names(), ElementsAre("zones"));
  fs::remove(folder_ / "zones");
  std::ofstream(folder_ / "zones") << "a file";
  EXPECT_FALSE(create({"zones/a", "result"}).has_value());
  EXPECT_THAT(names(), ElementsAre("zones"));
}

TEST_F(NewFilesTest, AreRefusedInAFolderThatIsNotThere) {
  NewFiles files(folder_ / "missing");
  files.add("a", "a", 0644);
  const auto created = files.create();
  ASSERT_FALSE(created.has_value());
  EXPECT_THAT(created.error().text, HasSubstr("missing: No such file or directory"));
  EXPECT_THAT(names(), IsEmpty());
}

TEST_F(NewFilesTest, TakeTheGroupOfAFolderThatHandsItDown) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root gives files to any group";
  constexpr ::gid_t kOther = 12345;
  ASSERT_EQ(::chown(folder_.c_str(), static_cast<::uid_t>(-1), kOther), 0);
  ASSERT_EQ(::chmod(folder_.c_str(), 02770), 0);
  ASSERT_TRUE(create({"zones/a", "result"}).has_value());
  struct stat folder, file;
  ASSERT_EQ(::stat((folder_ / "zones").c_str(), &folder), 0);
  ASSERT_EQ(::stat((folder_ / "zones/a").c_str(), &file), 0);
  EXPECT_NE(folder.st_mode & S_ISGID, 0U);
  EXPECT_EQ(file.st_gid, kOther);
}

}  // namespace new_files_test

}  // namespace pando::ctl
