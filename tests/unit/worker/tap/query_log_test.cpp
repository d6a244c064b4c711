#include "worker/tap/query_log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/unit/worker/tap/lent_stream.h"

namespace pando::worker {
namespace query_log_test {

const Bytes kQuery{0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 'a', 0, 0, 1, 0, 1};

class QueryLogTest : public LentStreamTest {
 protected:
  void write(int count = 1) {
    for (int i = 0; i < count; ++i) log_.write({}, ExchangeEnd::kDropped, kQuery, {}, {});
  }
  [[nodiscard]] std::string text() const { return {received_.begin(), received_.end()}; }
  [[nodiscard]] std::uint64_t lines() const {
    return static_cast<std::uint64_t>(std::count(received_.begin(), received_.end(), '\n'));
  }

  QueryLog log_{io_,
                [this](std::uint64_t lines, std::uint64_t dropped) { count(lines, dropped); }};
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
  EXPECT_TRUE(text().starts_with("{\"time\":"));
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
  reader_.reset();
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
  EXPECT_TRUE(text().ends_with("}\n"));
}

TEST_F(QueryLogTest, WhenItIsSwitchedOffTheLastLinesGoOut) {
  log_.set({true, 1}, stream());
  write(2);
  log_.set({}, {});
  read();
  EXPECT_EQ(lines(), 2U);
  EXPECT_TRUE(has_stream_ended());
}

}  // namespace query_log_test
}  // namespace pando::worker
