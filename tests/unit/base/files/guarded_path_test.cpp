#include "base/files/guarded_path.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "base/files/file_status.h"

namespace pando {
namespace guarded_path_test {

namespace fs = std::filesystem;

constexpr uid_t kServer = 61002;
constexpr uid_t kOther = 61003;

/// root's folder "root" with the file "secret", and a folder "server" of a lesser user.
class GuardedPath : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can be led astray by a lesser user";
    std::string name = "/tmp/pando-guarded-XXXXXX";
    root_ = ::mkdtemp(name.data());
    ::chmod(root_.c_str(), 0755);
    for (const char* folder : {"/root", "/server"}) fs::create_directory(root_ + folder);
    write("/root/secret", "of root");
    write("/server/own", "of the server");
    own("/server", kServer);
    own("/server/own", kServer);
  }
  void TearDown() override {
    if (!root_.empty()) fs::remove_all(root_);
  }

  [[nodiscard]] std::string at(const std::string& name) const { return root_ + name; }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(at(name)) << text;
  }
  void own(const std::string& name, uid_t user) const {
    ASSERT_EQ(::lchown(at(name).c_str(), user, user), 0);
  }
  void link(const std::string& target, const std::string& name, uid_t user) const {
    fs::create_symlink(target, at(name));
    own(name, user);
  }
  [[nodiscard]] std::string text_of(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(at(name)).rdbuf();
    return text.str();
  }

  std::string root_;
};

std::string read(const Result<Fd>& file) {
  if (!file) return "error: " + file.error().text;
  std::array<char, 64> text{};
  const ssize_t got = ::read(file->get(), text.data(), text.size());
  return {text.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0))};
}

template <class T>
bool is_denied(const Result<T>& result) {
  return !result && result.error().code == Errc::kDenied;
}

TEST_F(GuardedPath, ALinkOfALesserUserLeadsToThatUsersFilesAlone) {
  link(at("/root/secret"), "/server/to-secret", kServer);
  link(at("/root"), "/server/to-root", kServer);
  link("own", "/server/to-own", kServer);
  EXPECT_TRUE(is_denied(open_to_read(at("/server/to-secret"))));
  EXPECT_TRUE(is_denied(open_to_read(at("/server/to-root/secret"))));
  EXPECT_EQ(read(open_to_read(at("/server/to-own"))), "of the server");
  EXPECT_EQ(read(open_to_read(at("/server/own"))), "of the server");
}

TEST_F(GuardedPath, TwoUsersLinksDoNotAddUp) {
  link("to-own", "/server/by-other", kOther);
  link("own", "/server/to-own", kServer);
  EXPECT_TRUE(is_denied(open_to_read(at("/server/by-other"))));
}

TEST_F(GuardedPath, ALinkOfRootLeadsAnywhere) {
  link(at("/root"), "/server/to-root", 0);
  link("../server/own", "/root/to-own", 0);
  EXPECT_EQ(read(open_to_read(at("/server/to-root/secret"))), "of root");
  EXPECT_EQ(read(open_to_read(at("/root/to-own"))), "of the server");
  EXPECT_TRUE(open_folder(at("/server/to-root")));
}

TEST_F(GuardedPath, LinksThatLeadInACircleEnd) {
  link("b", "/root/a", 0);
  link("a", "/root/b", 0);
  EXPECT_TRUE(is_denied(open_to_read(at("/root/a"))));
}

TEST_F(GuardedPath, ASecondNameOfRootsFileIsNoFileOfTheServersFolder) {
  ASSERT_EQ(::link(at("/root/secret").c_str(), at("/server/second").c_str()), 0);
  EXPECT_TRUE(is_denied(open_to_read(at("/server/second"))));
  EXPECT_EQ(read(open_to_read(at("/root/secret"))), "of root") << "in root's own folder";
}

TEST_F(GuardedPath, WhatAProcessHasOpenIsReadByItsNumber) {
  const Fd file(::open(at("/root/secret").c_str(), O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(read(open_to_read("/dev/fd/" + std::to_string(file.get()))), "of root");
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const Fd reading(ends[0]);
  Fd writing(ends[1]);
  ASSERT_EQ(::write(writing.get(), "piped", 5), 5);
  EXPECT_EQ(read(open_to_read("/dev/fd/" + std::to_string(reading.get()))), "piped");
}

TEST_F(GuardedPath, APipeWithoutAWriterHoldsNobody) {
  ASSERT_EQ(::mkfifo(at("/server/pipe").c_str(), 0600), 0);
  EXPECT_TRUE(open_to_read(at("/server/pipe")));
}

TEST_F(GuardedPath, AMissingFileIsToldWithItsPath) {
  const auto missing = open_to_read(at("/root/missing"));
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().text, "cannot open " + at("/root/missing: No such file or directory"));
  EXPECT_FALSE(open_to_read(at("/missing/file")));
}

TEST_F(GuardedPath, FoldersAreMadeAndAFolderBehindALesserUsersLinkIsNot) {
  link(at("/root"), "/server/to-root", kServer);
  EXPECT_TRUE(is_denied(open_folder(at("/server/to-root"))));
  EXPECT_TRUE(is_denied(make_folder(at("/server/to-root/new"), 0755)));
  EXPECT_FALSE(fs::exists(at("/root/new")));
  EXPECT_FALSE(open_folder(at("/root/a")));
  EXPECT_TRUE(make_folder(at("/root/a/b"), 0750));
  struct stat status{};
  ASSERT_EQ(::stat(at("/root/a/b").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777U, 0750U);
}

TEST_F(GuardedPath, NothingIsAppendedThroughALesserUsersLink) {
  link(at("/root/secret"), "/server/log", kServer);
  link("own", "/server/to-own", kServer);
  EXPECT_TRUE(is_denied(open_to_append(at("/server/log"))));
  EXPECT_TRUE(is_denied(open_to_append(at("/server/to-own"))));
  const auto log = open_to_append(at("/server/new.log"));
  ASSERT_TRUE(log) << log.error().text;
  EXPECT_EQ(::write(log->get(), "line", 4), 4);
  EXPECT_EQ(text_of("/server/new.log"), "line");
  EXPECT_EQ(text_of("/root/secret"), "of root");
}

TEST_F(GuardedPath, AProgramIsRootsAloneOrIsRefused) {
  EXPECT_EQ(read(open_unchangeable(at("/root/secret"), {})), "of root");
  EXPECT_TRUE(is_denied(open_unchangeable(at("/server/own"), {}))) << "the folder is another's";
  own("/server", 0);
  EXPECT_TRUE(is_denied(open_unchangeable(at("/server/own"), {}))) << "the file is another's";
  ::chmod(at("/root/secret").c_str(), 0646);
  EXPECT_TRUE(is_denied(open_unchangeable(at("/root/secret"), {})));
  ::chmod(at("/root/secret").c_str(), 0644);
  ::chmod(at("/root").c_str(), 0775);
  ASSERT_EQ(::chown(at("/root").c_str(), 0, kServer), 0);
  EXPECT_TRUE(is_denied(open_unchangeable(at("/root/secret"), {kOther, kServer})));
  EXPECT_TRUE(open_unchangeable(at("/root/secret"), {kOther})) << "of a group of others";
  ::chmod(at("/root").c_str(), 0757);
  EXPECT_TRUE(is_denied(open_unchangeable(at("/root/secret"), {})));
  ::chmod(at("/root").c_str(), 01757);
  EXPECT_TRUE(open_unchangeable(at("/root/secret"), {})) << "a folder as /tmp";
}

TEST_F(GuardedPath, FilesBelowAFolderOfRootsAreRootsToo) {
  fs::create_directory(at("/root/files"));
  write("/root/files/one", "saved");
  const Fd folder = open_folder(at("/root")).value();
  EXPECT_EQ(read(open_below(folder, "files/one")), "saved");
  EXPECT_EQ(read(open_below(folder, "files//one")), "saved");
  EXPECT_TRUE(is_denied(open_below(folder, "files/../secret")));
  EXPECT_TRUE(is_denied(open_below(open_folder(at("/server")).value(), "own")));
  own("/root/files/one", kServer);
  EXPECT_TRUE(is_denied(open_below(folder, "files/one")));
  own("/root/files/one", 0);
  ::chmod(at("/root/files").c_str(), 0777);
  EXPECT_TRUE(is_denied(open_below(folder, "files/one")));
  ::chmod(at("/root/files").c_str(), 0755);
  link(at("/root/secret"), "/root/files/link", 0);
  EXPECT_FALSE(open_below(folder, "files/link")) << "a backup has no links";
}

TEST_F(GuardedPath, FilesAreCreatedAndRemovedBelowAFolderWithoutFollowingLinks) {
  const Fd folder = open_folder(at("/server")).value();
  ASSERT_TRUE(create_below(folder, "new/deep/file"));
  EXPECT_FALSE(create_below(folder, "new/deep/file")) << "it is there";
  link(at("/root"), "/server/new/away", kServer);
  EXPECT_FALSE(create_below(folder, "new/away/file"));
  link(at("/root"), "/server/link", kServer);
  EXPECT_TRUE(remove_below(folder, "link"));
  EXPECT_TRUE(remove_below(folder, "new"));
  EXPECT_TRUE(remove_below(folder, "new")) << "gone already";
  EXPECT_FALSE(fs::exists(at("/server/new")));
  EXPECT_EQ(text_of("/root/secret"), "of root");
  EXPECT_FALSE(fs::exists(at("/root/file")));
}

TEST(PathParts, AreTheFolderAndTheLastName) {
  EXPECT_EQ(split_path("/a/b").folder, "/a");
  EXPECT_EQ(split_path("/a/b").name, "b");
  EXPECT_EQ(split_path("/b").folder, "/");
  EXPECT_EQ(split_path("b").folder, ".");
}

TEST(FileStatus, IsTheCLibrarys) {
  const Fd file(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  struct stat ours{};
  struct stat theirs{};
  ASSERT_TRUE(file_status(file.get(), ours));
  ASSERT_EQ(::fstat(file.get(), &theirs), 0);
  EXPECT_EQ(ours.st_ino, theirs.st_ino);
  EXPECT_EQ(ours.st_size, theirs.st_size);
  EXPECT_EQ(ours.st_mode, theirs.st_mode);
  EXPECT_EQ(ours.st_mtim.tv_nsec, theirs.st_mtim.tv_nsec);
  EXPECT_FALSE(file_status(-1, ours));
}

}  // namespace guarded_path_test
}  // namespace pando
