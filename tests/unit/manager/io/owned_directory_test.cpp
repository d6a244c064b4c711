#include "manager/io/owned_directory.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace pando::manager {
namespace owned_directory_test {

constexpr uid_t kServer = 61002;
constexpr uid_t kStranger = 61003;

class OwnedDirectoryTest : public ::testing::Test {
 protected:
  OwnedDirectoryTest() {
    std::string name = ::testing::TempDir() + "pando-owned-XXXXXX";
    root_ = ::mkdtemp(name.data());
    ::chmod(root_.c_str(), 0755);
  }
  ~OwnedDirectoryTest() override { std::filesystem::remove_all(root_); }
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root to play several users";
  }

  static Result<OwnedDirectory> open(const std::string& path) {
    return OwnedDirectory::open("the.key", path, kServer);
  }
  std::string make(const std::string& name, uid_t owner, mode_t mode) const {
    const std::string path = root_ + "/" + name;
    std::filesystem::create_directories(path);
    EXPECT_EQ(::chown(path.c_str(), owner, owner), 0);
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    return path;
  }
  std::string link(const std::string& name, const std::string& target, uid_t owner) const {
    const std::string path = root_ + "/" + name;
    std::filesystem::create_symlink(target, path);
    EXPECT_EQ(::lchown(path.c_str(), owner, owner), 0);
    return path;
  }
  static struct stat status_of(const std::string& path) {
    struct stat status{};
    EXPECT_EQ(::lstat(path.c_str(), &status), 0) << path;
    return status;
  }
  static void expect_untouched(const std::string& path) {
    EXPECT_EQ(status_of(path).st_uid, 0U);
    EXPECT_EQ(status_of(path).st_mode & 07777, 0711U);
  }

  std::string root_;
};

TEST_F(OwnedDirectoryTest, MakesWhatIsMissingAndGivesItToTheServersUser) {
  const auto directory = open(root_ + "/a/b");
  ASSERT_TRUE(directory) << directory.error().text;
  ASSERT_TRUE(directory->own(0755));
  EXPECT_EQ(status_of(root_ + "/a/b").st_uid, kServer);
  EXPECT_EQ(status_of(root_ + "/a/b").st_mode & 07777, 0755U);
  const auto inner = directory->open_in("slots");
  ASSERT_TRUE(inner) << inner.error().text;
  ASSERT_TRUE(inner->own(0700));
  EXPECT_EQ(status_of(root_ + "/a/b/slots").st_uid, kServer);
  EXPECT_TRUE(open(root_ + "/a/b")) << "at the next start";
}

TEST_F(OwnedDirectoryTest, RefusesAFolderOfAnotherUser) {
  const auto refused = open(make("theirs", kStranger, 0755));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::kDenied);
  EXPECT_EQ(refused.error().text, "the.key: " + root_ +
                                      "/theirs belongs to user 61003, who could replace what is "
                                      "in it");
}

TEST_F(OwnedDirectoryTest, RefusesAFolderThatOthersCanWriteTo) {
  for (const mode_t mode : {0777, 01777, 0775}) {
    const auto refused = open(make("open", 0, mode));
    ASSERT_FALSE(refused) << mode;
    EXPECT_EQ(refused.error().code, Errc::kDenied);
    EXPECT_NE(refused.error().text.find("others could replace"), std::string::npos);
    EXPECT_EQ(status_of(root_ + "/open").st_mode & 07777, mode) << "nothing is changed";
  }
}

/// The server's user, taken over, waits for the next start by root.
TEST_F(OwnedDirectoryTest, FollowsNoLinkThatTheServersUserHasMade) {
  const std::string victim = make("victim", 0, 0711);
  for (const std::string& path : {link("one", victim, kServer), link("two", victim, kStranger)}) {
    EXPECT_EQ(open(path).error().code, Errc::kDenied);
    EXPECT_EQ(open(path + "/inner").error().code, Errc::kDenied);
  }
  EXPECT_FALSE(std::filesystem::exists(victim + "/inner"));
  expect_untouched(victim);
  EXPECT_TRUE(open(link("roots", victim, 0))) << "as /var/run is a link";
}

TEST_F(OwnedDirectoryTest, FollowsNoLinkInside) {
  const std::string victim = make("victim", 0, 0711);
  const auto directory = open(make("run", kServer, 0755));
  ASSERT_TRUE(directory);
  link("run/slots", victim, kServer);
  EXPECT_FALSE(directory->open_in("slots"));
  expect_untouched(victim);
}

TEST_F(OwnedDirectoryTest, GivesAwayNoFileThatHasAnotherName) {
  const auto directory = open(make("run", kServer, 0755));
  ASSERT_TRUE(directory);
  const std::string victim = root_ + "/shadow";
  std::ofstream(victim) << "secret";
  std::filesystem::create_hard_link(victim, root_ + "/run/manager.lock");
  link("run/other.lock", victim, kServer);
  EXPECT_FALSE(directory->open_file("manager.lock"));
  EXPECT_FALSE(directory->open_file("other.lock"));
  EXPECT_EQ(status_of(victim).st_uid, 0U);
  const auto fine = directory->open_file("fine.lock");
  ASSERT_TRUE(fine) << fine.error().text;
  EXPECT_EQ(status_of(root_ + "/run/fine.lock").st_uid, kServer);
}

}  // namespace owned_directory_test
}  // namespace pando::manager
