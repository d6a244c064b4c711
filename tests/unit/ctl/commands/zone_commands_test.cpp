#include "ctl/commands/zone_commands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "ipc/control_json.h"

namespace pando::ctl {
namespace zone_commands_test {

using ipc::ControlRequest;
using nlohmann::json;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

/// A manager that answers each request by `answer`, and a session with it.
class ZoneCommandsTest : public ::testing::Test {
 protected:
  using Answer = std::function<Result<json>(const ControlRequest&)>;

  int run(const Answer& answer, const std::function<int(ZoneCommands&)>& command,
          bool as_json = false) {
    int fds[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0) std::abort();
    std::thread manager([&, server = Fd{fds[1]}] { serve(server, answer); });
    std::ostringstream out;
    std::ostringstream err;
    int code = -1;
    {
      Session session(Fd{fds[0]}, {out, err, as_json}, 30s);
      ZoneCommands commands(session);
      code = command(commands);
    }
    manager.join();
    out_ = out.str();
    err_ = err.str();
    return code;
  }
  /// Says that all was done.
  static Result<json> done(const ControlRequest& request) {
    ipc::ReloadResult result;
    result.zones_added = request.zones.size();
    result.zones_removed = request.names.size();
    result.zones_changed = request.key.empty() ? 0 : 1;
    return json(result);
  }

  std::vector<ControlRequest> requests_;
  std::string out_;
  std::string err_;

 private:
  void serve(const Fd& fd, const Answer& answer) {
    while (true) {
      const auto message = ipc::receive_json(fd.get(), ipc::kMaxRequestBytes, 30s);
      if (!message) return;
      const auto request = ipc::request_from_json(*message);
      if (!request) return;
      requests_.push_back(*request);
      auto result = answer(*request);
      const json reply =
          result ? ipc::ok_reply(std::move(*result)) : ipc::error_reply(result.error());
      if (!ipc::send_json(fd.get(), reply, 30s)) return;
    }
  }
};

TEST_F(ZoneCommandsTest, AddSendsAnObjectAsInTheConfiguration) {
  const int code = run(done, [](ZoneCommands& zones) {
    return zones.add(
        {"Example.COM", "x.zone", "customers", {"a", "b"}, {"notify=[\"c\"]", "k=v=w"}});
  });
  EXPECT_EQ(code, kDone);
  EXPECT_EQ(out_, "1 zone added\n");
  ASSERT_EQ(requests_.size(), 1U);
  EXPECT_EQ(requests_[0].verb, "zone-add");
  EXPECT_EQ(json::parse(requests_[0].zones.at(0)),
            json::parse(R"({"name":"Example.COM.","file":"x.zone","template":"customers",
                            "primaries":["a","b"],"notify":["c"],"k":"v=w"})"));
}

TEST_F(ZoneCommandsTest, AddRefusesWordsBeforeItAsks) {
  EXPECT_EQ(run(done, [](ZoneCommands& zones) { return zones.add({"a..b"}); }), kFailed);
  EXPECT_THAT(err_, HasSubstr("a..b"));
  for (const char* word : {"colour", "=blue"}) {
    EXPECT_EQ(
        run(done,
            [&](ZoneCommands& zones) { return zones.add({.name = "a", .settings = {word}}); }),
        kFailed);
    EXPECT_THAT(err_, HasSubstr("is not KEY=VALUE"));
  }
  EXPECT_TRUE(requests_.empty());
}

TEST_F(ZoneCommandsTest, AnArrayIsOneRequestAndALongOneSeveral) {
  json zones = json::array();
  for (int i = 0; i < 30'000; ++i)
    zones.push_back({{"name", fmt::format("zone{}.example.", i)}, {"file", "some.zone"}});
  std::istringstream few(json(std::vector<json>(zones.begin(), zones.begin() + 1000)).dump());
  EXPECT_EQ(run(done, [&](ZoneCommands& commands) { return commands.add_from(few); }), kDone);
  EXPECT_EQ(requests_.size(), 1U);
  requests_.clear();
  std::istringstream many(zones.dump());
  const auto add_many = [&](ZoneCommands& commands) { return commands.add_from(many); };
  EXPECT_EQ(run(done, add_many, true), kDone);
  EXPECT_GE(requests_.size(), 2U);
  EXPECT_LE(requests_.size(), 3U);
  EXPECT_EQ(json::parse(out_)["zones_added"], 30'000) << "one result for all";
}

TEST_F(ZoneCommandsTest, TheFirstErrorOfALongArrayEndsItAndTellsWhatWasAdded) {
  json zones = json::array();
  for (int i = 0; i < 30'000; ++i)
    zones.push_back({{"name", fmt::format("zone{}.example.", i)}, {"file", "some.zone"}});
  std::istringstream many(zones.dump());
  const auto answer = [&](const ControlRequest& request) -> Result<json> {
    if (requests_.size() < 2) return done(request);
    return fail(Errc::kExists, "no");
  };
  EXPECT_EQ(run(answer, [&](ZoneCommands& commands) { return commands.add_from(many); }), kFailed);
  EXPECT_EQ(requests_.size(), 2U);
  EXPECT_THAT(out_, HasSubstr("zones added"));
  EXPECT_THAT(err_, HasSubstr("no"));
}

TEST_F(ZoneCommandsTest, StandardInputThatIsNoArrayIsRefused) {
  for (const char* text : {"", "[]", "{}", "[{", "7"}) {
    std::istringstream input(text);
    EXPECT_EQ(run(done, [&](ZoneCommands& zones) { return zones.add_from(input); }), kFailed);
    EXPECT_THAT(err_, HasSubstr("no JSON array"));
  }
  std::istringstream huge("[{\"name\":\"" + std::string(2'000'000, 'x') + "\"}]");
  EXPECT_EQ(run(done, [&](ZoneCommands& zones) { return zones.add_from(huge); }), kFailed);
  EXPECT_THAT(err_, HasSubstr("a zone of 2000"));
  std::istringstream deep(std::string(1'000'000, '[') + std::string(1'000'000, ']'));
  EXPECT_EQ(run(done, [&](ZoneCommands& zones) { return zones.add_from(deep); }), kFailed);
  EXPECT_THAT(err_, HasSubstr("no JSON array"));
  const std::string value = std::string(100'000, '[') + std::string(100'000, ']');
  const auto configure = [&](ZoneCommands& zones) { return zones.configure("a", "notify", value); };
  EXPECT_EQ(run(done, configure), kFailed);
  EXPECT_THAT(err_, HasSubstr("is no JSON, or nested too deep"));
  EXPECT_TRUE(requests_.empty());
}

TEST_F(ZoneCommandsTest, ReloadTellsHowManyZonesChanged) {
  const auto answer = [](const ControlRequest&) -> Result<json> {
    ipc::ReloadResult result;
    result.zones_changed = 1;
    return json(result);
  };
  EXPECT_EQ(run(answer, [](ZoneCommands& zones) { return zones.reload({"a", "b"}); }), kDone);
  EXPECT_EQ(out_, "2 zone files read again, 1 changed\n");
  ASSERT_EQ(requests_.size(), 1U);
  EXPECT_EQ(requests_[0].verb, "zone-reload");
  EXPECT_EQ(requests_[0].names, (std::vector<std::string>{"a", "b"}));
}

TEST_F(ZoneCommandsTest, FilesThatFailAreErrors) {
  const auto answer = [](const ControlRequest&) -> Result<json> {
    ipc::ReloadResult result;
    result.zones_added = 1;
    result.zones_failed = 1;
    result.problems = {"a.: no file"};
    return json(result);
  };
  EXPECT_EQ(run(answer, [](ZoneCommands& zones) { return zones.add({"a"}); }), kFailed);
  EXPECT_EQ(out_, "1 zone added\n");
  EXPECT_EQ(err_, "error: a.: no file\n");
}

TEST_F(ZoneCommandsTest, FilesThatAreStillJudgedAreNoErrors) {
  const auto answer = [](const ControlRequest&) -> Result<json> {
    ipc::ReloadResult result;
    result.zones_being_judged = 1;
    return json(result);
  };
  EXPECT_EQ(run(answer, [](ZoneCommands& zones) { return zones.reload({"a"}); }), kDone);
  EXPECT_EQ(out_,
            "1 zone file read again, 0 changed\n"
            "1 zone still judged by programs: see pandoctl zone status NAME\n");
}

TEST_F(ZoneCommandsTest, ConfigureSendsJsonOrText) {
  const auto value_of = [&](const std::optional<std::string>& word) {
    requests_.clear();
    const auto configure = [&](ZoneCommands& zones) { return zones.configure("a", "k", word); };
    EXPECT_EQ(run(done, configure), kDone);
    return requests_.at(0).value;
  };
  EXPECT_EQ(value_of("[\"x\",1]"), "[\"x\",1]");
  EXPECT_EQ(value_of("text"), "\"text\"");
  EXPECT_EQ(value_of("off"), "\"off\"");
  EXPECT_EQ(value_of(std::nullopt), "");
  EXPECT_EQ(out_, "1 zone configured\n");
}

TEST_F(ZoneCommandsTest, AListThatIsNoJsonIsToldHowItIsWritten) {
  const auto configure = [](ZoneCommands& zones) {
    return zones.configure("a", "notify", "[ns2]");
  };
  EXPECT_EQ(run(done, configure), kFailed);
  EXPECT_THAT(err_, HasSubstr("'[ns2]' is no JSON, or nested too deep; texts in it need quotes"));
  EXPECT_EQ(
      run(done,
          [](ZoneCommands& zones) { return zones.add({.name = "a", .settings = {"notify={x"}}); }),
      kFailed);
  EXPECT_TRUE(requests_.empty());
}

TEST_F(ZoneCommandsTest, RemoveNamesZones) {
  EXPECT_EQ(run(done, [](ZoneCommands& zones) { return zones.remove({"a", "b"}); }), kDone);
  EXPECT_EQ(out_, "2 zones removed\n");
  EXPECT_EQ(requests_.at(0).names, (std::vector<std::string>{"a", "b"}));
}

}  // namespace zone_commands_test
}  // namespace pando::ctl
