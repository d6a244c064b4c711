#include "worker/xdp/frame.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <vector>

#include "tests/unit/worker/xdp/frame_support.h"

namespace pando::worker {
namespace frame_test {

using frame_support::FrameParts;
using frame_support::make_frame;
using frame_support::v4_parts;
using frame_support::v6_parts;

std::vector<FrameParts> all_kinds(const Bytes& message = Bytes(30, 7)) {
  std::vector<FrameParts> kinds{v4_parts(message), v6_parts(message), v4_parts(message),
                                v6_parts(message)};
  kinds[2].vlan = 0xE007;  // with a priority
  kinds[3].vlan = 7;
  return kinds;
}

/// The response to `request` as this room writes it.
Bytes answer_with(const Bytes& request, const Bytes& message) {
  const auto frame = read_frame(request);
  if (!frame) return {};
  Bytes response(frame->header_octets() + message.size());
  std::copy(message.begin(), message.end(),
            response.begin() + static_cast<long>(frame->header_octets()));
  EXPECT_EQ(write_headers(*frame, response.data(), message.size(), 0x1234), response.size());
  return response;
}

TEST(Frame, ARequestIsReadWithItsAddresses) {
  for (const FrameParts& parts : all_kinds()) {
    const Bytes octets = make_frame(parts);
    const auto frame = read_frame(octets);
    ASSERT_TRUE(frame);
    EXPECT_EQ(frame->source, parts.source);
    EXPECT_EQ(frame->destination, parts.destination);
    EXPECT_EQ(Bytes(frame->message.begin(), frame->message.end()), parts.message);
    EXPECT_EQ(frame->has_vlan, parts.vlan != 0);
  }
}

TEST(Frame, PaddingBehindADatagramIsNoPartOfIt) {
  for (const FrameParts& parts : all_kinds(Bytes(1, 9))) {
    Bytes octets = make_frame(parts);
    octets.resize(octets.size() + 17, 0xAA);
    const auto frame = read_frame(octets);
    ASSERT_TRUE(frame);
    EXPECT_EQ(frame->message.size(), 1U);
  }
}

TEST(Frame, AResponseHasTheRequestsAddressesTurnedRound) {
  const Bytes message(333, 0x5A);
  for (const FrameParts& parts : all_kinds()) {
    FrameParts expected = parts;
    std::swap(expected.source, expected.destination);
    expected.message = message;
    Bytes wanted = make_frame(expected);
    std::swap_ranges(wanted.begin(), wanted.begin() + 6, wanted.begin() + 6);
    Bytes made = answer_with(make_frame(parts), message);
    ASSERT_EQ(made.size(), wanted.size());
    // Not the same: "don't fragment" and its checksum, and the flow label.
    const std::size_t ip = parts.vlan != 0 ? 18 : 14;
    for (const std::size_t at : {ip + 1, ip + 2, ip + 3, ip + 6, ip + 10, ip + 11})
      if (parts.source.address.is_v4() ? at >= ip + 6 : at < ip + 4) made[at] = wanted[at];
    EXPECT_EQ(made, wanted);
  }
}

TEST(Frame, ChecksumsOfResponsesAreThoseOfWordByWordSums) {
  std::mt19937 random(3);  // NOLINT: the same octets each time
  for (int round = 0; round < 400; ++round) {
    Bytes message(random() % 1400);
    std::generate(message.begin(), message.end(),
                  [&] { return static_cast<std::uint8_t>(random()); });
    for (FrameParts parts : all_kinds()) {
      const Bytes response = answer_with(make_frame(parts), message);
      const auto read_back = read_frame(response);
      ASSERT_TRUE(read_back) << "read_frame() verifies both checksums";
      std::swap(parts.source, parts.destination);
      parts.message = message;
      const Bytes udp = frame_support::udp_datagram(parts);
      const Bytes own(response.end() - static_cast<long>(udp.size()), response.end());
      ASSERT_EQ(own, udp) << round;
    }
  }
}

TEST(Frame, AChecksumThatComesOutAsZeroIsWrittenAsOnes) {
  // The last word is what makes the whole sum 0xFFFF, whose complement is 0.
  FrameParts parts = v4_parts();
  Bytes message(30, 0);
  FrameParts back = parts;
  std::swap(back.source, back.destination);
  back.message = message;
  const Bytes without = frame_support::udp_datagram(back);
  store_be16(message.data() + 28, load_be16(without.data() + 6));
  const Bytes response = answer_with(make_frame(parts), message);
  EXPECT_EQ(load_be16(response.data() + 14 + 20 + 6), 0xFFFF);
}

TEST(Frame, EveryTruncationIsRefused) {
  for (const FrameParts& parts : all_kinds()) {
    const Bytes whole = make_frame(parts);
    for (std::size_t size = 0; size < whole.size(); ++size) {
      const Bytes cut(whole.begin(), whole.begin() + static_cast<long>(size));  // ASan sees its end
      EXPECT_FALSE(read_frame(cut)) << size;
    }
    EXPECT_TRUE(read_frame(whole));
  }
}

TEST(Frame, AnyChangedBitIsSeenOrChangesNothingThatCounts) {
  for (const FrameParts& parts : all_kinds()) {
    const Bytes good = make_frame(parts);
    const std::size_t ip = parts.vlan != 0 ? 18 : 14;
    for (std::size_t bit = ip * 8; bit < good.size() * 8; ++bit) {
      Bytes bad = good;
      bad[bit / 8] = static_cast<std::uint8_t>(bad[bit / 8] ^ (1U << bit % 8));
      const auto frame = read_frame(bad);
      if (!frame) continue;
      // Traffic class, flow label and hop limit of IPv6 have no checksum.
      const std::size_t at = bit / 8 - ip;
      EXPECT_TRUE(!frame->is_v4 && (at < 4 || at == 7)) << "octet " << at;
    }
  }
}

TEST(Frame, SumsThatAreNotCompleteCountAsOnesOfThisHost) {
  for (FrameParts parts : all_kinds()) {
    parts.partial_sum = true;
    EXPECT_TRUE(read_frame(make_frame(parts)));
    parts.partial_sum = false;
    parts.no_sum = true;
    EXPECT_EQ(read_frame(make_frame(parts)).has_value(), parts.source.address.is_v4());
  }
}

TEST(Frame, SendersThatAreNoHostsGetNoAnswer) {
  for (const char* sender : {"0.0.0.0", "0.1.2.3", "127.0.0.1", "127.255.0.1", "224.0.0.1",
                             "239.1.2.3", "255.255.255.255", "192.0.2.1"}) {
    FrameParts parts = v4_parts();
    parts.source.address = IpAddress::from_text(sender).value();
    EXPECT_FALSE(read_frame(make_frame(parts))) << sender;
  }
  for (const char* sender : {"::", "::1", "ff02::1", "ff0e::1234", "2001:db8::1"}) {
    FrameParts parts = v6_parts();
    parts.source.address = IpAddress::from_text(sender).value();
    EXPECT_FALSE(read_frame(make_frame(parts))) << sender;
  }
  for (FrameParts parts : all_kinds()) {
    parts.source.port = 0;
    EXPECT_FALSE(read_frame(make_frame(parts)));
  }
}

TEST(Frame, HostileHeadersAreRefused) {
  struct Case {
    const char* name;
    bool v4;
    std::function<void(std::uint8_t* ip)> change;
  };
  const Case cases[] = {
      {"options", true, [](std::uint8_t* ip) { ip[0] = 0x46; }},
      {"a short header", true, [](std::uint8_t* ip) { ip[0] = 0x44; }},
      {"version 6 in type 4", true, [](std::uint8_t* ip) { ip[0] = 0x65; }},
      {"a fragment with more", true, [](std::uint8_t* ip) { ip[6] = 0x20; }},
      {"a later fragment", true, [](std::uint8_t* ip) { ip[7] = 1; }},
      {"TCP", true, [](std::uint8_t* ip) { ip[9] = 6; }},
      {"a length without its header", true, [](std::uint8_t* ip) { store_be16(ip + 2, 19); }},
      {"a length of 0", true, [](std::uint8_t* ip) { store_be16(ip + 2, 0); }},
      {"a length beyond the frame", true, [](std::uint8_t* ip) { store_be16(ip + 2, 0xFFFF); }},
      {"a datagram of 7 octets", true, [](std::uint8_t* ip) { store_be16(ip + 24, 7); }},
      {"a datagram beyond its packet", true, [](std::uint8_t* ip) { store_be16(ip + 24, 39); }},
      {"version 4 in type 6", false, [](std::uint8_t* ip) { ip[0] = 0x45; }},
      {"an extension header", false, [](std::uint8_t* ip) { ip[6] = 0; }},
      {"a payload beyond the frame", false, [](std::uint8_t* ip) { store_be16(ip + 4, 0xFFFF); }},
      {"a payload of 7", false, [](std::uint8_t* ip) { store_be16(ip + 4, 7); }},
      {"a payload of 0", false, [](std::uint8_t* ip) { store_be16(ip + 4, 0); }},
      {"a datagram of 0 octets", false, [](std::uint8_t* ip) { store_be16(ip + 44, 0); }},
  };
  for (const Case& one : cases) {
    FrameParts parts = one.v4 ? v4_parts() : v6_parts();
    parts.no_sum = one.v4;  // so that the datagram's checksum is not what refuses it
    Bytes octets = make_frame(parts);
    std::uint8_t* const ip = octets.data() + 14;
    one.change(ip);
    if (one.v4) {
      store_be16(ip + 10, 0);
      store_be16(ip + 10, frame_support::naive_checksum(Bytes(ip, ip + 20)));
    }
    EXPECT_FALSE(read_frame(octets)) << one.name;
  }
}

TEST(Frame, OtherProtocolsAndSecondTagsAreRefused) {
  for (const std::uint16_t type :
       std::vector<std::uint16_t>{0x0806, 0x88A8, 0x8100, 0x0001, 0xFFFF}) {
    Bytes octets = make_frame(v4_parts());
    store_be16(octets.data() + 12, type);
    EXPECT_FALSE(read_frame(octets)) << type;
  }
  FrameParts tagged = v4_parts();
  tagged.vlan = 7;
  Bytes octets = make_frame(tagged);
  store_be16(octets.data() + 16, 0x8100);
  EXPECT_FALSE(read_frame(octets));
}

TEST(Frame, TheRoomForAMessageIsWhatTheMtuLeaves) {
  const Bytes v4 = make_frame(v4_parts());
  const Bytes v6 = make_frame(v6_parts());
  EXPECT_EQ(message_room(*read_frame(v4), 1500), 1472U);
  EXPECT_EQ(message_room(*read_frame(v6), 1500), 1452U);
  EXPECT_EQ(message_room(*read_frame(v6), 40), 0U);
}

}  // namespace frame_test
}  // namespace pando::worker
