#include "ctl/commands/record_commands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "ipc/control_json.h"

namespace pando::ctl {
namespace record_commands_test {

using ipc::ControlRequest;
using nlohmann::json;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

struct Outcome {
  int code = -1;
  std::string out;
  std::string err;
  std::vector<ControlRequest> requests;
};

/// Runs a command against a manager that gives one result after the other, in a thread.
Outcome run(std::vector<json> results, const std::function<int(RecordCommands&)>& command,
            bool as_json = false) {
  int fds[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0) std::abort();
  Outcome outcome;
  std::thread manager([&outcome, results = std::move(results), server = Fd{fds[1]}]() mutable {
    for (json& result : results) {
      const auto message = ipc::receive_json(server.get(), ipc::kMaxRequestBytes, 30s);
      if (!message) break;
      outcome.requests.push_back(ipc::request_from_json(*message).value());
      if (!ipc::send_json(server.get(), ipc::ok_reply(std::move(result)), 30s)) break;
    }
    server.reset();
  });
  std::ostringstream out;
  std::ostringstream err;
  {
    Session session(Fd{fds[0]}, {out, err, as_json}, 30s);
    RecordCommands records(session);
    outcome.code = command(records);
  }
  manager.join();
  outcome.out = out.str();
  outcome.err = err.str();
  return outcome;
}

ipc::ZoneReadResult page(std::uint32_t serial, std::string owner, std::string next) {
  return {"example.", serial, {{std::move(owner), 60, "A", "192.0.2.1"}}, std::move(next)};
}

TEST(RecordCommands, AllPagesAreReadAndPrintedAsLines) {
  const auto outcome = run({page(1, "a.example.", "0 1 a"), page(1, "b.example.", "")},
                           [](auto& records) { return records.read("Example", "", "A"); });
  EXPECT_EQ(outcome.code, kDone);
  EXPECT_EQ(outcome.out, "a.example. 60 IN A 192.0.2.1\nb.example. 60 IN A 192.0.2.1\n");
  ASSERT_EQ(outcome.requests.size(), 2U);
  EXPECT_EQ(outcome.requests[0].name, "Example.");
  EXPECT_EQ(outcome.requests[0].type, "A");
  EXPECT_EQ(outcome.requests[1].after, "0 1 a");
}

TEST(RecordCommands, PagesAreOneJsonValue) {
  const auto outcome = run({page(1, "a.example.", "x"), page(1, "b.example.", "")},
                           [](auto& records) { return records.read("example", "", ""); }, true);
  const json all = json::parse(outcome.out);
  EXPECT_EQ(all["records"].size(), 2U);
  EXPECT_EQ(all["serial"], 1);
  EXPECT_EQ(all["next"], "");
}

TEST(RecordCommands, AZoneThatChangesBetweenPagesIsNoZone) {
  const auto outcome = run({page(1, "a.example.", "x"), page(2, "b.example.", "")},
                           [](auto& records) { return records.read("example", "", ""); });
  EXPECT_EQ(outcome.code, kFailed);
  EXPECT_THAT(outcome.err, HasSubstr("changed from serial 1 to 2 while it was read"));
}

TEST(RecordCommands, ADifferenceHasSigns) {
  const ipc::ZoneDiffResult diff{"example.", 1, 2, {{"a.example.", 60, "A", "192.0.2.1"}},
                                 {{"b.example.", 60, "A", "192.0.2.2"}}, ""};
  const auto outcome =
      run({diff}, [](auto& records) { return records.diff("example", {1}); });
  EXPECT_EQ(outcome.out, "; example. serial 1 to 2\n- a.example. 60 IN A 192.0.2.1\n"
                         "+ b.example. 60 IN A 192.0.2.2\n");
  EXPECT_EQ(outcome.requests[0].serials, std::vector<std::uint32_t>{1});
}

TEST(RecordCommands, ATtlIsToldFromATypeByItsDigit) {
  const auto with = run({json::object()}, [](auto& records) {
    return records.set("example", "www", {"1h", "A", "192.0.2.1"});
  });
  EXPECT_EQ(with.requests[0].ttl, 3600U);
  EXPECT_EQ(with.requests[0].type, "A");
  EXPECT_EQ(with.requests[0].rdata, "192.0.2.1");
  const auto without = run({json::object()}, [](auto& records) {
    return records.set("example", "@", {"MX", "10", "mail"});
  });
  EXPECT_EQ(without.requests[0].ttl, ipc::kAbsent);
  EXPECT_EQ(without.requests[0].rdata, "10 mail");
}

TEST(RecordCommands, ACommitTellsEachZone) {
  const ipc::ZoneCommitResult result{{{"a.", 1, 2, 1, 3}, {"b.", 5, 5}}};
  const auto outcome = run({result}, [](auto& records) { return records.commit({"a", "b"}, 7); });
  EXPECT_EQ(outcome.out, "a.: serial 1 to 2, 1 record removed, 3 added\nb.: nothing to change\n");
  EXPECT_EQ(outcome.requests[0].names, (std::vector<std::string>{"a.", "b."}));
  EXPECT_EQ(outcome.requests[0].if_serial, 7U);
}

TEST(RecordCommands, QuotesThatTheShellTookOffComeBack) {
  EXPECT_EQ(rdata_of_words({"10", "mail"}), "10 mail");
  EXPECT_EQ(rdata_of_words({"two words", "x"}), "\"two words\" x");
  EXPECT_EQ(rdata_of_words({"a;b", "(c)", ""}), "\"a;b\" \"(c)\" \"\"");
  EXPECT_EQ(rdata_of_words({"\"as it is\" x"}), "\"as it is\" x");
}

}  // namespace record_commands_test
}  // namespace pando::ctl
