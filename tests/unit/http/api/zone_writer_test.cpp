#include "http/api/zone_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <filesystem>
#include <functional>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/bytes.h"
#include "ipc/control.h"
#include "ipc/control_json.h"
#include "ipc/packet_socket.h"

namespace pando::http {
namespace zone_writer_test {

using ipc::ControlRequest;
using nlohmann::json;
using Kind = RRsetChange::Kind;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

/// A manager that answers each request by a function, on a socket of its own.
class FakeManager {
 public:
  using Answer = std::function<Result<json>(const ControlRequest&)>;
  explicit FakeManager(Answer answer) : answer_(std::move(answer)) {
    folder_ = std::filesystem::temp_directory_path() / fmt::format("pando-writer-{}", ::getpid());
    std::filesystem::create_directory(folder_);
    listening_ = Fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = (folder_ / ipc::kControlSocketName).string();
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    EXPECT_EQ(::bind(listening_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(listening_.get(), 4), 0);
    thread_ = std::thread([this] { run(); });
  }
  ~FakeManager() {
    ::shutdown(listening_.get(), SHUT_RDWR);
    thread_.join();
    std::filesystem::remove_all(folder_);
  }
  [[nodiscard]] std::string folder() const { return folder_.string(); }

  /// The requests so far, as words.
  [[nodiscard]] std::vector<std::string> asked() {
    const std::scoped_lock lock(asking_);
    return asked_;
  }

 private:
  void run() {
    while (true) {
      const Fd client(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (client.get() < 0) return;
      while (serve(client)) {
      }
    }
  }
  bool serve(const Fd& client) {
    const auto message = ipc::receive_json(client.get(), ipc::kMaxRequestBytes, 30s);
    const auto request = message ? ipc::request_from_json(*message)
                                 : Result<ControlRequest>(tl::unexpected<Error>(message.error()));
    if (!request) return false;
    {
      const std::scoped_lock lock(asking_);
      const std::string zones = request->names.empty() ? request->name : request->names[0];
      asked_.push_back(fmt::format("{} {} {} {} {} {}", request->verb, zones, request->owner,
                                   request->type,
                                   request->ttl == ipc::kAbsent ? "-" : std::to_string(request->ttl),
                                   request->rdata));
    }
    auto result = answer_(*request);
    return static_cast<bool>(ipc::send_json(
        client.get(),
        result ? ipc::ok_reply(std::move(*result)) : ipc::error_reply(result.error()), 30s));
  }

  Answer answer_;
  std::filesystem::path folder_;
  Fd listening_;
  std::mutex asking_;
  std::vector<std::string> asked_;
  std::thread thread_;
};

const dns::Name& zone() {
  static const dns::Name name = dns::Name::from_text("z.").value();
  return name;
}

/// Grants everything; the zone has serial 7.
Result<json> grant(const ControlRequest& request) {
  if (request.verb == ipc::verb::kZoneBegin)
    return json(ipc::TransactionList{{{"z.", 7, 0, 0}}});
  if (request.verb == ipc::verb::kZoneCommit)
    return json(ipc::ZoneCommitResult{{{"z.", 7, 8, 1, 1}}});
  return json::object();
}

RRsetChange a_record(Kind kind) {
  return {kind, dns::Name::from_text("a.z.").value(), dns::RRType::kA, 60, {{192, 0, 2, 1}}};
}

TEST(Writer, MakesOneTransactionOfAllChanges) {
  FakeManager manager(grant);
  const ZoneWriter writer(manager.folder(), "/j");
  RRsetChange gone = a_record(Kind::kDelete);
  gone.rdatas.clear();
  const RRsetChange changes[] = {gone, a_record(Kind::kReplace), a_record(Kind::kExtend),
                                 a_record(Kind::kPrune)};
  const auto done = writer.apply(zone(), changes);
  ASSERT_TRUE(done) << done.error().text;
  EXPECT_EQ(done->to, 8U);
  EXPECT_THAT(manager.asked(),
              ElementsAre("zone-begin z.   - ", "zone-unset z. a.z. A - ",
                          "zone-unset z. a.z. A - ", "zone-set z. a.z. A 60 192.0.2.1",
                          "zone-set z. a.z. A 60 192.0.2.1", "zone-unset z. a.z. A - 192.0.2.1",
                          "zone-commit z.   - "));
}

TEST(Writer, WhatIsAbsentNeedNoRemoval) {
  FakeManager manager([](const ControlRequest& request) -> Result<json> {
    if (request.verb == ipc::verb::kZoneUnset) return fail(Errc::kNotFound, "no A record");
    return grant(request);
  });
  const RRsetChange changes[] = {a_record(Kind::kReplace), a_record(Kind::kPrune)};
  EXPECT_TRUE(ZoneWriter(manager.folder(), "/j").apply(zone(), changes));
}

TEST(Writer, AFaultEndsTheTransaction) {
  for (const std::string_view verb : {ipc::verb::kZoneSet, ipc::verb::kZoneCommit}) {
    FakeManager manager([verb](const ControlRequest& request) -> Result<json> {
      if (request.verb == verb) return fail(Errc::kInvalid, "CNAME beside other data");
      return grant(request);
    });
    const RRsetChange changes[] = {a_record(Kind::kReplace)};
    const auto done = ZoneWriter(manager.folder(), "/j").apply(zone(), changes);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().text, "CNAME beside other data");
    EXPECT_EQ(manager.asked().back(), "zone-abort z.   - ");
  }
}

TEST(Writer, TheTransactionOfSomebodyElseIsLeftAlone) {
  FakeManager manager([](const ControlRequest&) -> Result<json> {
    return fail(Errc::kExists, "z. has an open transaction");
  });
  const auto done = ZoneWriter(manager.folder(), "/j").apply(zone(), {});
  EXPECT_EQ(done.error().code, Errc::kExists);
  EXPECT_EQ(manager.asked().size(), 1U);
}

/// PowerDNS's clients write the serial that they have read, or an old one.
TEST(Writer, ASoaNeverTakesTheSerialBack) {
  for (const auto& [given, expected] : {std::pair{3U, 7U}, std::pair{7U, 7U}, std::pair{9U, 9U}}) {
    FakeManager manager(grant);
    RRsetChange soa{Kind::kReplace, zone(), dns::RRType::kSOA, 60, {Bytes(22)}};
    store_be32(soa.rdatas[0].data() + 2, given);
    ASSERT_TRUE(ZoneWriter(manager.folder(), "/j").apply(zone(), {&soa, 1}));
    EXPECT_THAT(manager.asked(),
                ElementsAre("zone-begin z.   - ",
                            fmt::format("zone-set z. z. SOA 60 . . {} 0 0 0 0", expected),
                            "zone-commit z.   - "));
  }
}

TEST(Writer, ARecordThatTheManagerCannotReadIsNotSent) {
  FakeManager manager(grant);
  RRsetChange large = a_record(Kind::kReplace);
  large.type = dns::RRType{65280};
  large.rdatas = {Bytes(60'000)};
  const auto done = ZoneWriter(manager.folder(), "/j").apply(zone(), {&large, 1});
  if (ipc::kMaxRequestBytes > (256 << 10)) GTEST_SKIP() << "requests have room for all records";
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().text, HasSubstr("is too large"));
}

TEST(Writer, NobodyToTellIsNoError) {
  FakeManager manager([](const ControlRequest&) -> Result<json> {
    return fail(Errc::kInvalid, "z. has no remotes to notify");
  });
  const ZoneWriter writer(manager.folder(), "/j");
  EXPECT_TRUE(writer.notify(zone()));
  EXPECT_EQ(writer.retransfer(zone()).error().code, Errc::kInvalid);
  EXPECT_THAT(manager.asked(), ElementsAre("zone-notify z.   - ", "zone-retransfer z.   - "));
  EXPECT_EQ(ZoneWriter("/nowhere", "/j").notify(zone()).error().code, Errc::kIo);
}

/// The error that a client gets if the manager answers a new zone with `problem`.
std::string told(const Result<std::string>& problem, std::optional<std::size_t> lines_before) {
  FakeManager manager([&](const ControlRequest& request) -> Result<json> {
    if (request.verb != ipc::verb::kZoneAdd) return json::object();
    if (!problem) return tl::unexpected<Error>(problem.error());
    ipc::ReloadResult result;
    result.zones_failed = 1;
    result.problems = {*problem};
    return json(result);
  });
  NewZone made{.name = zone(), .content = "@ SOA x", .primaries = {}};
  made.lines_before = lines_before;
  const Status done = ZoneWriter(manager.folder(), "/j").create(made);
  return done ? "" : done.error().text;
}

TEST(ZoneWriter, TellsLinesOfTheRequestAndNoFileOfTheManagers) {
  EXPECT_EQ(told("z.: /j/zones/z.zone:12: no type", 0), "z.: line 12: no type");
  EXPECT_EQ(told("z.: /j/zones/z.zone:12: no type", std::nullopt), "z.: its content: no type");
  EXPECT_EQ(told("z.: /j/zones/z.zone:12: no type", 2), "z.: line 10: no type");
  EXPECT_EQ(told("z.: /j/zones/z.zone:3: no type", 2), "z.: line 1: no type");
  EXPECT_EQ(told("z.: /j/zones/z.zone:2: no type", 2), "z.: its content: no type");
  EXPECT_EQ(told("z.: /j/zones/z.zone: no SOA", 0), "z.: its content: no SOA");
  EXPECT_EQ(told("z.: /j/zones/z.zone:3: as in /j/zones/z.zone:2", 0), "z.: line 3: as in line 2");
  const auto failed = [](const char* text) {
    return Result<std::string>(tl::unexpected<Error>(Error{Errc::kIo, text}));
  };
  EXPECT_EQ(told(failed("write /j/zones/z.zone.partial: full"), 0), "write its content: full");
  EXPECT_EQ(told(failed("write /j/zones/z.zone, 9 bytes: full"), 0),
            "write its content, 9 bytes: full");
  EXPECT_EQ(told("z.: /j/zones/z.zone:1: no type /journal", 0), "z.: line 1: no type /journal");
  EXPECT_EQ(told(failed("mkdir /j/zones: full"), 0), "mkdir the manager's folder/zones: full");
  EXPECT_EQ(told(failed("z. exists"), 0), "z. exists");
}

}  // namespace zone_writer_test
}  // namespace pando::http
