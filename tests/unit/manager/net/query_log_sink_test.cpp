#include "manager/net/query_log_sink.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace pando::manager {
namespace query_log_sink_test {

using Clock = QueryLogSink::Clock;

constexpr std::string_view kLine = "{\"a\":1}\n";

class QueryLogSinkTest : public ::testing::Test {
 protected:
  QueryLogSinkTest() {
    char pattern[] = "/tmp/pando-sink-XXXXXX";
    folder_ = ::mkdtemp(pattern);
    path_ = folder_ + "/queries.log";
  }
  ~QueryLogSinkTest() override { std::filesystem::remove_all(folder_); }

  static std::string content(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }
  void write(QueryLogSink& sink, int lines = 1) {
    for (int i = 0; i < lines; ++i) sink.push(kLine);
    sink.flush(now_);
    const auto counters = sink.take_counters();
    written_ += counters.written;
    dropped_ += counters.dropped;
  }
  /// A socket at `path_` that listens.
  Fd listen() {
    Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path_.data(), path_.size());
    std::filesystem::remove(path_);
    EXPECT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(socket.get(), 5), 0);
    return socket;
  }
  static std::string received(const Fd& reader) {
    std::string text;
    std::array<char, 65536> space{};
    for (;;) {
      const ssize_t got = ::recv(reader.get(), space.data(), space.size(), MSG_DONTWAIT);
      if (got <= 0) return text;
      text.append(space.data(), static_cast<std::size_t>(got));
    }
  }

  std::string folder_, path_;
  Clock::time_point now_ = Clock::now();
  std::uint64_t written_ = 0, dropped_ = 0;
};

TEST_F(QueryLogSinkTest, AppendsToAFileThatTheWorldCannotRead) {
  std::ofstream(path_) << "before\n";
  std::filesystem::remove(path_);
  QueryLogSink sink({path_, false});
  write(sink, 2);
  EXPECT_EQ(content(path_), std::string(kLine) + std::string(kLine));
  struct stat status{};
  ASSERT_EQ(::stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07U, 0U);
  QueryLogSink next({path_, false});
  write(next);
  EXPECT_EQ(written_, 3U);
  EXPECT_EQ(content(path_).size(), 3 * kLine.size()) << "a restart keeps the lines";
}

TEST_F(QueryLogSinkTest, ARotatedFileIsLeftForANewOneWithinASecond) {
  QueryLogSink sink({path_, false});
  write(sink);
  std::filesystem::rename(path_, path_ + ".1");
  write(sink);
  EXPECT_EQ(content(path_ + ".1").size(), 2 * kLine.size()) << "no look so soon";
  now_ += QueryLogSink::kPause;
  write(sink);
  EXPECT_EQ(content(path_), kLine);
  std::filesystem::remove(path_ + ".1");
  std::filesystem::rename(path_, path_ + ".1");
  std::ofstream(path_).flush();  // as logrotate's "create" makes it
  now_ += QueryLogSink::kPause;
  write(sink);
  EXPECT_EQ(content(path_), kLine);
  EXPECT_EQ(written_, 4U);
  EXPECT_EQ(dropped_, 0U);
}

TEST_F(QueryLogSinkTest, ATruncatedFileGoesOnAtItsBeginning) {
  QueryLogSink sink({path_, false});
  write(sink, 3);
  std::filesystem::resize_file(path_, 0);  // logrotate's "copytruncate"
  write(sink);
  EXPECT_EQ(content(path_), kLine);
}

TEST_F(QueryLogSinkTest, AFullDiskCostsLinesAndLeavesNoPartOfOne) {
  QueryLogSink sink({path_, false});
  write(sink);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit full = before;
  full.rlim_cur = 3 * kLine.size() + 3;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &full), 0);
  write(sink, 5);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(content(path_).size(), 3 * kLine.size());
  EXPECT_EQ(written_, 3U);
  EXPECT_EQ(dropped_, 3U);
  write(sink);
  EXPECT_EQ(dropped_, 4U) << "a pause comes first";
  now_ += QueryLogSink::kPause;
  write(sink);
  EXPECT_EQ(content(path_).size(), 4 * kLine.size());
}

TEST_F(QueryLogSinkTest, OnlyRegularFilesAreWritten) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  QueryLogSink fifo({path_, false});
  write(fifo);
  QueryLogSink folder({folder_, false});
  write(folder);
  QueryLogSink device({"/dev/null", false});
  write(device);
  QueryLogSink nowhere({folder_ + "/none/x", false});
  write(nowhere);
  EXPECT_EQ(written_, 0U);
  EXPECT_EQ(dropped_, 4U);
}

TEST_F(QueryLogSinkTest, AReaderGetsLinesAndTheNextReaderTheNextOnes) {
  Fd listening = listen();
  QueryLogSink sink({path_, true});
  write(sink);
  Fd reader(::accept(listening.get(), nullptr, nullptr));
  EXPECT_EQ(received(reader), kLine);
  reader.reset();
  write(sink);
  Fd next(::accept(listening.get(), nullptr, nullptr));
  EXPECT_EQ(received(next), kLine) << "a new reader gets it at once";
  EXPECT_EQ(written_, 2U);
  EXPECT_EQ(dropped_, 0U);
}

TEST_F(QueryLogSinkTest, AnAbsentReaderCostsLinesUntilItIsThere) {
  QueryLogSink sink({path_, true});
  write(sink, 2);
  EXPECT_EQ(dropped_, 2U);
  const Fd listening = listen();
  now_ += QueryLogSink::kPause;
  write(sink);
  EXPECT_EQ(written_, 1U);
}

TEST_F(QueryLogSinkTest, AReaderThatStallsCostsWholeLinesOnly) {
  const Fd listening = listen();
  QueryLogSink sink({path_, true});
  constexpr std::uint64_t kLines = 400'000;  // 3 MB
  for (std::uint64_t i = 0; i < kLines / 1000; ++i) write(sink, 1000);
  EXPECT_GT(dropped_, 0U);
  EXPECT_GE(sink.waits_for(), 0);
  Fd reader(::accept(listening.get(), nullptr, nullptr));
  std::string text;
  for (std::string more = received(reader); !more.empty(); more = received(reader)) {
    text += more;
    write(sink, 0);
  }
  EXPECT_EQ(written_ + dropped_, kLines);
  EXPECT_EQ(text.size(), written_ * kLine.size());
  EXPECT_EQ(sink.waits_for(), -1);
}

}  // namespace query_log_sink_test
}  // namespace pando::manager
