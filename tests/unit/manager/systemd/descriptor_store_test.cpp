#include "manager/systemd/descriptor_store.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "manager/systemd/readiness.h"
#include "tests/unit/manager/systemd/notify_socket.h"

namespace pando::manager::systemd {
namespace descriptor_store_test {

using testing::NotifySocket;

Fd some_file() { return Fd(::open("/dev/zero", O_RDONLY | O_CLOEXEC)); }

bool is_same_file(int one, int other) {
  struct stat first{}, second{};
  return ::fstat(one, &first) == 0 && ::fstat(other, &second) == 0 &&
         first.st_ino == second.st_ino && first.st_dev == second.st_dev;
}

TEST(DescriptorStore, ADescriptorIsKeptUnderItsNameUntilItIsRemoved) {
  NotifySocket manager;
  const DescriptorStore store;
  ASSERT_TRUE(store.is_open());
  const Fd file = some_file();
  store.keep("one", file.get());
  store.keep("two", file.get());
  ASSERT_EQ(manager.stored().size(), 2U);
  EXPECT_TRUE(is_same_file(manager.stored().at("one").get(), file.get()));
  store.remove("one");
  EXPECT_EQ(manager.stored().size(), 1U);
  EXPECT_TRUE(manager.stored().contains("two"));
}

TEST(DescriptorStore, NothingIsTakenOutOnceTheProcessLeaves) {
  NotifySocket manager;
  DescriptorStore store;
  const Fd file = some_file();
  store.keep("one", file.get());
  store.leave();
  store.remove("one");
  store.keep("two", file.get());
  EXPECT_TRUE(manager.stored().contains("one"));
  EXPECT_FALSE(manager.stored().contains("two"));
}

TEST(DescriptorStore, WithoutAServiceManagerNothingHappens) {
  const DescriptorStore store;
  EXPECT_FALSE(store.is_open());
  store.keep("one", 0);
  store.remove("one");
}

TEST(DescriptorStore, OtherMessagesGoTheSameWay) {
  NotifySocket manager;
  alive();
  manager.stored();
  EXPECT_EQ(manager.other_lines, "WATCHDOG=1\n");
}

/// In a process of its own, since descriptors are passed from number 3 on.
int take_in_child() {
  const Fd file = some_file();
  const int kept = ::fcntl(file.get(), F_DUPFD_CLOEXEC, 100);
  for (const int number : {3, 4}) ::dup2(kept, number);
  ::setenv("LISTEN_PID", std::to_string(::getpid()).c_str(), 1);
  ::setenv("LISTEN_FDS", "2", 1);
  ::setenv("LISTEN_FDNAMES", "worker-0-0-1:pando.socket", 1);
  const auto inherited = take_inherited_descriptors();
  const bool names = inherited.size() == 2 && inherited[0].name == "worker-0-0-1" &&
                     inherited[1].name == "pando.socket";
  const bool closed_on_exec =
      names && (::fcntl(inherited[1].fd.get(), F_GETFD) & FD_CLOEXEC) != 0 &&
      is_same_file(inherited[1].fd.get(), kept);
  const bool once = ::getenv("LISTEN_FDS") == nullptr && take_inherited_descriptors().empty();
  return names && closed_on_exec && once ? 0 : 1;
}

TEST(DescriptorStore, PassedDescriptorsAreTakenOnceWithTheirNames) {
  EXPECT_TRUE(take_inherited_descriptors().empty());
  const pid_t child = ::fork();
  if (child == 0) ::_exit(take_in_child());
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace descriptor_store_test
}  // namespace pando::manager::systemd
