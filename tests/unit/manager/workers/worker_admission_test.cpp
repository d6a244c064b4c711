#include "manager/workers/worker_admission.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shm/slots.h"

namespace pando::manager {
namespace worker_admission_test {

using Starter = WorkerAdmission::Starter;
using Place = WorkerAdmission::Place;

constexpr std::uint64_t kLayout = 0x1234;
constexpr std::uint32_t kOwn = 1001;
constexpr std::uint32_t kWorkers = 1002;

/// A process that waits to be ended.
class Process {
 public:
  Process() : pid_(::fork()) {
    if (pid_ == 0)
      for (;;) ::pause();
  }
  ~Process() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  void end() const {
    ::kill(pid_, SIGKILL);
    siginfo_t info;
    ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT);  // stays a zombie
  }
  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] Child child() const {
    return {pid_, Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)))};
  }

 private:
  pid_t pid_;
};

class Admission : public ::testing::Test {
 protected:
  /// The error of the decision; kUnsupported, which none has, when the process is let in.
  static Errc decide(const WorkerAdmission& admission, const ipc::Hello& hello, const Child& peer,
                     const Place& place) {
    const auto decision = admission.admit(hello, peer, place);
    return decision ? kAdmitted : decision.error().code;
  }
  static ipc::Hello hello(std::uint32_t slot = 0) { return {slot, 1, kLayout, 0}; }

  static constexpr Errc kAdmitted = Errc::kUnsupported;
  WorkerAdmission managed_{Starter::kManager, kLayout, kOwn, kWorkers};
  WorkerAdmission external_{Starter::kOther, kLayout, kOwn, kWorkers};
  Process one_;
  Process other_;
};

TEST_F(Admission, LetsRootTheManagersUserAndTheWorkersUserConnect) {
  for (const std::uint32_t uid : {0U, kOwn, kWorkers}) EXPECT_TRUE(managed_.may_connect(uid));
  EXPECT_FALSE(managed_.may_connect(1003));
}

TEST_F(Admission, TakesTheProcessThatWasStartedForTheSlot) {
  EXPECT_EQ(decide(managed_, hello(), one_.child(), {one_.pid(), 0}), kAdmitted);
}

TEST_F(Admission, TakesTheAdoptedWorkerThatThePageNames) {
  EXPECT_EQ(decide(managed_, hello(), one_.child(), {0, one_.pid()}), kAdmitted);
}

TEST_F(Admission, RefusesAnotherProcessThanTheSlotsOwn) {
  for (const auto* admission : {&managed_, &external_}) {
    EXPECT_EQ(decide(*admission, hello(), other_.child(), {one_.pid(), 0}), Errc::kExists);
    EXPECT_EQ(decide(*admission, hello(), other_.child(), {0, one_.pid()}), Errc::kExists);
  }
}

TEST_F(Admission, APageDoesNotOutweighTheProcessThatTheManagerStarted) {
  EXPECT_EQ(decide(managed_, hello(), other_.child(), {one_.pid(), other_.pid()}), Errc::kExists);
}

TEST_F(Admission, AFreeSlotIsForThoseWhomSomebodyElseStarts) {
  EXPECT_EQ(decide(managed_, hello(), one_.child(), {}), Errc::kDenied);
  EXPECT_EQ(decide(external_, hello(), one_.child(), {}), kAdmitted);
}

TEST_F(Admission, WhatTheHelloSaysOfItsPidDoesNotCount) {
  ipc::Hello claim = hello();
  claim.pid = static_cast<std::uint32_t>(one_.pid());
  EXPECT_EQ(decide(managed_, claim, other_.child(), {one_.pid(), 0}), Errc::kExists);
}

TEST_F(Admission, AConnectionOfAnEndedProcessIsNotItsSuccessorsByTheSamePid) {
  const Child peer = one_.child();
  one_.end();
  EXPECT_EQ(decide(managed_, hello(), peer, {one_.pid(), 0}), Errc::kNotFound);
  EXPECT_EQ(decide(external_, hello(), peer, {}), Errc::kNotFound);
}

TEST_F(Admission, SlotsAndBuildsThatDoNotExistAreRefused) {
  EXPECT_EQ(decide(external_, hello(shm::kMaxSlots), one_.child(), {}), Errc::kInvalid);
  ipc::Hello old = hello();
  old.layout = kLayout + 1;
  EXPECT_EQ(decide(managed_, old, one_.child(), {one_.pid(), 0}), Errc::kLayout);
}

TEST_F(Admission, OnlyASurplusProcessWithoutSocketsIsSentAway) {
  const Error denied{Errc::kDenied, ""};
  const Error exists{Errc::kExists, ""};
  EXPECT_TRUE(managed_.is_surplus(hello(), denied));
  EXPECT_TRUE(managed_.is_surplus(hello(), exists));
  EXPECT_FALSE(managed_.is_surplus(hello(), {Errc::kLayout, ""}));
  EXPECT_FALSE(external_.is_surplus(hello(), exists));
  ipc::Hello serving = hello();
  serving.sockets = 1;
  EXPECT_FALSE(managed_.is_surplus(serving, exists));
}

}  // namespace worker_admission_test
}  // namespace pando::manager
