#include "ipc/channel.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

namespace pando::ipc {
namespace channel_test {

Fd temporary_file(char content) {
  char path[] = "/tmp/pando-channel-XXXXXX";
  Fd file(::mkostemp(path, O_CLOEXEC));
  ::unlink(path);
  EXPECT_EQ(::write(file.get(), &content, 1), 1);
  return file;
}

char first_octet(const Fd& file) {
  char byte = 0;
  EXPECT_EQ(::pread(file.get(), &byte, 1, 0), 1);
  return byte;
}

TEST(PacketSocket, PacketsKeepTheirBordersAndDescriptors) {
  auto pair = packet_pair().value();
  const Fd a = temporary_file('a');
  const Fd b = temporary_file('b');
  ASSERT_TRUE(send_packet(pair.first.get(), Bytes{1, 2, 3}, {a.get(), b.get()}));
  ASSERT_TRUE(send_packet(pair.first.get(), Bytes{4}, {}));
  Packet packet;
  ASSERT_TRUE(receive_packet(pair.second.get(), packet).value());
  EXPECT_EQ(packet.data, (Bytes{1, 2, 3}));
  ASSERT_EQ(packet.descriptors.size(), 2U);
  EXPECT_EQ(first_octet(packet.descriptors[0]), 'a');
  EXPECT_EQ(first_octet(packet.descriptors[1]), 'b');
  EXPECT_EQ(::fcntl(packet.descriptors[0].get(), F_GETFD), FD_CLOEXEC);
  ASSERT_TRUE(receive_packet(pair.second.get(), packet).value());
  EXPECT_EQ(packet.data, Bytes{4});
  EXPECT_TRUE(packet.descriptors.empty());
  EXPECT_FALSE(receive_packet(pair.second.get(), packet).value());
}

TEST(PacketSocket, TheLargestPacketFitsAndALargerOneIsRefused) {
  auto pair = packet_pair().value();
  ASSERT_EQ(send_packet(pair.first.get(), Bytes(kMaxPacketBytes, 7), {}).value(),
            SendOutcome::kSent);
  Packet packet;
  ASSERT_TRUE(receive_packet(pair.second.get(), packet).value());
  EXPECT_EQ(packet.data.size(), kMaxPacketBytes);
  EXPECT_EQ(send_packet(pair.first.get(), Bytes(kMaxPacketBytes + 1), {}).error().code,
            Errc::kFull);
  EXPECT_EQ(send_packet(pair.first.get(), Bytes(1), std::vector<int>(17, 0)).error().code,
            Errc::kFull);
}

TEST(PacketSocket, AClosedPeerIsAnErrorNotAnEmptyPacket) {
  auto pair = packet_pair().value();
  pair.first.reset();
  Packet packet;
  EXPECT_EQ(receive_packet(pair.second.get(), packet).error().code, Errc::kNotFound);
}

TEST(PacketSocket, WhatAPeerSentBeforeItDiedIsReadThoughItLeftPacketsUnread) {
  auto pair = packet_pair().value();
  const Fd file = temporary_file('s');
  ASSERT_TRUE(send_packet(pair.second.get(), Bytes{9}, {}));  // never read
  ASSERT_TRUE(send_packet(pair.first.get(), Bytes{1}, {file.get()}));
  pair.first.reset();
  Packet packet;
  ASSERT_TRUE(receive_packet(pair.second.get(), packet).value());
  EXPECT_EQ(packet.data, Bytes{1});
  ASSERT_EQ(packet.descriptors.size(), 1U);
  EXPECT_EQ(first_octet(packet.descriptors[0]), 's');
  EXPECT_EQ(receive_packet(pair.second.get(), packet).error().code, Errc::kNotFound);
}

TEST(PacketSocket, ConnectsByPathAndTellsWhoConnected) {
  const auto directory = std::filesystem::temp_directory_path() / "pando-packet-test";
  std::filesystem::create_directories(directory);
  const std::string path = directory / "s.sock";
  EXPECT_EQ(connect_packets(path).error().code, Errc::kNotFound);
  {
    const auto stale = listen_packets(path, std::nullopt).value();  // left behind by a dead process
  }
  EXPECT_EQ(connect_packets(path).error().code, Errc::kNotFound);
  const auto listening = listen_packets(path, std::nullopt).value();
  EXPECT_FALSE(accept_packets(listening.get()).value());
  const auto client = connect_packets(path).value();
  const auto server = accept_packets(listening.get()).value();
  ASSERT_TRUE(server);
  EXPECT_EQ(peer_credentials(server.get()).value().pid, ::getpid());
  std::filesystem::remove_all(directory);
}

TEST(PacketSocket, IsOpenToAGroupAlone) {
  const auto directory = std::filesystem::temp_directory_path() / "pando-packet-group-test";
  std::filesystem::create_directories(directory);
  const std::string path = directory / "s.sock";
  const auto own = listen_packets(path, ::getegid()).value();
  EXPECT_FALSE(is_open_to_all(path));
  struct stat status{};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0660U);
  const auto all = listen_packets(path, std::nullopt).value();
  EXPECT_TRUE(is_open_to_all(path));
  std::filesystem::remove_all(directory);
}

struct TwoEnds {
  asio::io_context io;
  std::shared_ptr<Channel> left, right;
  TwoEnds(std::size_t bound = 1 << 20) {
    auto pair = packet_pair().value();
    left = Channel::open(io, std::move(pair.first), bound);
    right = Channel::open(io, std::move(pair.second), bound);
  }
};

TEST(Channel, QueuesWhatTheKernelDoesNotTakeAndKeepsTheOrder) {
  TwoEnds ends(64 << 20);
  constexpr std::uint32_t kPackets = 300;
  for (std::uint32_t i = 0; i < kPackets; ++i) {
    Bytes data(100'000);
    store_be32(data.data(), i);
    ASSERT_TRUE(ends.left->send(std::move(data)));
  }
  ends.left->start({});
  std::uint32_t expected = 0;
  ends.right->start({[&](Packet&& packet) {
                       EXPECT_EQ(load_be32(packet.data.data()), expected++);
                       if (expected == kPackets) ends.io.stop();
                     },
                     {}});
  ends.io.run();
  EXPECT_EQ(expected, kPackets);
}

TEST(Channel, RefusesMoreThanItsBoundWhenThePeerDoesNotRead) {
  TwoEnds ends(1 << 20);
  Status sent;
  int count = 0;
  while (sent && count < 1000) {
    sent = ends.left->send(Bytes(100'000));
    ++count;
  }
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code, Errc::kFull);
}

TEST(Channel, TellsOnceThatThePeerHasGone) {
  TwoEnds ends;
  int told = 0;
  ends.right->start({{}, [&](const Error&) { ++told; }});
  ends.left->close();
  ends.io.run();
  EXPECT_EQ(told, 1);
  EXPECT_FALSE(ends.right->is_open());
  EXPECT_FALSE(ends.right->send(Bytes(1)));
}

TEST(Channel, WhatThePeerSentIsTakenEvenWhenSendingToItFailsFirst) {
  TwoEnds ends;
  int packets = 0;
  int told = 0;
  ends.right->start({[&](Packet&&) { ++packets; }, [&](const Error&) { ++told; }});
  ASSERT_TRUE(ends.left->send(Bytes(1)));
  ASSERT_TRUE(ends.left->send(Bytes(1)));
  ends.left->close();
  EXPECT_TRUE(ends.right->send(Bytes(1)));
  EXPECT_TRUE(ends.right->send(Bytes(1)));
  ends.io.run();
  EXPECT_EQ(packets, 2);
  EXPECT_EQ(told, 1);
}

TEST(Channel, APauseKeepsPacketsUntilItIsOver) {
  TwoEnds ends;
  std::vector<std::uint8_t> taken;
  ends.right->start({[&](Packet&& packet) {
                       taken.push_back(packet.data[0]);
                       if (taken.size() == 2) ends.right->pause();
                     },
                     {}});
  for (std::uint8_t i = 1; i <= 4; ++i) ASSERT_TRUE(ends.left->send(Bytes{i}));
  ends.io.run();
  EXPECT_EQ(taken, (std::vector<std::uint8_t>{1, 2}));
  ends.right->resume();
  ends.right->resume();  // waits once all the same
  ends.left->close();
  ends.io.restart();
  ends.io.run();
  EXPECT_EQ(taken, (std::vector<std::uint8_t>{1, 2, 3, 4}));
  EXPECT_FALSE(ends.right->is_open());
}

TEST(Channel, APauseThatIsOverAtOnceIsNone) {
  TwoEnds ends;
  int packets = 0;
  ends.right->start({[&](Packet&&) {
                       ++packets;
                       ends.right->pause();
                       ends.right->resume();
                     },
                     {}});
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(ends.left->send(Bytes(1)));
  ends.left->close();
  ends.io.run();
  EXPECT_EQ(packets, 3);
}

TEST(Channel, ACloseInsideThePacketHandlerIsTheEnd) {
  TwoEnds ends;
  int packets = 0;
  ends.right->start({[&](Packet&&) {
                       ++packets;
                       ends.right->close();
                     },
                     {}});
  ASSERT_TRUE(ends.left->send(Bytes(1)));
  ASSERT_TRUE(ends.left->send(Bytes(1)));
  ends.io.run();
  EXPECT_EQ(packets, 1);
}

}  // namespace channel_test
}  // namespace pando::ipc
