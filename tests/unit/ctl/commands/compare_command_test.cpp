#include "ctl/commands/compare_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "ipc/control_json.h"

namespace pando::ctl {
namespace compare_command_test {

using ipc::RecordRow;
using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using namespace std::chrono_literals;

const RecordRow kSoa{"example.", 60, "SOA", "ns.example. admin.example. 7 1 2 3 4"};

RecordSet set_of(const std::vector<RecordRow>& rows) {
  RecordSet records(dns::Name::from_text("example.").value());
  for (const RecordRow& row : rows) EXPECT_TRUE(records.add(row));
  records.finish();
  return records;
}

TEST(Comparison, ADifferenceOfSerialsOrRecordsIsOne) {
  EXPECT_TRUE(compare_sets(set_of({kSoa}), set_of({kSoa}), 10).is_same());
  RecordRow other = kSoa;
  other.rdata = "ns.example. admin.example. 8 1 2 3 4";
  const ComparedZone serials = compare_sets(set_of({kSoa}), set_of({other}), 10);
  EXPECT_FALSE(serials.is_same());
  EXPECT_EQ(serials.serial, 7U);
  EXPECT_EQ(serials.serial_there, 8U);
  EXPECT_EQ(serials.missing_here + serials.missing_there, 0U);
  const RecordRow address{"a.example.", 60, "A", "192.0.2.1"};
  const ComparedZone more = compare_sets(set_of({kSoa, address}), set_of({kSoa}), 10);
  EXPECT_FALSE(more.is_same());
  EXPECT_THAT(more.only_here, ::testing::ElementsAre(address));
  EXPECT_THAT(more.only_there, ::testing::IsEmpty());
}

/// Runs the command against a manager that gives one result after the other, and a server that is
/// not there.
struct Outcome {
  int code = -1;
  std::string out;
  std::string err;
};
Outcome run(std::vector<json> results, std::vector<std::string> zones, bool as_json = false) {
  int fds[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0) std::abort();
  std::thread manager([results = std::move(results), server = Fd{fds[1]}]() mutable {
    for (json& result : results) {
      if (!ipc::receive_json(server.get(), ipc::kMaxRequestBytes, 30s)) break;
      if (!ipc::send_json(server.get(), ipc::ok_reply(std::move(result)), 30s)) break;
    }
  });
  std::ostringstream out;
  std::ostringstream err;
  Outcome outcome;
  {
    Session session(Fd{fds[0]}, {out, err, as_json}, 30s);
    ComparisonWords words{std::move(zones), {}, 10};
    words.server.at = {IpAddress::from_text("127.0.0.1").value(), 1};
    words.server.timeout = 20s;
    outcome.code = compare(session, words);
  }
  manager.join();
  outcome.out = out.str();
  outcome.err = err.str();
  return outcome;
}

TEST(Comparison, AZoneThatCannotBeComparedIsTold) {
  const ipc::ZoneReadResult page{"example.", 7, {kSoa}, ""};
  const auto outcome = run({page}, {"example"});
  EXPECT_EQ(outcome.code, kFailed);
  EXPECT_THAT(outcome.out, StartsWith("example: not compared: 127.0.0.1@1: "));
  const json all = json::parse(run({page}, {"example"}, true).out);
  EXPECT_EQ(all["different"], 1);
  EXPECT_THAT(all["zones"][0]["error"].get<std::string>(), HasSubstr("refused"));
}

TEST(Comparison, AZoneThatAlwaysChangesIsGivenUp) {
  std::vector<json> pages;
  for (std::uint32_t serial = 1; serial <= 10; ++serial)
    pages.push_back(ipc::ZoneReadResult{"example.", serial, {kSoa}, "next" + std::to_string(serial)});
  EXPECT_THAT(run(pages, {"example"}).out, HasSubstr("changed while it was read, 5 times"));
}

TEST(Comparison, WithoutNamesAllServedZonesAreCompared) {
  ipc::ZoneListResult list;
  list.zones = {{.name = "example.", .state = "ok"}, {.name = "gone.", .state = "removed"}};
  const auto outcome = run({list, ipc::ZoneReadResult{"example.", 7, {kSoa}, ""}}, {});
  EXPECT_THAT(outcome.out, HasSubstr("0 zones the same, 1 not\n")) << "with one zone, too";
  EXPECT_THAT(outcome.out, ::testing::Not(HasSubstr("gone.")));
}

TEST(Comparison, AKeyComesFromTheConfiguration) {
  const std::string path = ::testing::TempDir() + "compare_command_test.yaml";
  std::ofstream(path) << "keys:\n  - {name: one, algorithm: hmac-sha256, secret: MTIzNDU2Nzg5MDEy"
                         "MzQ1Njc4OTAxMjM0NTY3ODkwMTI=}\n";
  dns::TsigKeyring keyring;
  const auto one = key_of_configuration(path, "ONE.", keyring);
  ASSERT_TRUE(one) << one.error().text;
  EXPECT_NE(*one, nullptr);
  const auto two = key_of_configuration(path, "two", keyring);
  ASSERT_FALSE(two);
  EXPECT_THAT(two.error().text, HasSubstr("has no key two"));
}

}  // namespace compare_command_test
}  // namespace pando::ctl
