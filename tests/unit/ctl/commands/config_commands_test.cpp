#include "ctl/commands/config_commands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "ipc/control_json.h"

namespace pando::ctl {
namespace config_commands_test {

using ipc::ControlRequest;
using nlohmann::json;
using namespace std::chrono_literals;

/// A manager that answers one request by `answer`, and a session with it.
class ConfigCommandsTest : public ::testing::Test {
 protected:
  int run(Result<json> answer, const std::function<int(ConfigCommands&)>& command) {
    int fds[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0) std::abort();
    std::thread manager([&, server = Fd{fds[1]}] {
      const auto message = ipc::receive_json(server.get(), ipc::kMaxRequestBytes, 30s);
      if (!message) return;
      request_ = ipc::request_from_json(*message).value();
      const json reply =
          answer ? ipc::ok_reply(std::move(*answer)) : ipc::error_reply(answer.error());
      static_cast<void>(ipc::send_json(server.get(), reply, 30s));
    });
    std::ostringstream out;
    std::ostringstream err;
    int code = -1;
    {
      Session session(Fd{fds[0]}, {out, err, false}, 30s);
      ConfigCommands commands(session);
      code = command(commands);
    }
    manager.join();
    out_ = out.str();
    err_ = err.str();
    return code;
  }

  ControlRequest request_;
  std::string out_;
  std::string err_;
};

TEST_F(ConfigCommandsTest, ShowPrintsTheText) {
  const ipc::ConfigShowResult result{"a.test.", "zones:\n  - name: a.test\n"};
  EXPECT_EQ(run(json(result), [](ConfigCommands& c) { return c.show("a.test"); }), kDone);
  EXPECT_EQ(request_.verb, "config-show");
  EXPECT_EQ(request_.name, "a.test");
  EXPECT_EQ(out_, "zones:\n  - name: a.test\n");
}

TEST_F(ConfigCommandsTest, DiffTellsCountsAndRestarts) {
  ipc::ConfigDiffResult result;
  result.settings_changed = 3;
  result.zones_added = 2;
  result.zones_changed = 1;
  result.settings = {{"server.user", "a", "b", "pando-manager"}, {"server.identity", "", "x", ""}};
  result.added = {"new.test."};
  result.changed = {{"old.test.", {{"file", "/a", "/b", ""}}}};
  result.warnings = {"careful"};
  EXPECT_EQ(run(json(result), [](ConfigCommands& c) { return c.diff(2); }), kDone);
  EXPECT_EQ(request_.verb, "config-diff");
  EXPECT_EQ(request_.limit, 2U);
  EXPECT_EQ(out_,
            "server.user: a -> b\n"
            "server.identity: absent -> x\n"
            "... and 1 more settings\n"
            "2 zones added:\n"
            "  new.test.\n"
            "... and 1 more zones\n"
            "1 zone changed:\n"
            "  old.test.\n"
            "    file: /a -> /b\n"
            "server.user waits for a restart of pando-manager\n");
  EXPECT_EQ(err_, "warning: careful\n");
}

TEST_F(ConfigCommandsTest, DiffWithoutChangesSaysSo) {
  EXPECT_EQ(run(json(ipc::ConfigDiffResult{}), [](ConfigCommands& c) { return c.diff(100); }),
            kDone);
  EXPECT_EQ(out_, "a reload would change no setting\n");
}

TEST_F(ConfigCommandsTest, LevelTellsTheConfiguredOneWhenItDiffers) {
  EXPECT_EQ(run(json(ipc::LogLevelResult{"debug", "info"}),
                [](ConfigCommands& c) { return c.log_level("debug"); }),
            kDone);
  EXPECT_EQ(request_.level, "debug");
  EXPECT_EQ(out_, "debug until a reload or a restart, then info\n");
  EXPECT_EQ(run(json(ipc::LogLevelResult{"info", "info"}),
                [](ConfigCommands& c) { return c.log_level(""); }),
            kDone);
  EXPECT_EQ(out_, "info\n");
}

TEST_F(ConfigCommandsTest, RefusalsGiveTheReason) {
  EXPECT_EQ(run(fail(Errc::kInvalid, "p.yaml:3: server.foo: unknown key"),
                [](ConfigCommands& c) { return c.diff(100); }),
            kFailed);
  EXPECT_EQ(err_, "pandoctl: p.yaml:3: server.foo: unknown key\n");
}

}  // namespace config_commands_test
}  // namespace pando::ctl
