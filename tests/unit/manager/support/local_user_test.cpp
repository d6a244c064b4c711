#include "manager/support/local_user.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/unit/shm/support.h"

namespace pando::manager {
namespace local_user_test {

TEST(LocalUser, HasTheNameOfThePasswordFile) {
  const shm::test::Folder folder;
  const std::string path = folder.path() + "/passwd";
  std::ofstream(path) << "root:x:0:0:root:/root:/bin/sh\nalice:x:1000:1000::/home/alice:/bin/sh\n";
  EXPECT_EQ(local_user_name(1000, path.c_str()), "alice");
  EXPECT_EQ(local_user_name(0, path.c_str()), "root");
  EXPECT_EQ(local_user_name(1001, path.c_str()), "uid 1001");
  EXPECT_EQ(local_user_name(7, "/nonexistent"), "uid 7");
}

}  // namespace local_user_test
}  // namespace pando::manager
