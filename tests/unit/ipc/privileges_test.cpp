#include "ipc/privileges.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/build.h"

namespace pando::ipc {
namespace privileges_test {

constexpr uid_t kSomebody = 61002;

/// Ends the process `child` when it goes.
struct Ended {
  pid_t child;
  ~Ended() {
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }
};

TEST(Privileges, AProcessThatForbidsInspectionCannotBeTracedByItsOwnUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to become somebody else";
  int ready[2];
  ASSERT_EQ(::pipe2(ready, O_CLOEXEC), 0);
  const pid_t manager = ::fork();
  if (manager == 0) {
    if (::setresuid(kSomebody, kSomebody, kSomebody) != 0) ::_exit(1);
    // As right after exec; the change of user has cleared it already.
    ::prctl(PR_SET_DUMPABLE, 1);
    const char done = forbid_inspection() ? 1 : 0;
    if (::write(ready[1], &done, 1) != 1) ::_exit(1);
    for (;;) ::pause();
  }
  const Ended manager_ends{manager};
  char done = 0;
  ASSERT_EQ(::read(ready[0], &done, 1), 1);
  ASSERT_EQ(done, 1);
  const pid_t worker = ::fork();
  if (worker == 0) {
    if (::setresuid(kSomebody, kSomebody, kSomebody) != 0) ::_exit(99);
    ::_exit(::ptrace(PTRACE_ATTACH, manager, nullptr, nullptr) == 0 ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(worker, &status, 0), worker);
  ASSERT_TRUE(WIFEXITED(status));
  // With a sanitizer its leak checker has to be able to.
  EXPECT_EQ(WEXITSTATUS(status), kSanitized ? 1 : 0);
}

TEST(ActingUser, HasThatUsersRightsUntilItsEnd) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can act as another user";
  const auto group = ::getegid();
  {
    const ActingUser user("nobody");
    ASSERT_TRUE(user.acts());
    EXPECT_NE(::geteuid(), 0U);
    EXPECT_EQ(::getuid(), 0U);
    const ActingUser again("nobody");
    EXPECT_FALSE(again.acts());
  }
  EXPECT_EQ(::geteuid(), 0U);
  EXPECT_EQ(::getegid(), group);
}

TEST(ActingUser, IsNobodyElseForRootAndForUnknownUsers) {
  EXPECT_FALSE(ActingUser("root").acts());
  EXPECT_FALSE(ActingUser("no-such-user-of-pando").acts());
}

}  // namespace privileges_test
}  // namespace pando::ipc
