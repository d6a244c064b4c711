#include "manager/io/directory_lock.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

namespace pando::manager {
namespace directory_lock_test {

using std::chrono::milliseconds;

class DirectoryLockTest : public ::testing::Test {
 protected:
  DirectoryLockTest() {
    std::string name = ::testing::TempDir() + "pando-lock-XXXXXX";
    directory = ::mkdtemp(name.data());
  }
  ~DirectoryLockTest() override { std::filesystem::remove_all(directory); }

  Result<DirectoryLock> take(milliseconds timeout = milliseconds(0)) const {
    auto opened = OwnedDirectory::open("the.key", directory, std::nullopt);
    if (!opened) return pass(opened);
    return DirectoryLock::take(*opened, "lock", timeout);
  }

  std::string directory;
};

TEST_F(DirectoryLockTest, ASecondHolderIsToldWhoHasWhat) {
  const auto first = take();
  ASSERT_TRUE(first) << first.error().text;
  const auto second = take();
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Errc::kExists);
  EXPECT_EQ(second.error().text,
            fmt::format("the.key: another manager (process {}) uses {}", ::getpid(), directory));
}

TEST_F(DirectoryLockTest, IsFreeAgainWhenItsHolderEnds) {
  {
    ASSERT_TRUE(take());
  }
  EXPECT_TRUE(take());
}

TEST_F(DirectoryLockTest, WaitsForAHolderThatIsJustBeingKilled) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto held = take();
    [[maybe_unused]] const auto told = ::write(ready[1], held ? "y" : "n", 1);
    ::pause();
    ::_exit(0);
  }
  char answer = 0;
  ASSERT_EQ(::read(ready[0], &answer, 1), 1);
  EXPECT_EQ(answer, 'y');
  EXPECT_FALSE(take());
  ::kill(child, SIGKILL);
  EXPECT_TRUE(take(kKilledProcessTimeout));
  ::waitpid(child, nullptr, 0);
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST_F(DirectoryLockTest, OnlyItsUserMayOpenTheLockFile) {
  const auto held = take();
  ASSERT_TRUE(held);
  struct stat status{};
  ASSERT_EQ(::stat((directory + "/lock").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600U);
}

TEST_F(DirectoryLockTest, FollowsNoLink) {
  std::ofstream(directory + "/elsewhere") << "data";
  std::filesystem::create_symlink(directory + "/elsewhere", directory + "/lock");
  const auto refused = take();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::kIo);
  EXPECT_EQ(std::filesystem::file_size(directory + "/elsewhere"), 4U);
}

}  // namespace directory_lock_test
}  // namespace pando::manager
