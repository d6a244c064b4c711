#include "ipc/worker_messages.h"

#include <gtest/gtest.h>

#include <random>

namespace pando::ipc {
namespace worker_messages_test {

dns::Name name(const char* text) { return dns::Name::from_text(text).value(); }
Endpoint endpoint(const char* text) { return Endpoint::from_text(text).value(); }

SocketDescription socket_with_id(std::uint32_t id) {
  return {id, endpoint("2001:db8::1@5300"), Transport::kTcp, 3, true};
}

std::vector<FromWorker> worker_messages() {
  return {
      Hello{7, 4711, 0x1122334455667788, 9, 2, "00ff"},
      Adopt{{socket_with_id(1), socket_with_id(0xFFFFFFFF)}},
      Forward{1ULL << 40,
              ForwardKind::kSignedQuery,
              Transport::kTcp,
              endpoint("192.0.2.1@1024"),
              endpoint("192.0.2.2@53"),
              Bytes(65535, 1),
              Bytes(65535, 2),
              {}},
      Forward{2,
              ForwardKind::kUpdate,
              Transport::kUdp,
              endpoint("192.0.2.1@1024"),
              endpoint("192.0.2.2@53"),
              Bytes(12, 1),
              {},
              77},
      Forward{3,
              ForwardKind::kNotify,
              Transport::kTls,
              endpoint("192.0.2.1@1024"),
              endpoint("192.0.2.2@853"),
              Bytes(12, 1),
              {},
              {},
              PeerIdentity{{"second", "third"}}},
      SignTransfer{9, 5, true, Bytes(60, 3), Bytes(65000, 4)},
      Drained{42},
      TransferFinished{name("example.com."), endpoint("192.0.2.9@4000"), true,
                       TransferEnd::kDataDamaged, 2026, 3, 100000, 5000, 12,
                       PeerIdentity{{"second"}}},
      Bye{},
      DnstapLost{},
      AdoptXdp{{"eth0", 3}},
      XdpServing{{"eth0", 3}},
      XdpClosed{{"eth0", 4}},
  };
}

std::vector<ToWorker> manager_messages() {
  return {
      Setup{3},
      Keys{true,
           false,
           {{name("transfer."), dns::TsigAlgorithm::kSha512, Bytes{1, 2, 3}}},
           {{name("update."), dns::TsigAlgorithm::kMd5}},
           {CookieSecret{1, 2}, CookieSecret{3}}},
      Sockets{{socket_with_id(5), socket_with_id(6)}, 1},
      CloseSockets{{1, 2, 3}},
      Reply{77, Bytes(512, 0xAB)},
      Stop{2000},
      Logging{"debug", "json"},
      Dnstap{true, 100, true, false, true, "ns1.example", "pando"},
      QueryLog{true, 100},
      ServeXdp{{"eth0", 3}, 1500, 2048, 1024, 512},
      CloseXdp{{"eth0", 3}},
      SentAway{true},
      TlsIntake{3},
  };
}

TEST(WorkerLink, EveryWorkerMessageSurvivesARoundTrip) {
  for (const auto& message : worker_messages()) {
    const Bytes packet = encode(message);
    EXPECT_LE(packet.size(), kMaxPacketBytes);
    const auto decoded = decode_from_worker(packet);
    ASSERT_TRUE(decoded) << message.index() << ": " << decoded.error().text;
    EXPECT_EQ(*decoded, message);
  }
}

TEST(WorkerLink, EveryManagerMessageSurvivesARoundTrip) {
  for (const auto& message : manager_messages()) {
    const auto decoded = decode_to_worker(encode(message));
    ASSERT_TRUE(decoded) << message.index();
    EXPECT_EQ(decoded->index(), message.index());
    EXPECT_EQ(encode(*decoded), encode(message));
  }
}

TEST(WorkerLink, KeysArriveWithNameAlgorithmAndSecret) {
  const auto decoded = decode_to_worker(encode(manager_messages()[1]));
  ASSERT_TRUE(decoded);
  const auto& keys = std::get<Keys>(*decoded);
  EXPECT_TRUE(keys.first);
  EXPECT_FALSE(keys.last);
  ASSERT_EQ(keys.shared.size(), 1U);
  EXPECT_EQ(keys.shared[0].name, name("transfer."));
  EXPECT_EQ(keys.shared[0].secret, (Bytes{1, 2, 3}));
  ASSERT_EQ(keys.held.size(), 1U);
  EXPECT_EQ(keys.held[0].algorithm, dns::TsigAlgorithm::kMd5);
}

TEST(WorkerLink, AnyShorterPacketIsAnError) {
  for (const auto& message : worker_messages()) {
    const Bytes packet = encode(message);
    const std::size_t step = packet.size() > 1000 ? 997 : 1;
    for (std::size_t size = 0; size < packet.size(); size += step)
      EXPECT_FALSE(decode_from_worker({packet.data(), size})) << message.index() << " at " << size;
  }
  for (const auto& message : manager_messages()) {
    const Bytes packet = encode(message);
    for (std::size_t size = 0; size < packet.size(); ++size)
      EXPECT_FALSE(decode_to_worker({packet.data(), size})) << message.index() << " at " << size;
  }
}

TEST(WorkerLink, AnOctetTooManyIsAnError) {
  for (const auto& message : worker_messages()) {
    Bytes packet = encode(message);
    packet.push_back(0);
    EXPECT_FALSE(decode_from_worker(packet));
  }
}

TEST(WorkerLink, AnotherProtocolVersionIsRefusedAsUnsupported) {
  Bytes packet = encode(FromWorker(Bye{}));
  packet[1] = static_cast<std::uint8_t>(kWorkerProtocol + 1);
  const auto decoded = decode_from_worker(packet);
  ASSERT_FALSE(decoded);
  EXPECT_EQ(decoded.error().code, Errc::kUnsupported);
}

TEST(WorkerLink, ACountCannotPromiseMoreThanThePacketHolds) {
  Bytes packet = encode(FromWorker(Adopt{}));
  for (std::size_t i = packet.size() - 4; i < packet.size(); ++i) packet[i] = 0xFF;
  EXPECT_FALSE(decode_from_worker(packet));
}

TEST(WorkerLink, AnUnknownTransportOrNameIsAnError) {
  Bytes forward = encode(FromWorker(Forward{}));
  forward[3 + 8 + 1] = 9;  // behind version, number, id and kind
  EXPECT_FALSE(decode_from_worker(forward));
  TransferFinished finished;
  finished.zone = name("a.");
  Bytes transfer = encode(FromWorker(finished));
  transfer[3 + 4] = 64;  // a label longer than 63 bytes
  EXPECT_FALSE(decode_from_worker(transfer));
}

TEST(WorkerLink, RandomOctetsNeverDecodeToSomethingThatEncodesDifferently) {
  std::mt19937 random(20260101);
  for (int round = 0; round < 20000; ++round) {
    Bytes packet(random() % 200);
    for (auto& byte : packet) byte = static_cast<std::uint8_t>(random());
    if (packet.size() >= 3) {
      store_be16(packet.data(), kWorkerProtocol);
      packet[2] = static_cast<std::uint8_t>(random() % 10);
    }
    if (const auto decoded = decode_from_worker(packet)) {
      EXPECT_EQ(encode(*decoded), packet);
    }
    if (const auto decoded = decode_to_worker(packet)) {
      EXPECT_EQ(encode(*decoded), packet);
    }
  }
}

}  // namespace worker_messages_test
}  // namespace pando::ipc
