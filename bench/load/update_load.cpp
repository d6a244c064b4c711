// Sends signed UPDATE messages over UDP, from a number of clients with one under way each, and
// counts the answers.
//
//   bench_update_load PORT ZONE KEY-NAME BASE64-SECRET COUNT CLIENTS NAMES
//                     [look|RATE [LOCAL-PORT]...]
//
// Update i replaces the A RRset at n<i mod NAMES>.ZONE by one record, so a zone of NAMES such names
// keeps its size. i begins with the time in microseconds: were it 0 each time, what a run before
// has set would be no change, and cost next to nothing. With `look` each acknowledged update is
// asked for at once, from another port; no more clients than names then. RATE is the most updates
// per second. An update's time then counts from when the update was due, so that the figures have
// all of a stall. With COUNT 0 the program goes on until SIGTERM. The clients send from
// the local ports in turn, or from ports of the kernel's choice. Prints answered, refused and lost
// messages, seconds and rate, the time that updates took, and how many looks found an older
// address.

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#include "base/fd.h"
#include "bench/load/latencies.h"
#include "dns/encoding.h"
#include "dns/message/message.h"
#include "dns/tsig/tsig.h"

namespace {

using namespace pando;

volatile std::sig_atomic_t ending = 0;
void end_soon(int /*signal*/) { ending = 1; }

struct Load {
  dns::Name zone;
  dns::TsigKeyring keys;
  dns::Name key;
  std::uint64_t names = 1;
};

dns::Name owner_of(const Load& load, std::uint64_t number) {
  return *dns::Name::from_text("n" + std::to_string(number % load.names), load.zone.view());
}

std::uint32_t address_of(std::uint64_t number) {
  return static_cast<std::uint32_t>(0x0A000000U | (number & 0xFFFFFF));
}

/// RFC 2136 §2.5.2 and §2.5.1: delete the RRset, add one record.
Bytes make_update(const Load& load, std::uint64_t number, std::uint16_t id) {
  std::uint8_t space[1024];
  dns::MessageWriter writer(space, sizeof space);
  dns::Header header;
  header.id = id;
  header.opcode = dns::Opcode::kUpdate;
  writer.put_header(header);
  const dns::Name owner = owner_of(load, number);
  std::uint8_t address[4];
  store_be32(address, address_of(number));
  bool fits = writer.put_question(load.zone, dns::RRType::kSOA, dns::RRClass::kIN);
  fits = fits && writer.put_record(dns::Section::kAuthority, owner, dns::RRType::kA,
                                   dns::RRClass::kANY, 0, {});
  fits = fits && writer.put_record(dns::Section::kAuthority, owner, dns::RRType::kA,
                                   dns::RRClass::kIN, 60, address);
  if (!fits) std::abort();
  const ByteView message = writer.finish();
  Bytes bytes(message.begin(), message.end());
  auto session = dns::TsigSession::for_request(*load.keys.find(load.key));
  if (!session.sign(bytes, static_cast<std::uint64_t>(std::time(nullptr)))) std::abort();
  return bytes;
}

using Clock = std::chrono::steady_clock;

struct Counts {
  std::uint64_t sent = 0, answered = 0, refused = 0, resent = 0, looks = 0, stale = 0;
  /// Milliseconds from first sending (with a rate: from when it was due) to the answer.
  std::vector<double> latencies;
};

/// A client: a socket of its own, so that clients come to all workers, with one update under way.
struct Client {
  Fd socket;
  std::uint64_t number = 0;
  std::uint16_t id = 0;
  Bytes message;
  bool waiting = false;
  Clock::time_point begun, sent;
};

/// `from`: the local port, 0 = any.
Fd connect_to(std::uint16_t port, std::uint16_t from = 0) {
  Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in local{};
  local.sin_family = AF_INET;
  local.sin_port = htons(from);
  local.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::bind(socket.get(), reinterpret_cast<sockaddr*>(&local), sizeof local) != 0) {
    std::perror("bind");
    std::exit(2);
  }
  sockaddr_in server{};
  server.sin_family = AF_INET;
  server.sin_port = htons(port);
  server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(socket.get(), reinterpret_cast<sockaddr*>(&server), sizeof server) != 0)
    std::abort();
  return socket;
}

/// The sender of updates: as many at a time as there are clients, `count` in all; 0 = until told
/// to end.
class Run {
 public:
  Run(const Load& load, std::uint16_t port, std::uint64_t count,
      const std::vector<std::uint16_t>& local_ports, bool look, double rate)
      : load_(load), count_(count == 0 ? UINT64_MAX : count), rate_(rate) {
    for (const std::uint16_t local : local_ports)
      clients_.emplace_back().socket = connect_to(port, local);
    // Looks come from other ports than updates, so mostly to other workers.
    for (std::size_t i = 0; look && i < 16; ++i) lookers_.push_back(connect_to(port));
  }

  Counts run() {
    std::vector<pollfd> polls;
    for (const auto& client : clients_) polls.push_back({client.socket.get(), POLLIN, 0});
    start_ = Clock::now();
    for (auto& client : clients_) begin(client);
    while (counts_.answered + counts_.refused < count_) {
      const timespec wait = until_next();
      ::ppoll(polls.data(), polls.size(), &wait, nullptr);
      for (std::size_t i = 0; i < polls.size(); ++i)
        if (polls[i].revents != 0) receive(clients_[i]);
      for (auto& client : clients_) client.waiting ? send_again(client) : begin(client);
      if (ending != 0) count_ = std::min(count_, counts_.sent);
    }
    return std::move(counts_);
  }

 private:
  void begin(Client& client) {
    client.waiting = counts_.sent < count_ && is_time();
    if (!client.waiting) return;
    const std::uint64_t number = counts_.sent++;
    client.number = first_ + number;
    client.message = make_update(load_, client.number, ++client.id);
    client.sent = Clock::now();
    client.begun = rate_ > 0 ? due(number) : client.sent;
    send(client.socket, client.message);
  }

  [[nodiscard]] Clock::time_point due(std::uint64_t number) const {
    const std::chrono::duration<double> from_start(static_cast<double>(number) / rate_);
    return start_ + std::chrono::duration_cast<Clock::duration>(from_start);
  }

  [[nodiscard]] bool is_time() const { return rate_ <= 0 || due(counts_.sent) <= Clock::now(); }

  /// A second at most, since what was lost is sent again. While all clients wait nothing is due.
  [[nodiscard]] timespec until_next() const {
    const bool room = std::any_of(clients_.begin(), clients_.end(),
                                  [](const Client& client) { return !client.waiting; });
    if (rate_ <= 0 || !room || counts_.sent >= count_) return {1, 0};
    const auto left = std::chrono::nanoseconds(due(counts_.sent) - Clock::now()).count();
    return {0, std::clamp<long>(left, 0, 999'999'999)};
  }

  void receive(Client& client) {
    std::uint8_t answer[4096];
    ssize_t size = 0;
    while ((size = ::recv(client.socket.get(), answer, sizeof answer, MSG_DONTWAIT)) >= 12) {
      if (!client.waiting || load_be16(answer) != client.id) continue;
      const bool done = (answer[3] & 0x0F) == 0;
      ++(done ? counts_.answered : counts_.refused);
      counts_.latencies.push_back(
          std::chrono::duration<double, std::milli>(Clock::now() - client.begun).count());
      if (done && !lookers_.empty()) look(client.number);
      begin(client);
    }
  }

  void send_again(Client& client) {
    if (Clock::now() - client.sent < std::chrono::seconds(3)) return;
    client.sent = Clock::now();
    ++counts_.resent;
    send(client.socket, client.message);
  }

  /// Asks for what was just acknowledged: an older address is a stale look.
  void look(std::uint64_t number) {
    std::uint8_t space[512];
    dns::MessageWriter writer(space, sizeof space);
    dns::Header header;
    header.id = static_cast<std::uint16_t>(number);
    writer.put_header(header);
    if (!writer.put_question(owner_of(load_, number), dns::RRType::kA, dns::RRClass::kIN)) return;
    const ByteView question = writer.finish();
    const Fd& socket = lookers_[counts_.looks++ % lookers_.size()];
    std::uint8_t answer[512];
    for (;;) {
      send(socket, question);
      pollfd poll{socket.get(), POLLIN, 0};
      if (::poll(&poll, 1, 1000) != 1) continue;
      const ssize_t size = ::recv(socket.get(), answer, sizeof answer, 0);
      if (size < 28 || load_be16(answer) != header.id) continue;
      // One A record and nothing behind it: the address is the message's end.
      if (load_be32(answer + size - 4) != address_of(number)) ++counts_.stale;
      return;
    }
  }

  static void send(const Fd& socket, ByteView message) {
    [[maybe_unused]] const auto sent = ::send(socket.get(), message.data(), message.size(), 0);
  }

  const Load& load_;
  std::uint64_t first_ =
      static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(
                                     std::chrono::system_clock::now().time_since_epoch())
                                     .count());
  std::uint64_t count_;
  double rate_;  ///< updates per second; 0 = as fast as answers come
  Clock::time_point start_;
  std::vector<Client> clients_;
  std::vector<Fd> lookers_;
  Counts counts_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 8) {
    std::fprintf(stderr,
                 "usage: %s PORT ZONE KEY SECRET COUNT CLIENTS NAMES [look|RATE [LOCAL-PORT]...]\n",
                 argv[0]);
    return 2;
  }
  Load load;
  load.zone = *dns::Name::from_text(argv[2]);
  load.key = *dns::Name::from_text(argv[3]);
  load.names = std::strtoull(argv[7], nullptr, 10);
  const auto secret = dns::base64_decode(argv[4]);
  if (!secret || !load.keys.add({load.key, dns::TsigAlgorithm::kSha256, *secret})) return 2;
  const bool look = argc > 8 && std::string(argv[8]) == "look";
  std::vector<std::uint16_t> ports;
  for (int i = 9; i < argc; ++i) ports.push_back(static_cast<std::uint16_t>(std::atoi(argv[i])));
  if (ports.empty()) ports.assign(std::strtoull(argv[6], nullptr, 10), 0);
  std::signal(SIGTERM, end_soon);
  Run run(load, static_cast<std::uint16_t>(std::atoi(argv[1])), std::strtoull(argv[5], nullptr, 10),
          ports, look, argc > 8 && !look ? std::atof(argv[8]) : 0);
  const auto start = Clock::now();
  Counts counts = run.run();
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  std::printf(
      "answered %llu refused %llu resent %llu seconds %.2f rate %.0f/s "
      "p50 %.2f ms p99 %.2f ms max %.2f ms looks %llu stale %llu\n",
      static_cast<unsigned long long>(counts.answered),
      static_cast<unsigned long long>(counts.refused),
      static_cast<unsigned long long>(counts.resent), seconds,
      static_cast<double>(counts.answered) / seconds, bench::percentile(counts.latencies, 0.5),
      bench::percentile(counts.latencies, 0.99), bench::percentile(counts.latencies, 1),
      static_cast<unsigned long long>(counts.looks), static_cast<unsigned long long>(counts.stale));
  bench::keep(counts.latencies);
  return counts.refused == 0 && counts.stale == 0 ? 0 : 1;
}
