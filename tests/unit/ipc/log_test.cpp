#include "ipc/log.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <sstream>
#include <string>

namespace pando::log {
namespace log_test {

/// Puts a pipe in place of standard error while it lives.
class StandardErrorPipe {
 public:
  StandardErrorPipe() {
    EXPECT_EQ(::pipe2(ends_, O_CLOEXEC), 0);
    saved_ = ::dup(STDERR_FILENO);
    ::dup2(ends_[1], STDERR_FILENO);
  }
  ~StandardErrorPipe() {
    ::dup2(saved_, STDERR_FILENO);
    ::close(saved_);
    ::close(ends_[0]);
    ::close(ends_[1]);
  }
  std::string read() {
    char buffer[8192];
    ::fcntl(ends_[0], F_SETFL, O_NONBLOCK);
    const ssize_t got = ::read(ends_[0], buffer, sizeof buffer);
    return got > 0 ? std::string(buffer, static_cast<std::size_t>(got)) : std::string();
  }

 private:
  int ends_[2];
  int saved_;
};

TEST(Log, AnEventIsOneLineOfFields) {
  StandardErrorPipe pipe;
  start({"info", "text", "test"});
  info("worker_started", "slot", 0, "pid", 4711, "why", "it is time");
  const std::string line = pipe.read();
  EXPECT_NE(line.find(" info test: worker_started slot=0 pid=4711 why=\"it is time\"\n"),
            std::string::npos)
      << line;
}

TEST(Log, AFieldCannotStartANewLine) {
  StandardErrorPipe pipe;
  start({"info", "text", "test"});
  info("zone_loaded", "zone", "a\nerror fake");
  const std::string line = pipe.read();
  EXPECT_NE(line.find("zone=\"a\\u000aerror fake\"\n"), std::string::npos) << line;
}

TEST(Log, JsonLinesCarryTheSameFields) {
  StandardErrorPipe pipe;
  start({"info", "json", "test"});
  warning("update_refused", "zone", "exa\"mple");
  const std::string line = pipe.read();
  EXPECT_NE(line.find(R"("process":"test","event":"update_refused","zone":"exa\"mple"})"),
            std::string::npos)
      << line;
  start({});
}

TEST(Log, NumbersAndTruthValuesOfJsonAreNoText) {
  StandardErrorPipe pipe;
  start({"info", "json", "test"});
  info("worker_serving", "slot", std::uint8_t{7}, "pid", 4711, "share", 0.5, "adopted", true,
       "sign", 'x', "text", "1");
  const std::string line = pipe.read();
  EXPECT_NE(line.find(R"("slot":7,"pid":4711,"share":0.5,"adopted":true,"sign":"x","text":"1"})"),
            std::string::npos)
      << line;
  start({});
}

TEST(Log, LinesForTheJournalBeginWithTheirPriority) {
  StandardErrorPipe pipe;
  struct stat status {};
  ASSERT_EQ(::fstat(STDERR_FILENO, &status), 0);
  const auto stream = fmt::format("{}:{}", status.st_dev, status.st_ino);
  ::setenv("JOURNAL_STREAM", stream.c_str(), 1);
  start({"debug", "text", "test"});
  debug("a");
  info("b");
  warning("c");
  error("d");
  std::istringstream lines(pipe.read());
  std::string begins;
  for (std::string line; std::getline(lines, line);) begins += line.substr(0, 3);
  EXPECT_EQ(begins, "<7><6><4><3>");
  ::setenv("JOURNAL_STREAM", "1:2", 1);  // inherited, but standard error is another file
  start({});
  info("e");
  EXPECT_NE(pipe.read().substr(0, 1), "<");
  ::unsetenv("JOURNAL_STREAM");
}

TEST(Log, OffWritesNothing) {
  StandardErrorPipe pipe;
  start({"off", "text", "test"});
  error("loud");
  EXPECT_EQ(pipe.read(), "");
  start({});
}

TEST(Log, BelowTheLevelNothingIsWritten) {
  StandardErrorPipe pipe;
  start({"warning", "text", "test"});
  info("quiet");
  EXPECT_EQ(pipe.read(), "");
  start({});
}

TEST(Log, AReaderThatDoesNotReadCostsLinesNotTime) {
  StandardErrorPipe pipe;
  start({});
  const auto before = dropped();
  for (int i = 0; i < 3000; ++i) info("flood", "text", std::string(100, 'x'));
  EXPECT_GT(dropped(), before);
}

}  // namespace log_test
}  // namespace pando::log
