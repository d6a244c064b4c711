// Sends signed UPDATE messages over UDP, a fixed number in flight, and counts the answers.
//
//   bench_update_load PORT ZONE KEY-NAME BASE64-SECRET COUNT IN-FLIGHT NAMES
//
// Update i replaces the A RRset at n<i mod NAMES>.ZONE by one record, so a zone of NAMES such names
// keeps its size. Prints answered, refused and lost messages, seconds and rate.

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/fd.h"
#include "dns/encoding.h"
#include "dns/message.h"
#include "dns/tsig.h"

namespace {

using namespace pando;

struct Load {
  dns::Name zone;
  dns::TsigKeyring keys;
  dns::Name key;
  std::uint64_t names = 1;
};

/// RFC 2136 §2.5.2 and §2.5.1: delete the RRset, add one record.
Bytes make_update(const Load& load, std::uint64_t number, std::uint16_t id) {
  std::uint8_t space[1024];
  dns::MessageWriter writer(space, sizeof space);
  dns::Header header;
  header.id = id;
  header.opcode = dns::Opcode::kUpdate;
  writer.put_header(header);
  const auto owner =
      dns::Name::from_text("n" + std::to_string(number % load.names), load.zone.view());
  std::uint8_t address[4] = {10};
  store_be32(address, static_cast<std::uint32_t>(0x0A000000U | (number & 0xFFFFFF)));
  bool fits = writer.put_question(load.zone, dns::RRType::kSOA, dns::RRClass::kIN);
  fits = fits && writer.put_record(dns::Section::kAuthority, *owner, dns::RRType::kA,
                                   dns::RRClass::kANY, 0, {});
  fits = fits && writer.put_record(dns::Section::kAuthority, *owner, dns::RRType::kA,
                                   dns::RRClass::kIN, 60, address);
  if (!fits) std::abort();
  const ByteView message = writer.finish();
  Bytes bytes(message.begin(), message.end());
  auto session = dns::TsigSession::for_request(*load.keys.find(load.key));
  if (!session.sign(bytes, static_cast<std::uint64_t>(std::time(nullptr)))) std::abort();
  return bytes;
}

struct Counts {
  std::uint64_t sent = 0, answered = 0, refused = 0, resent = 0;
};

/// One socket; the ID tells which update an answer belongs to.
Counts run(int socket, const Load& load, std::uint64_t count, std::size_t in_flight) {
  using Clock = std::chrono::steady_clock;
  struct Waiting {
    Bytes message;
    Clock::time_point sent;
  };
  std::unordered_map<std::uint16_t, Waiting> waiting;
  Counts counts;
  std::uint16_t next_id = 1;
  while (counts.answered + counts.refused < count) {
    while (waiting.size() < in_flight && counts.sent < count) {
      while (waiting.contains(next_id)) ++next_id;
      Bytes message = make_update(load, counts.sent, next_id);
      if (::send(socket, message.data(), message.size(), 0) < 0) break;
      waiting.emplace(next_id++, Waiting{std::move(message), Clock::now()});
      ++counts.sent;
    }
    pollfd poll{socket, POLLIN, 0};
    ::poll(&poll, 1, 1000);
    std::uint8_t answer[4096];
    ssize_t size = 0;
    while ((size = ::recv(socket, answer, sizeof answer, MSG_DONTWAIT)) >= 12) {
      if (waiting.erase(load_be16(answer)) == 0) continue;
      ++((answer[3] & 0x0F) == 0 ? counts.answered : counts.refused);
    }
    for (auto& [id, entry] : waiting) {
      if (Clock::now() - entry.sent < std::chrono::seconds(3)) continue;
      entry.sent = Clock::now();
      ++counts.resent;
      [[maybe_unused]] const auto again =
          ::send(socket, entry.message.data(), entry.message.size(), 0);
    }
  }
  return counts;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 8) {
    std::fprintf(stderr, "usage: %s PORT ZONE KEY SECRET COUNT IN-FLIGHT NAMES\n", argv[0]);
    return 2;
  }
  Load load;
  load.zone = *dns::Name::from_text(argv[2]);
  load.key = *dns::Name::from_text(argv[3]);
  load.names = std::strtoull(argv[7], nullptr, 10);
  const auto secret = dns::base64_decode(argv[4]);
  if (!secret || !load.keys.add({load.key, dns::TsigAlgorithm::kSha256, *secret})) return 2;
  const Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in server{};
  server.sin_family = AF_INET;
  server.sin_port = htons(static_cast<std::uint16_t>(std::atoi(argv[1])));
  server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(socket.get(), reinterpret_cast<sockaddr*>(&server), sizeof server) != 0) return 1;
  const auto start = std::chrono::steady_clock::now();
  const Counts counts =
      run(socket.get(), load, std::strtoull(argv[5], nullptr, 10), std::strtoull(argv[6], nullptr, 10));
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::printf("answered %llu refused %llu resent %llu seconds %.2f rate %.0f/s\n",
              static_cast<unsigned long long>(counts.answered),
              static_cast<unsigned long long>(counts.refused),
              static_cast<unsigned long long>(counts.resent), seconds,
              static_cast<double>(counts.answered) / seconds);
  return counts.refused == 0 ? 0 : 1;
}
