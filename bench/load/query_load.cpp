// Asks over UDP at a fixed rate, whatever the answers do: an open loop, in bursts of a fixed size
// at random times (so that they do not fall in step with the kernel's clock).
//
//   bench_query_load PORT FILE RATE BURST SECONDS [LOCAL-PORT]...
//
// FILE has one name and type A or SOA per line. SECONDS 0: until SIGTERM. With WAIT in the
// environment it says "ready" when it has read FILE, and begins with the first line of its input.
// Queries leave from the local ports in turn, or from eight of the kernel's choice. Prints sent,
// answered, bad (no answer with RCODE NOERROR) and lost queries. Times to an answer count from when
// the burst was due. The delay of the latest burst is printed, too: a large one means that the
// figures are those of this program.

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "base/fd.h"
#include "bench/load/latencies.h"
#include "dns/message/message.h"

namespace {

using namespace pando;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kMaxPerBurst = 64;
constexpr std::size_t kPortsByDefault = 8;
/// A query without an answer after this time counts as lost.
constexpr std::chrono::milliseconds kAnswerTimeout{300};

volatile std::sig_atomic_t ending = 0;
void end_soon(int /*signal*/) { ending = 1; }

/// All questions, one behind the other, with ID 0.
struct Questions {
  Bytes octets;
  std::vector<std::size_t> begins{0};
  [[nodiscard]] std::size_t count() const { return begins.size() - 1; }
};

Questions read_questions(const char* path) {
  Questions questions;
  std::ifstream file(path);
  for (std::string name, type; file >> name >> type;) {
    std::uint8_t space[512];
    dns::MessageWriter writer(space, sizeof space);
    writer.put_header({});
    const auto owner = dns::Name::from_text(name);
    const auto rrtype = type == "SOA" ? dns::RRType::kSOA : dns::RRType::kA;
    if (!owner || !writer.put_question(*owner, rrtype, dns::RRClass::kIN)) continue;
    const ByteView message = writer.finish();
    questions.octets.insert(questions.octets.end(), message.begin(), message.end());
    questions.begins.push_back(questions.octets.size());
  }
  return questions;
}

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

/// A socket, and when the query of each ID was due, until it is answered.
struct Port {
  Fd socket;
  std::uint16_t next_id = 0;
  std::vector<Clock::time_point> due = std::vector<Clock::time_point>(65536);
};

Port open_port(std::uint16_t server, std::uint16_t local) {
  Port port;
  port.socket = Fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const sockaddr_in to = loopback(server);
  const sockaddr_in from = loopback(local);
  if (::bind(port.socket.get(), reinterpret_cast<const sockaddr*>(&from), sizeof from) != 0 ||
      ::connect(port.socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) {
    std::perror("socket");
    std::exit(2);
  }
  return port;
}

class Run {
 public:
  Run(Questions questions, std::uint16_t server, const std::vector<std::uint16_t>& locals,
      double rate, std::size_t burst)
      : questions_(std::move(questions)), burst_(burst), gap_(rate / static_cast<double>(burst)) {
    for (const std::uint16_t local : locals) ports_.push_back(open_port(server, local));
    for (const Port& port : ports_) polls_.push_back({port.socket.get(), POLLIN, 0});
  }

  void run(double seconds) {
    const auto start = Clock::now();
    const auto end = start + std::chrono::duration_cast<Clock::duration>(
                                 std::chrono::duration<double>(seconds > 0 ? seconds : 1e9));
    auto due = start;
    while (ending == 0 && due < end) {
      due +=
          std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(gap_(random_)));
      receive_until(due);
      send_burst(due);
    }
    seconds_ = std::chrono::duration<double>(Clock::now() - start).count();
    receive_until(Clock::now() + kAnswerTimeout);
  }

  void print() {
    std::printf(
        "sent %llu answered %zu bad %llu lost %lld seconds %.3f rate %.0f/s "
        "p50 %.1f us p99 %.1f us p999 %.1f us max %.1f us late %.1f us\n",
        sent_, latencies_.size(), bad_,
        static_cast<long long>(sent_) - static_cast<long long>(latencies_.size() + bad_), seconds_,
        static_cast<double>(latencies_.size()) / seconds_, bench::percentile(latencies_, 0.5),
        bench::percentile(latencies_, 0.99), bench::percentile(latencies_, 0.999),
        bench::percentile(latencies_, 1), late_);
    bench::keep(latencies_);
  }

 private:
  static double microseconds(Clock::duration duration) {
    return std::chrono::duration<double, std::micro>(duration).count();
  }

  void send_burst(Clock::time_point due) {
    Port& port = ports_[turn_++ % ports_.size()];
    mmsghdr messages[kMaxPerBurst] = {};
    iovec parts[kMaxPerBurst][2];
    std::uint16_t ids[kMaxPerBurst];
    for (std::size_t i = 0; i < burst_; ++i) {
      const std::size_t question = asked_++ % questions_.count();
      const std::size_t begin = questions_.begins[question];
      ids[i] = htons(port.next_id);
      port.due[port.next_id++] = due;
      parts[i][0] = {&ids[i], 2};
      parts[i][1] = {questions_.octets.data() + begin + 2,
                     questions_.begins[question + 1] - begin - 2};
      messages[i].msg_hdr.msg_iov = parts[i];
      messages[i].msg_hdr.msg_iovlen = 2;
    }
    late_ = std::max(late_, microseconds(Clock::now() - due));
    // What the kernel does not take counts as sent, and so as lost.
    (void)::sendmmsg(port.socket.get(), messages, static_cast<unsigned>(burst_), 0);
    sent_ += burst_;
  }

  void receive_until(Clock::time_point end) {
    for (auto now = Clock::now(); now < end; now = Clock::now()) {
      const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(end - now).count();
      const timespec timeout{left / 1'000'000'000, left % 1'000'000'000};
      if (::ppoll(polls_.data(), polls_.size(), &timeout, nullptr) <= 0) continue;
      for (std::size_t i = 0; i < ports_.size(); ++i)
        if (polls_[i].revents != 0) receive(ports_[i]);
    }
  }

  void receive(Port& port) {
    std::uint8_t answers[kMaxPerBurst][16];
    iovec parts[kMaxPerBurst];
    mmsghdr messages[kMaxPerBurst] = {};
    for (std::size_t i = 0; i < kMaxPerBurst; ++i) {
      parts[i] = {answers[i], sizeof answers[i]};
      messages[i].msg_hdr.msg_iov = &parts[i];
      messages[i].msg_hdr.msg_iovlen = 1;
    }
    const int count = ::recvmmsg(port.socket.get(), messages, kMaxPerBurst, MSG_DONTWAIT, nullptr);
    const auto now = Clock::now();
    for (int i = 0; i < count; ++i) {
      const std::uint8_t* answer = answers[i];
      const auto id = static_cast<std::size_t>(answer[0] << 8 | answer[1]);
      if (messages[i].msg_len < 12 || port.due[id] == Clock::time_point()) continue;
      if ((answer[3] & 0x0F) == 0)
        latencies_.push_back(microseconds(now - port.due[id]));
      else
        ++bad_;
      port.due[id] = {};
    }
  }

  Questions questions_;
  std::vector<Port> ports_;
  std::vector<pollfd> polls_;
  std::size_t burst_;
  std::exponential_distribution<double> gap_;
  std::mt19937_64 random_{1};
  std::size_t turn_ = 0, asked_ = 0;
  unsigned long long sent_ = 0, bad_ = 0;
  double seconds_ = 0, late_ = 0;
  std::vector<double> latencies_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 6) {
    std::fprintf(stderr, "usage: %s PORT FILE RATE BURST SECONDS [LOCAL-PORT]...\n", argv[0]);
    return 2;
  }
  std::vector<std::uint16_t> locals;
  for (int i = 6; i < argc; ++i) locals.push_back(static_cast<std::uint16_t>(std::atoi(argv[i])));
  if (locals.empty()) locals.assign(kPortsByDefault, 0);
  Questions questions = read_questions(argv[2]);
  const double rate = std::atof(argv[3]);
  const auto burst = static_cast<std::size_t>(std::atol(argv[4]));
  if (questions.count() == 0 || rate <= 0 || burst < 1 || burst > kMaxPerBurst) {
    std::fprintf(stderr, "no questions, no rate, or a burst of none or more than %zu\n",
                 kMaxPerBurst);
    return 2;
  }
  std::signal(SIGTERM, end_soon);
  std::signal(SIGINT, end_soon);
  if (std::getenv("WAIT") != nullptr) {
    std::puts("ready");
    std::fflush(stdout);
    std::getchar();
  }
  Run run(std::move(questions), static_cast<std::uint16_t>(std::atoi(argv[1])), locals, rate,
          burst);
  run.run(std::atof(argv[5]));
  run.print();
  return 0;
}
