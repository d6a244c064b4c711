#include "manager/net/query_log_lender.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <thread>

namespace pando::manager {
namespace query_log_lender_test {

class QueryLogLenderTest : public ::testing::Test {
 protected:
  QueryLogLenderTest() {
    char pattern[] = "/tmp/pando-query-log-XXXXXX";
    folder_ = ::mkdtemp(pattern);
  }
  ~QueryLogLenderTest() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] std::string path(const std::string& name = "a") const {
    return folder_ + "/" + name;
  }
  [[nodiscard]] QueryLogOptions options(const std::string& name = "a",
                                        std::uint32_t sample = 1) const {
    return {{path(name), false}, {true, sample}};
  }
  QueryLogLender::Calls calls() {
    QueryLogLender::Calls made;
    made.tell = [this](std::uint32_t slot, const ipc::QueryLog& what, Fd stream) {
      if (!workers_.contains(slot)) return false;
      told_.push_back(what);
      if (stream || !what.on) workers_[slot] = std::move(stream);
      return true;
    };
    made.serving = [this] {
      std::vector<std::uint32_t> slots;
      for (const auto& [slot, stream] : workers_) slots.push_back(slot);
      return slots;
    };
    return made;
  }
  void send(std::uint32_t slot, std::string_view text) {
    ASSERT_TRUE(workers_.at(slot));
    ASSERT_EQ(::send(workers_.at(slot).get(), text.data(), text.size(), 0),
              static_cast<ssize_t>(text.size()));
  }
  static std::string content(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }
  static bool wait_until(const std::function<bool()>& done) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!done()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return true;
  }

  std::string folder_;
  std::map<std::uint32_t, Fd> workers_;  ///< their streams
  std::vector<ipc::QueryLog> told_;
};

TEST_F(QueryLogLenderTest, LinesOfAllWorkersComeToTheFile) {
  QueryLogLender lender(options(), calls());
  workers_[0] = Fd();
  workers_[3] = Fd();
  lender.worker_came(0);
  lender.worker_came(3);
  send(0, "{\"a\":0}\n{\"b\"");
  send(3, "{\"a\":3}\n");
  send(0, ":0}\n");
  EXPECT_TRUE(wait_until([&] { return lender.counters().written == 3; }));
  const std::string text = content(path());
  for (const char* line : {"{\"a\":0}\n", "{\"b\":0}\n", "{\"a\":3}\n"})
    EXPECT_NE(text.find(line), std::string::npos) << text;
}

TEST_F(QueryLogLenderTest, OneWorkersGarbageComesNowhereAndHarmsNoOther) {
  QueryLogLender lender(options(), calls());
  workers_[0] = Fd();
  workers_[1] = Fd();
  lender.worker_came(0);
  lender.worker_came(1);
  send(0, "\x1b[2Jhello\n{\"cut");
  send(1, "{\"a\":1}\n");
  EXPECT_TRUE(wait_until([&] {
    return lender.counters().written == 1 && lender.counters().unwritten == 1;
  }));
  EXPECT_EQ(content(path()), "{\"a\":1}\n");
}

TEST_F(QueryLogLenderTest, ASlotsNextWorkerHasAStreamOfItsOwn) {
  QueryLogLender lender(options(), calls());
  workers_[0] = Fd();
  lender.worker_came(0);
  const Fd former = std::move(workers_[0]);
  ASSERT_EQ(::send(former.get(), "{\"a\":1}\n{\"cut", 13, 0), 13);
  workers_[0] = Fd();
  lender.worker_came(0);
  send(0, "{\"a\":2}\n");
  EXPECT_TRUE(wait_until([&] { return lender.counters().written == 2; }));
  EXPECT_EQ(content(path()), "{\"a\":1}\n{\"a\":2}\n");
  EXPECT_TRUE(wait_until([&] { return ::send(former.get(), "{}\n", 3, MSG_NOSIGNAL) < 0; }))
      << "nobody reads the former stream";
}

TEST_F(QueryLogLenderTest, AnotherPathNeedsNoOtherStream) {
  QueryLogLender lender(options(), calls());
  workers_[0] = Fd();
  lender.worker_came(0);
  send(0, "{\"a\":1}\n");
  ASSERT_TRUE(wait_until([&] { return lender.counters().written == 1; }));
  const int stream = workers_[0].get();
  lender.set(options("b", 7));
  EXPECT_EQ(workers_[0].get(), stream);
  EXPECT_EQ(told_.back(), (ipc::QueryLog{true, 7}));
  send(0, "{\"a\":2}\n");
  ASSERT_TRUE(wait_until([&] { return lender.counters().written == 2; }));
  EXPECT_EQ(content(path("b")), "{\"a\":2}\n");
}

TEST_F(QueryLogLenderTest, SwitchedOffItTakesTheLastLinesAndSwitchedOnItLendsAgain) {
  QueryLogLender lender(std::nullopt, calls());
  workers_[0] = Fd();
  lender.worker_came(0);
  EXPECT_FALSE(told_.back().on);
  EXPECT_FALSE(workers_[0]);
  lender.set(options());
  ASSERT_TRUE(workers_[0]);
  send(0, "{\"a\":1}\n");
  lender.set(std::nullopt);
  EXPECT_FALSE(told_.back().on);
  EXPECT_TRUE(wait_until([&] { return lender.counters().written == 1; }));
  lender.set(options("b"));
  ASSERT_TRUE(workers_[0]);
  send(0, "{\"a\":2}\n");
  EXPECT_TRUE(wait_until([&] { return content(path("b")) == "{\"a\":2}\n"; }));
}

TEST_F(QueryLogLenderTest, TheLastLinesAreWrittenWhenTheManagerEnds) {
  {
    QueryLogLender lender(options(), calls());
    workers_[0] = Fd();
    lender.worker_came(0);
    send(0, "{\"a\":1}\n");
  }
  EXPECT_EQ(content(path()), "{\"a\":1}\n");
}

}  // namespace query_log_lender_test
}  // namespace pando::manager
