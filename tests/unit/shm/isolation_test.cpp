// The harm that a hijacked worker can do, and cannot do, to the store and to the manager.

#include <fcntl.h>
#include <grp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>

#include "shm/layout.h"
#include "shm/slot_guard.h"
#include "tests/unit/shm/support.h"

namespace pando::shm {
namespace isolation_test {

using namespace test;

constexpr uid_t kManager = 61002;
constexpr uid_t kWorker = 61001;
constexpr gid_t kManagers = 61003;
constexpr gid_t kWorkers = 61004;

bool become(uid_t user, gid_t group) {
  return ::setgroups(0, nullptr) == 0 && ::setresgid(group, group, group) == 0 &&
         ::setresuid(user, user, user) == 0;
}

TEST(Isolation, ReadersMappingCannotBeMadeWritable) {
  const Folder folder;
  const Store store = must(Store::create(options(folder)));
  SlotTable slots = must(SlotTable::open(folder.slots(), folder.store(), kLayout));
  must(slots.add(0));
  Reader reader = must(Reader::attach(must(slots.lend(0)), kLayout, 0));
  const Reader::View view = reader.pin();
  void* page = const_cast<std::byte*>(view.window.base());
  EXPECT_NE(::mprotect(page, kPageBytes, PROT_READ | PROT_WRITE), 0);
  EXPECT_EQ(errno, EACCES);
}

/// A manager process of its own user and group.
class ForeignManager : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root to become other users";
    ASSERT_EQ(::chown(folder_.path().c_str(), kManager, kManagers), 0);
    int ready[2];
    int hold[2];
    ASSERT_EQ(::pipe(ready), 0);
    ASSERT_EQ(::pipe(hold), 0);
    manager_ = start_child([&] {
      ::close(hold[1]);
      return run_manager(ready[1], hold[0]);
    });
    ::close(ready[1]);
    ::close(hold[0]);
    ready_ = Fd(ready[0]);
    hold_ = Fd(hold[1]);
    char byte = 0;
    ASSERT_EQ(::read(ready_.get(), &byte, 1), 1) << "the manager did not start";
  }
  void TearDown() override {
    if (manager_ == 0) return;
    hold_.reset();
    EXPECT_EQ(end_of(manager_), 0);
  }

  int run_manager(int ready, int hold) const {
    if (!become(kManager, kManagers)) return 1;
    ::prctl(PR_SET_DUMPABLE, 0);
    const Store store = must(Store::create(options(folder_)));
    SlotTable slots = must(SlotTable::open(folder_.slots(), folder_.store(), kLayout));
    must(slots.add(0));
    must(slots.add(1));
    char byte = 1;
    if (::write(ready, &byte, 1) != 1) return 2;
    return ::read(hold, &byte, 1) == 0 ? 0 : 3;  // until the test, or its process, ends
  }

  /// Runs `body` as `user`; it gives 0 when all went as it should.
  template <class Body>
  void as(uid_t user, Body&& body) {
    const gid_t group = user == kManager ? kManagers : kWorkers;
    EXPECT_EQ(in_child([&] { return become(user, group) ? body() : 99; }), 0);
  }
  /// As the manager would pass it to its worker.
  [[nodiscard]] SlotLoan loan() const {
    return {Fd(::open(folder_.store().c_str(), O_RDONLY | O_CLOEXEC)),
            Fd(::open(slot_path(0).c_str(), O_RDWR | O_CLOEXEC))};
  }
  [[nodiscard]] std::string slot_path(int number) const {
    return folder_.slots() + "/" + std::to_string(number) + ".slot";
  }

  Folder folder_;
  Fd ready_;
  Fd hold_;
  pid_t manager_ = 0;
};

TEST_F(ForeignManager, WorkerReadsThroughTheFilesItWasLent) {
  SlotLoan files = loan();
  as(kWorker, [&] {
    auto reader = Reader::attach(std::move(files), kLayout, 0);
    return reader && reader->pin().version == 1 ? 0 : 1;
  });
}

/// A store that the workers' user could open could be locked by any of its processes, as a reader
/// that no page names.
TEST_F(ForeignManager, WorkerCannotOpenTheStoreNorWriteTheOneItWasLent) {
  const SlotLoan files = loan();
  as(kWorker, [&] {
    if (::open(folder_.store().c_str(), O_RDONLY | O_CLOEXEC) >= 0 || errno != EACCES) return 1;
    const std::string again = "/proc/self/fd/" + std::to_string(files.store.get());
    if (::open(again.c_str(), O_RDWR | O_CLOEXEC) >= 0) return 2;
    if (::open(again.c_str(), O_RDONLY | O_CLOEXEC) >= 0) return 3;
    if (::fchmod(files.store.get(), 0666) == 0) return 4;
    return ::ftruncate(files.store.get(), 0) != 0 ? 0 : 5;
  });
}

TEST_F(ForeignManager, WorkerCannotReplaceTheStore) {
  as(kWorker, [&] {
    if (::unlink(folder_.store().c_str()) == 0) return 1;
    const std::string other = folder_.store() + ".new";
    return ::open(other.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600) < 0 ? 0 : 2;
  });
}

TEST_F(ForeignManager, WorkerCannotOpenAnotherSlot) {
  as(kWorker, [&] {
    return ::open(slot_path(1).c_str(), O_RDWR | O_CLOEXEC) < 0 && errno == EACCES ? 0 : 1;
  });
}

int try_to_trace(pid_t manager) {
  if (::ptrace(PTRACE_ATTACH, manager, nullptr, nullptr) == 0 || errno != EPERM) return 1;
  const std::string memory = "/proc/" + std::to_string(manager) + "/mem";
  return ::open(memory.c_str(), O_RDWR | O_CLOEXEC) < 0 ? 0 : 2;
}

TEST_F(ForeignManager, WorkerCannotTraceTheManager) {
  as(kWorker, [&] { return try_to_trace(manager_); });
}

TEST_F(ForeignManager, NotEvenTheSameUserCanTraceTheManager) {
  as(kManager, [&] { return try_to_trace(manager_); });
}

TEST(Isolation, WorkerThatCutsItsSlotOffDoesNotEndTheManager) {
  const Folder folder;
  EXPECT_EQ(in_child([&] {
              must(install_slot_guard());
              Store store = must(Store::create(options(folder)));
              SlotTable slots = must(SlotTable::open(folder.slots(), folder.store(), kLayout));
              store.set_slots(&slots);
              must(slots.add(0));
              SlotLoan worker = must(slots.lend(0));
              if (!slots.intact(0) || ::ftruncate(worker.slot.get(), 0) != 0) return 1;
              // The worker shows no pin any more, and may still read what it had pinned.
              if (slots.oldest_pinned() != 0 || slots.intact(0)) return 2;
              slots.page(0)->leases[0].revoke.store(1);  // writing is as harmless
              worker = SlotLoan();                       // its end
              return slots.oldest_pinned() == UINT64_MAX ? 0 : 3;
            }),
            0);
}

TEST(Isolation, ASlotFileCutAnywhereIsNotIntact) {
  const Folder folder;
  EXPECT_EQ(in_child([&] {
              must(install_slot_guard());
              Store store = must(Store::create(options(folder)));
              SlotTable slots = must(SlotTable::open(folder.slots(), folder.store(), kLayout));
              for (const std::uint64_t left :
                   {kSlotFileBytes - 1, kScratchOffset, kPageBytes, std::uint64_t{1}}) {
                must(slots.add(0));
                const SlotLoan worker = must(slots.lend(0));
                if (!slots.intact(0)) return 1;
                if (::ftruncate(worker.slot.get(), static_cast<off_t>(left)) != 0) return 2;
                if (slots.intact(0)) return 3;
                slots.remove(0);  // the next one in the slot gets a whole file
              }
              return 0;
            }),
            0);
}

TEST(Isolation, OtherBusErrorsStillEndTheProcess) {
  const Folder folder;
  EXPECT_EQ(in_child([&] {
              ::signal(SIGBUS, SIG_DFL);
              must(install_slot_guard());
              const Fd empty(::open((folder.path() + "/empty").c_str(), O_RDWR | O_CREAT, 0600));
              const void* page = ::mmap(nullptr, kPageBytes, PROT_READ, MAP_SHARED, empty.get(), 0);
              return static_cast<int>(*static_cast<const volatile char*>(page));
            }),
            -SIGBUS);
}

}  // namespace isolation_test
}  // namespace pando::shm
