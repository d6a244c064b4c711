#include "ipc/acting_user.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace pando::ipc {
namespace acting_user_test {

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

}  // namespace acting_user_test
}  // namespace pando::ipc
