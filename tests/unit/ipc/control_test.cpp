#include "ipc/control.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <nlohmann/json.hpp>
#include <thread>

namespace pando::ipc {
namespace control_test {

using nlohmann::json;
using testing::HasSubstr;
using namespace std::chrono_literals;

constexpr auto kTimeout = 30s;

struct SocketPair {
  SocketPair() {
    int fds[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0) std::abort();
    client = Fd(fds[0]);
    server = Fd(fds[1]);
  }
  Fd client;
  Fd server;
};

TEST(ControlRequest, SurvivesTheTripThroughJson) {
  const ControlRequest request{
      "zone-list", "example.com.", "before-monday", "/x.zone", "example.net.", 7, 3};
  const auto again = request_from_json(request_to_json(request));
  ASSERT_TRUE(again) << again.error().text;
  EXPECT_EQ(*again, request);
}

TEST(ControlRequest, MayLeaveOutItsArguments) {
  const auto request = request_from_json(json{{"verb", "status"}});
  ASSERT_TRUE(request);
  EXPECT_EQ(*request, ControlRequest{.verb = "status"});
}

TEST(ControlRequest, IsRefusedWithoutVerbOrWithWrongTypes) {
  for (const char* text :
       {"{}", "[]", "7", R"({"verb":7})", R"({"verb":"status","args":[]})",
        R"({"verb":"x","args":{"count":-1}})", R"({"verb":"x","args":{"count":4294967296}})",
        R"({"verb":"x","args":{"name":null}})", R"({"verb":"x","args":{"limit":1e300}})",
        R"({"verb":"x","args":{"limit":1.5}})"})
    EXPECT_FALSE(request_from_json(json::parse(text))) << text;
}

TEST(ControlRequest, MayBeNestedAsDeepAsAMessageIsLong) {
  const std::string open(30'000, '['), close(30'000, ']');
  const auto request =
      request_from_json(json::parse(R"({"verb":"x","args":)" + open + close + "}"));
  EXPECT_FALSE(request);
}

TEST(ControlRequest, KeepsZonesAndValuesThatAreAnyJson) {
  ControlRequest request{.verb = "zone-add"};
  request.zones = {R"({"file":"x","name":"a."})", R"("not an object")"};
  request.key = "notify";
  request.value = R"(["ns1",2])";
  const auto again = request_from_json(request_to_json(request));
  ASSERT_TRUE(again) << again.error().text;
  EXPECT_EQ(*again, request);
}

TEST(ControlRequest, TakesNoValuesThatAreNestedDeep) {
  const auto nested = [](std::string_view member, std::size_t depth) {
    const std::string open(depth, '['), close(depth, ']');
    return request_from_json(json::parse(
        fmt::format(R"({{"verb":"x","args":{{"{}":{}{}}}}})", member, open, close)));
  };
  for (const char* member : {"zones", "value"}) {
    EXPECT_TRUE(nested(member, 8)) << member;
    EXPECT_FALSE(nested(member, 9)) << member;
    EXPECT_FALSE(nested(member, 100'000)) << member;
  }
  EXPECT_FALSE(request_from_json(json::parse(R"({"verb":"x","args":{"zones":{}}})")));
}

TEST(ControlRequest, TakesSerialsOf32BitsOnly) {
  const auto with = [](std::string_view verb, const json& serial) {
    return request_from_json({{"verb", verb}, {"args", {{"if_serial", serial}}}});
  };
  for (const std::string_view verb : {"zone-begin", "zone-commit"}) {
    EXPECT_EQ(with(verb, 4294967295U)->if_serial, 4294967295U);
    for (const json& wrong : {json(4294967296U), json(UINT64_MAX), json(-1)}) {
      const auto refused = with(verb, wrong);
      ASSERT_FALSE(refused) << verb << " " << wrong;
      EXPECT_THAT(refused.error().text, HasSubstr("if_serial: " + wrong.dump() + " is no serial"));
    }
  }
  EXPECT_EQ(with("status", UINT64_MAX)->if_serial, kAbsent) << "as clients of 0.1.0 send it";
  ControlRequest absent;
  absent.verb = "zone-begin";
  EXPECT_EQ(request_from_json(request_to_json(absent)).value(), absent);
}

TEST(ControlRequest, HasItsPageLimitClamped) {
  EXPECT_EQ(request_from_json(json::parse(R"({"verb":"x","args":{"limit":0}})"))->limit, 1U);
  EXPECT_EQ(request_from_json(json::parse(R"({"verb":"x","args":{"limit":5000000}})"))->limit,
            kZonePageRows);
}

TEST(ControlReply, CarriesResultOrError) {
  EXPECT_EQ(take_result(ok_reply({{"a", 1}})).value(), (json{{"a", 1}}));
  const auto error = take_result(error_reply({Errc::kNotFound, "no zone a."}));
  ASSERT_FALSE(error);
  EXPECT_EQ(error.error().code, Errc::kNotFound);
  EXPECT_EQ(error.error().text, "no zone a.");
}

TEST(ControlReply, OfAnotherShapeIsAnError) {
  for (const char* text : {"[]", "{}", R"({"ok":"yes"})", R"({"ok":false})"})
    EXPECT_FALSE(take_result(json::parse(text))) << text;
}

TEST(ControlReply, OfAnErrorWithoutAReasonSaysSo) {
  const auto error = take_result(json::parse(R"({"ok":false,"code":"not-found","error":""})"));
  ASSERT_FALSE(error);
  EXPECT_EQ(error.error().text, "the manager gives no reason");
}

TEST(ControlPackets, SplitAndAssembleLongMessages) {
  const json message{{"text", std::string(3 * kControlPacketBytes, 'x')}};
  const auto packets = to_packets(message);
  ASSERT_EQ(packets.size(), 4U);
  PacketAssembler assembler(kMaxReplyBytes);
  for (std::size_t i = 0; i < packets.size(); ++i) {
    EXPECT_LE(packets[i].size(), kControlPacketBytes);
    auto result = assembler.feed(packets[i]);
    ASSERT_TRUE(result) << result.error().text;
    ASSERT_EQ(result->has_value(), i + 1 == packets.size());
    if (*result) {
      EXPECT_EQ(**result, message);
    }
  }
}

TEST(ControlPackets, AMessageThatFillsItsPacketIsOnePacket) {
  const json exact = std::string(kControlPacketBytes - 3, 'x');  // with quotes and first byte
  EXPECT_EQ(to_packets(exact).size(), 1U);
  const json longer = std::string(kControlPacketBytes - 2, 'x');
  EXPECT_EQ(to_packets(longer).size(), 2U);
}

TEST(ControlPackets, OctetsThatAreNotUtf8AreReplacedInsteadOfThrowing) {
  const auto packets = to_packets(json{{"text", "\xFF"}});
  ASSERT_EQ(packets.size(), 1U);
  EXPECT_EQ(packets[0], ".{\"text\":\"\xEF\xBF\xBD\"}");
}

TEST(ControlPackets, GiveTheTextOfOneMessageAfterTheOther) {
  PacketAssembler assembler(100);
  EXPECT_EQ(assembler.feed_text("+no ").value(), std::nullopt);
  EXPECT_EQ(assembler.feed_text(".JSON").value(), "no JSON");
  EXPECT_EQ(assembler.feed_text(".{}").value(), "{}");
}

TEST(ControlPackets, RefusesGarbage) {
  for (const char* packet : {"", ".", "+", "x{}", ".{", ".{}}"})
    EXPECT_FALSE(PacketAssembler(100).feed(packet)) << packet;
}

TEST(ControlPackets, RefusesMoreThanTheLimit) {
  PacketAssembler assembler(10);
  EXPECT_TRUE(assembler.feed("+12345678"));
  EXPECT_FALSE(assembler.feed(".901"));
}

TEST(ControlCall, GetsAReplyOfManyPackets) {
  SocketPair pair;
  const json big{{"text", std::string(5 << 20, 'y')}};
  std::thread server([&] {
    auto request = receive_json(pair.server.get(), kMaxRequestBytes, kTimeout);
    EXPECT_TRUE(request && (*request)["verb"] == "status");
    EXPECT_TRUE(send_json(pair.server.get(), ok_reply(big), kTimeout));
  });
  const auto result = call(pair.client.get(), {.verb = "status"}, kTimeout);
  server.join();
  ASSERT_TRUE(result) << result.error().text;
  EXPECT_EQ(*result, big);
}

TEST(ControlCall, SendsARequestOfOneMebibyteAndNoneThatIsLarger) {
  ControlRequest request{.verb = "zone-configure", .name = "a.test."};
  const std::size_t frame = request_to_json(request).dump().size();
  request.rdata = std::string(kMaxRequestBytes - frame + 1, 'x');
  SocketPair pair;
  const auto refused = call(pair.client.get(), request, kTimeout);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::kFull);
  EXPECT_EQ(refused.error().text, "the request is larger than 1 MiB, with 1048577 bytes");
  request.rdata.pop_back();
  std::thread server([&] {
    const auto message = receive_json(pair.server.get(), kMaxRequestBytes, kTimeout);
    EXPECT_TRUE(message && request_from_json(*message).value() == request) << "the first message";
    EXPECT_TRUE(send_json(pair.server.get(), ok_reply(json::object()), kTimeout));
  });
  EXPECT_TRUE(call(pair.client.get(), request, kTimeout));
  server.join();
}

TEST(ControlCall, SaysHowARequestOfManyZonesBecomesSmaller) {
  SocketPair pair;
  ControlRequest request{.verb = "zone-remove"};
  request.names.assign(kMaxRequestBytes / 8, "a.test.");
  const auto refused = call(pair.client.get(), request, kTimeout);
  ASSERT_FALSE(refused);
  EXPECT_TRUE(refused.error().text.ends_with(": give fewer zones at a time"))
      << refused.error().text;
}

TEST(ControlCall, ReportsAClosedConnection) {
  SocketPair pair;
  pair.server.reset();
  EXPECT_FALSE(call(pair.client.get(), {.verb = "status"}, kTimeout));
}

TEST(ControlCall, TellsWhyItWasRefusedBeforeItAsked) {
  SocketPair pair;
  const json refusal = error_reply({Errc::kDenied, "not you"});
  ASSERT_TRUE(send_json(pair.server.get(), refusal, kTimeout));
  pair.server.reset();
  const auto result = call(pair.client.get(), {.verb = "status"}, kTimeout);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Errc::kDenied);
  EXPECT_EQ(result.error().text, "not you");
}

TEST(ControlCall, TellsWhyItWasRefusedWhileItAsked) {
  SocketPair pair;
  ASSERT_TRUE(send_json(pair.client.get(), {{"verb", "status"}}, kTimeout));
  ASSERT_TRUE(send_json(pair.server.get(), error_reply({Errc::kDenied, "not you"}), kTimeout));
  pair.server.reset();  // with the request unread
  auto reply = receive_json(pair.client.get(), kMaxReplyBytes, kTimeout);
  ASSERT_TRUE(reply) << reply.error().text;
  EXPECT_EQ((*reply)["error"], "not you");
}

TEST(ControlCall, GivesUpWhenNoAnswerComes) {
  SocketPair pair;
  const auto result = call(pair.client.get(), {.verb = "status"}, 10ms);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Errc::kIo);
}

TEST(ControlSocket, ConnectsByRunDirectory) {
  char directory[] = "/tmp/pando-control-XXXXXX";
  ASSERT_NE(::mkdtemp(directory), nullptr);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::snprintf(address.sun_path, sizeof address.sun_path, "%s/control.sock", directory);
  Fd listener(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  EXPECT_FALSE(connect_control(directory)) << "nobody listens yet";
  ASSERT_EQ(::listen(listener.get(), 1), 0);
  EXPECT_TRUE(connect_control(directory));
  ::unlink(address.sun_path);
  ::rmdir(directory);
}

TEST(ControlSocket, RefusesAPathThatASocketCannotHave) {
  const auto result = connect_control("/" + std::string(120, 'd'));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Errc::kInvalid);
}

}  // namespace control_test
}  // namespace pando::ipc
