// Measures the machine's own price of one IXFR that a NOTIFY brings: the processor time of a
// process that makes the system calls of such an exchange and does nothing else.
//
//   bench_exchange_floor [ROUNDS [GAP-MS]]
//
// A datagram wakes the first thread, as a NOTIFY does. The first thread wakes a second one by
// eventfd. The second thread sends 60 octets over TCP, gets 600, and wakes the first one. The first
// thread writes 400 bytes to a file, syncs the file, and answers the datagram. Rows without second
// thread, and without the file, tell the price of each. Between rounds all sleep for GAP-MS (30),
// as in bench/updates.py ixfr: waking up cold is most of the price.

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "base/fd.h"

namespace {

using pando::Fd;

constexpr std::size_t kQueryBytes = 60, kAnswerOctets = 600, kRecordOctets = 400;
constexpr off_t kFileBytes = off_t{1} << 20;
std::array<char, 4096> space;  // what is in it does not matter

void check(bool good, const char* what) {
  if (good) return;
  std::perror(what);
  std::exit(1);
}

/// On 127.0.0.1, at a port of the kernel's choice; where() tells it.
Fd local_socket(int kind) {
  Fd socket(::socket(AF_INET, kind | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  check(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0, "bind");
  return socket;
}

sockaddr_in where(const Fd& socket) {
  sockaddr_in address{};
  socklen_t octets = sizeof address;
  ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &octets);
  return address;
}

void connect_to(const Fd& socket, sockaddr_in address) {
  check(::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0,
        "connect");
}

void move(ssize_t octets) { check(octets > 0, "send or receive"); }

void wake(const Fd& event) {
  const std::uint64_t one = 1;
  move(::write(event.get(), &one, sizeof one));
}

void be_awake(const Fd& event) {
  std::uint64_t count = 0;
  move(::read(event.get(), &count, sizeof count));
}

/// Waits for one of two descriptors.
class Waiter {
 public:
  Waiter(const Fd& first, const Fd& second) {
    for (const Fd* fd : {&first, &second}) {
      epoll_event event{};
      event.events = EPOLLIN;
      event.data.fd = fd->get();
      check(::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd->get(), &event) == 0, "epoll_ctl");
    }
  }
  [[nodiscard]] bool is(const Fd& fd) {
    epoll_event event{};
    while (::epoll_wait(epoll_.get(), &event, 1, -1) != 1) {
    }
    return event.data.fd == fd.get();
  }

 private:
  Fd epoll_{::epoll_create1(EPOLL_CLOEXEC)};
};

struct Peers {
  Fd datagrams = local_socket(SOCK_DGRAM);
  Fd stream{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  std::array<pid_t, 2> processes{};

  Peers(int rounds, unsigned gap_us) {
    const Fd listener = local_socket(SOCK_STREAM);
    check(::listen(listener.get(), 1) == 0, "listen");
    processes[0] = ::fork();
    if (processes[0] == 0) {
      const Fd peer(::accept(listener.get(), nullptr, nullptr));
      while (::recv(peer.get(), space.data(), kQueryBytes, MSG_WAITALL) > 0)
        move(::send(peer.get(), space.data(), kAnswerOctets, 0));
      ::_exit(0);
    }
    processes[1] = ::fork();
    if (processes[1] == 0) {
      const Fd client = local_socket(SOCK_DGRAM);
      connect_to(client, where(datagrams));
      for (int round = 0; round < rounds; ++round) {
        move(::send(client.get(), space.data(), kQueryBytes, 0));
        move(::recv(client.get(), space.data(), space.size(), 0));
        ::usleep(gap_us);
      }
      ::_exit(0);
    }
    connect_to(stream, where(listener));
  }
  ~Peers() {
    ::shutdown(stream.get(), SHUT_RDWR);
    for (const pid_t process : processes) ::waitpid(process, nullptr, 0);
  }
};

double processor_us() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e6 +
         static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

void ask(const Fd& stream) { move(::send(stream.get(), space.data(), kQueryBytes, 0)); }
void take_answer(const Fd& stream) {
  move(::recv(stream.get(), space.data(), kAnswerOctets, MSG_WAITALL));
}

/// Microseconds of processor time for each round.
double measure(int rounds, unsigned gap_us, bool thread, bool file) {
  Peers peers(rounds, gap_us);
  const Fd there(::eventfd(0, EFD_CLOEXEC)), back(::eventfd(0, EFD_CLOEXEC));
  std::thread second;
  if (thread)
    second = std::thread([&] {
      Waiter waiter(there, peers.stream);
      for (int round = 0; round < rounds;) {
        if (waiter.is(there)) {
          be_awake(there);
          ask(peers.stream);
        } else {
          take_answer(peers.stream);
          wake(back);
          ++round;
        }
      }
    });
  char path[] = "exchange-floor-XXXXXX";
  const Fd journal(::mkstemp(path));
  ::unlink(path);
  check(::posix_fallocate(journal.get(), 0, kFileBytes) == 0, "posix_fallocate");
  ::fsync(journal.get());
  Waiter waiter(peers.datagrams, thread ? back : peers.stream);
  sockaddr_in client{};
  const double before = processor_us();
  for (int round = 0; round < rounds;) {
    if (waiter.is(peers.datagrams)) {
      socklen_t octets = sizeof client;
      move(::recvfrom(peers.datagrams.get(), space.data(), space.size(), 0,
                      reinterpret_cast<sockaddr*>(&client), &octets));
      thread ? wake(there) : ask(peers.stream);
      continue;
    }
    thread ? be_awake(back) : take_answer(peers.stream);
    if (file) {
      move(::pwrite(journal.get(), space.data(), kRecordOctets,
                    static_cast<off_t>(round * kRecordOctets) % kFileBytes));
      check(::fdatasync(journal.get()) == 0, "fdatasync");
    }
    move(::sendto(peers.datagrams.get(), space.data(), kQueryBytes, 0,
                  reinterpret_cast<const sockaddr*>(&client), sizeof client));
    ++round;
  }
  const double each = (processor_us() - before) / rounds;
  if (second.joinable()) second.join();
  return each;
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 300;
  const unsigned gap_us = (argc > 2 ? static_cast<unsigned>(std::atoi(argv[2])) : 30U) * 1000;
  std::puts("| second thread | file synced | us of processor time per round |\n|---|---|---:|");
  for (const bool thread : {true, false})
    for (const bool file : {true, false})
      std::printf("| %s | %s | %.0f |\n", thread ? "yes" : "no", file ? "yes" : "no",
                  measure(rounds, gap_us, thread, file));
  return 0;
}
