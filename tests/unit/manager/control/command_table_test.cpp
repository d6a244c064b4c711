#include "manager/control/command_table.h"

#include <gtest/gtest.h>

namespace pando::manager {
namespace command_table_test {

using nlohmann::json;
using Request = ipc::ControlRequest;

/// The one reply to a request with this verb.
Result<json> run(const CommandTable& table, const std::string& verb) {
  Result<json> answer = fail(Errc::kIo, "no reply");
  int replies = 0;
  table.run({.verb = verb}, [&](Result<json> result) {
    answer = std::move(result);
    ++replies;
  });
  EXPECT_EQ(replies, 1);
  return answer;
}

TEST(CommandTable, RunsTheHandlerOfTheVerb) {
  CommandTable table;
  table.add("first", [](const Request&, const CommandTable::Reply& reply) { reply(json(1)); });
  table.add_query("second", [](const Request& request) -> Result<json> { return request.verb; });
  EXPECT_EQ(run(table, "first").value(), json(1));
  EXPECT_EQ(run(table, "second").value(), json("second"));
}

TEST(CommandTable, GivesAHandlerTheZoneThatIsNamed) {
  CommandTable table;
  table.add_for_zone("zone", [](const dns::Name& zone, const Request&,
                                const CommandTable::Reply& reply) { reply(json(to_text(zone))); });
  const auto ask = [&](const std::string& zone) {
    Result<json> answer = fail(Errc::kIo, "no reply");
    table.run({.verb = "zone", .name = zone}, [&](Result<json> result) { answer = result; });
    return answer;
  };
  EXPECT_EQ(ask("a.example").value(), json("a.example."));
  EXPECT_EQ(ask("a..example").error().code, Errc::kInvalid);
}

TEST(CommandTable, RefusesAnUnknownVerb) {
  const auto answer = run(CommandTable(), "dance");
  ASSERT_FALSE(answer.has_value());
  EXPECT_EQ(answer.error().code, Errc::kUnsupported);
  EXPECT_EQ(answer.error().text, "unknown verb dance");
}

TEST(CommandTable, RefusesARequestWithoutANeededArgument) {
  CommandTable table;
  table.add_query(ipc::verb::kZoneSet, [](const Request&) -> Result<json> { return json(1); });
  Request request{.verb = std::string(ipc::verb::kZoneSet), .name = "a.example"};
  const auto ask = [&] {
    Result<json> answer = fail(Errc::kIo, "no reply");
    table.run(request, [&](Result<json> result) { answer = result; });
    return answer ? "" : answer.error().text;
  };
  EXPECT_EQ(ask(), "zone-set needs 'owner'; its arguments: name owner (type rdata) [ttl]");
  request.owner = "www";
  EXPECT_EQ(ask(), "") << "the command itself checks the rest";
}

TEST(CommandTable, PassesTheErrorOfAQuery) {
  CommandTable table;
  table.add_query(
      "zone", [](const Request&) -> Result<json> { return fail(Errc::kInvalid, "not a name"); });
  const auto answer = run(table, "zone");
  ASSERT_FALSE(answer.has_value());
  EXPECT_EQ(answer.error().code, Errc::kInvalid);
}

TEST(CommandTable, MakesAnEmptyResultOfSuccess) {
  EXPECT_EQ(empty_result({}).value(), json::object());
  const auto failed = empty_result(fail(Errc::kIo, "no disk"));
  ASSERT_FALSE(failed.has_value());
  EXPECT_EQ(failed.error().text, "no disk");
}

}  // namespace command_table_test
}  // namespace pando::manager
