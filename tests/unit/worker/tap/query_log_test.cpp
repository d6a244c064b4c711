#include "worker/tap/query_log.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <utility>

namespace pando::worker {
namespace query_log_test {

const Bytes kQuery{0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 'a', 0, 0, 1, 0, 1};

class QueryLogTest : public ::testing::Test {
 protected:
  /// A new stream for the log; its other end is the manager's.
  Fd stream() {
    std::array<int, 2> pair{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()), 0);
    manager_ = Fd(pair[1]);
    return Fd(pair[0]);
  }
  void write(int count = 1) {
    for (int i = 0; i < count; ++i) log_.write({}, ExchangeEnd::kDropped, kQuery, {}, {});
  }
  void read() {
    std::array<char, 65536> space{};
    for (;;) {
      const ssize_t got = ::recv(manager_.get(), space.data(), space.size(), MSG_DONTWAIT);
      if (got <= 0) return;
      received_.append(space.data(), static_cast<std::size_t>(got));
    }
  }
  [[nodiscard]] std::uint64_t lines() const {
    return static_cast<std::uint64_t>(std::count(received_.begin(), received_.end(), '\n'));
  }
  bool run_until(const std::function<bool()>& done) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!done()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      io_.restart();
      io_.run_one_for(std::chrono::milliseconds(5));
      read();
    }
    return true;
  }

  asio::io_context io_;
  std::uint64_t sent_ = 0, dropped_ = 0;
  Fd manager_;
  std::string received_;
  QueryLog log_{io_, [this](std::uint64_t lines, std::uint64_t dropped) {
                  sent_ += lines;
                  dropped_ += dropped;
                }};
};

TEST_F(QueryLogTest, IsOffAtFirst) {
  EXPECT_FALSE(log_.on());
  write();
  EXPECT_EQ(dropped_, 0U);
}

TEST_F(QueryLogTest, LinesGoToTheManager) {
  log_.set({true, 1}, stream());
  write(3);
  log_.answers_sent();
  EXPECT_TRUE(run_until([&] { return lines() == 3; }));
  EXPECT_EQ(sent_, 3U);
  EXPECT_TRUE(received_.starts_with("{\"time\":"));
}

TEST_F(QueryLogTest, OneRequestInNIsInTheSample) {
  log_.set({true, 10}, stream());
  int taken = 0;
  for (int i = 0; i < 100; ++i) taken += log_.takes(kQuery) ? 1 : 0;
  EXPECT_EQ(taken, 10);
  log_.set({true, 0}, {});
  EXPECT_TRUE(log_.takes(kQuery)) << "0 never comes; it would mean all";
}

TEST_F(QueryLogTest, ResponsesAndFragmentsAreNoRequests) {
  log_.set({true, 1}, stream());
  Bytes response = kQuery;
  response[2] = 0x80;
  EXPECT_FALSE(log_.takes(response));
  EXPECT_FALSE(log_.takes(ByteView(kQuery).first(11)));
  EXPECT_FALSE(log_.takes({}));
}

TEST_F(QueryLogTest, WithoutAManagerLinesAreDroppedAndCounted) {
  log_.set({true, 1}, stream());
  manager_.reset();
  EXPECT_TRUE(run_until([&] {
    const std::uint64_t before = dropped_;
    write();
    return dropped_ > before;
  }));
  EXPECT_TRUE(log_.on());
  log_.set({true, 1}, stream());
  write();
  EXPECT_TRUE(run_until([&] { return lines() == 1; })) << "the next manager lends a stream";
}

TEST_F(QueryLogTest, AManagerThatDoesNotReadCostsWholeLinesOnly) {
  log_.set({true, 1}, stream());
  constexpr std::uint64_t kLines = 10'000;
  for (std::uint64_t i = 0; i < kLines; ++i) {
    write();
    log_.answers_sent();
  }
  EXPECT_GT(dropped_, 0U);
  ASSERT_TRUE(run_until([&] { return sent_ + dropped_ == kLines; }));
  read();
  EXPECT_EQ(lines(), sent_);
  EXPECT_TRUE(received_.ends_with("}\n"));
}

TEST_F(QueryLogTest, WhenItIsSwitchedOffTheLastLinesGoOut) {
  log_.set({true, 1}, stream());
  write(2);
  log_.set({}, {});
  read();
  EXPECT_EQ(lines(), 2U);
  std::uint8_t octet = 0;
  EXPECT_EQ(::recv(manager_.get(), &octet, 1, MSG_DONTWAIT), 0) << "the stream has ended";
}

}  // namespace query_log_test
}  // namespace pando::worker
