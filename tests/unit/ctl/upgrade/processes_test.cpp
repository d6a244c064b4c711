#include "ctl/upgrade/processes.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <thread>

namespace pando::ctl {
namespace processes_test {

/// A pipe whose writing end takes what a program prints.
struct Pipe {
  Pipe() {
    int ends[2] = {-1, -1};
    if (::pipe2(ends, O_CLOEXEC) != 0) std::abort();
    reader = Fd(ends[0]);
    writer = Fd(ends[1]);
  }
  /// All that was printed, once every writer has gone.
  std::string text() {
    writer.reset();
    std::string all;
    char buffer[256];
    for (ssize_t size; (size = ::read(reader.get(), buffer, sizeof buffer)) > 0;)
      all.append(buffer, static_cast<std::size_t>(size));
    return all;
  }
  Fd reader;
  Fd writer;
};

int exit_code_in_time(StartedProgram& program) {
  for (int i = 0; i < 1000; ++i) {
    if (const auto code = program.exit_code()) return *code;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return -1;
}

TEST(Processes, AProgramIsRunToItsEnd) {
  EXPECT_TRUE(run_program({"true"}));
  const auto failed = run_program({"sh", "-c", "exit 3"});
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().text, "sh ended with exit code 3");
  const auto killed = run_program({"sh", "-c", "kill -9 $$"});
  ASSERT_FALSE(killed);
  EXPECT_EQ(killed.error().text, "sh ended with exit code 137");
  const auto missing = run_program({"/no/such/program"});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().text, "cannot run /no/such/program: No such file or directory");
}

TEST(Processes, AStartedProgramLeadsItsSessionAndWritesToTheLog) {
  Pipe log;
  auto started = StartedProgram::start(
      {"sh", "-c", "cut -d ' ' -f 6 /proc/self/stat; echo error >&2; exit 5"}, log.writer);
  ASSERT_TRUE(started);
  EXPECT_EQ(exit_code_in_time(*started), 5);
  const std::string text = log.text();
  EXPECT_NE(text.find(std::to_string(started->pid())), std::string::npos) << text;
  EXPECT_NE(text.find("error\n"), std::string::npos) << text;
}

TEST(Processes, AProgramThatRunsHasNoExitCode) {
  Pipe log;
  auto started = StartedProgram::start({"sleep", "60"}, log.writer);
  ASSERT_TRUE(started);
  EXPECT_FALSE(started->exit_code());
  EXPECT_EQ(user_of(started->pid()).value(), ::geteuid());
  ::kill(started->pid(), SIGTERM);
  EXPECT_EQ(exit_code_in_time(*started), 128 + SIGTERM);
  EXPECT_FALSE(user_of(started->pid()));
}

TEST(Processes, TheProgramOfAProcessIsItsFile) {
  EXPECT_EQ(program_of(::getpid()).value(),
            std::filesystem::read_symlink("/proc/self/exe").string());
  EXPECT_FALSE(program_of(0));
}

TEST(Processes, ADescriptorOfAProcessKeepsItsRights) {
  const Fd own(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
  const std::string name = ::testing::TempDir() + "pando-descriptor-of";
  const Fd reading(::open(name.c_str(), O_RDONLY | O_CREAT | O_CLOEXEC, 0600));
  ::unlink(name.c_str());
  const auto copy = descriptor_of(own, reading.get());
  if (!copy) GTEST_SKIP() << copy.error().text << ": not allowed here";
  EXPECT_NE(copy->get(), reading.get());
  EXPECT_EQ(::write(copy->get(), "x", 1), -1) << "opened for reading alone";
  EXPECT_FALSE(descriptor_of(own, 9999));
  const Fd kernels(::open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC));
  const auto refused = descriptor_of(own, kernels.get());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::kDenied);
  const Fd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  EXPECT_FALSE(descriptor_of(own, socket.get())) << "its peer would take the lines for root's";
}

TEST(Processes, AProcessThatIsNoUnitsMainProcessHasNoUnit) {
  // Where systemd runs the tests it is asked, and may not tell everybody.
  if (const auto unit = unit_of(::getpid())) {
    EXPECT_EQ(*unit, "");
  }
}

}  // namespace processes_test
}  // namespace pando::ctl
