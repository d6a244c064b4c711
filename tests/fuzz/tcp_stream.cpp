// Any octets from a client over TCP, also behind a load balancer's header: never a crash. All that
// is sent back are whole messages with the QR bit, and the connection ends once the client has shut
// its side.
//
// Input: one octet of mode, then pieces of the stream, each behind its length in one octet (0: 256).

#include <sys/socket.h>

#include <array>
#include <asio/io_context.hpp>
#include <filesystem>

#include "shm/slots.h"
#include "tests/fuzz/served_zone.h"
#include "worker/net/tcp_connection.h"

namespace {

using namespace pando;

constexpr std::uint8_t kFromProxy = 1;   // the client is a load balancer
constexpr std::uint8_t kReadsLate = 2;   // reads nothing before its last octet is sent
constexpr std::uint8_t kAddHeader = 4;   // begin with a valid header: else most inputs end there

constexpr std::array<std::uint8_t, 28> kHeader{0x0D, 0x0A, 0x0D, 0x0A, 0x00, 0x0D, 0x0A,
                                               0x51, 0x55, 0x49, 0x54, 0x0A, 0x21, 0x11,
                                               0,    12,   192,  0,    2,    1,    192,
                                               0,    2,    2,    0x10, 0,    0,    53};
/// Turns of the loop until a connection must have ended: far more than the stream has messages.
constexpr int kMaxTurns = 100'000;

const char* const kZone = R"($TTL 300
@ SOA ns1 admin 7 3600 600 86400 60
@ NS ns1
ns1 A 192.0.2.1
web A 192.0.2.80
*.wild TXT "wild"
sub NS ns.sub
ns.sub A 192.0.2.53
)";

zone::ServerSettings with_proxy() {
  zone::ServerSettings settings;
  settings.proxies = {IpPrefix::from_text("192.0.2.200").value()};
  return settings;
}

/// A worker's TCP side without a listening socket, in slot 0 of a store.
class Host final : public worker::TcpHost {
 public:
  Host() {
    auto table = shm::SlotTable::open(zone_.path() + ".slots", zone_.path(),
                                      zone::layout_fingerprint());
    PANDO_ASSERT(table && table->add(0));
    auto files = table->lend(0);
    PANDO_ASSERT(files);
    PANDO_ASSERT(core_.attach(std::move(*files), zone::layout_fingerprint(), 0, Fd()));
    core_.look_at_settings();
    std::filesystem::remove_all(zone_.path() + ".slots");
    ::unlink(zone_.path().c_str());
  }
  worker::Core& core() noexcept override { return core_; }
  std::span<std::uint8_t> space() noexcept override { return space_; }
  std::span<std::uint8_t> receive_space() noexcept override { return receive_space_; }
  void progressed(worker::TcpConnection&) noexcept override {}
  void stalled(worker::TcpConnection&) noexcept override {}
  void ended(worker::TcpConnection&) noexcept override { connection_.reset(); }

  [[nodiscard]] asio::io_context& io() noexcept { return io_; }
  [[nodiscard]] bool has_connection() const noexcept { return connection_ != nullptr; }
  void open(Fd socket, const worker::Client& client) {
    connection_ = std::make_shared<worker::TcpConnection>(
        *this, worker::TcpConnection::Socket(io_, socket.release()), client);
    connection_->start();
  }
  void turn() {
    io_.restart();
    io_.poll();
  }

 private:
  fuzz::ServedZone zone_{kZone, with_proxy()};
  asio::io_context io_{1};
  worker::ManagerLink link_{io_, {}, {}};
  worker::Core core_{link_};
  std::shared_ptr<worker::TcpConnection> connection_;
  std::array<std::uint8_t, 65535> space_{};
  std::array<std::uint8_t, 65536> receive_space_{};
};

/// Takes what was sent, and checks each whole message.
void read_answers(int socket, Bytes& unread) {
  std::array<std::uint8_t, 65536> space{};
  for (;;) {
    const ssize_t got = ::recv(socket, space.data(), space.size(), MSG_DONTWAIT);
    if (got <= 0) break;
    append(unread, ByteView(space.data(), static_cast<std::size_t>(got)));
  }
  std::size_t at = 0;
  while (unread.size() - at >= 2 && unread.size() - at - 2 >= load_be16(&unread[at])) {
    const std::size_t length = load_be16(&unread[at]);
    PANDO_ASSERT(length >= dns::kHeaderOctets && (unread[at + 4] & 0x80U) != 0);
    at += 2 + length;
  }
  unread.erase(unread.begin(), unread.begin() + static_cast<std::ptrdiff_t>(at));
}

worker::Client make_client(std::uint8_t mode) {
  worker::Client client;
  const bool from_proxy = (mode & kFromProxy) != 0;
  client.transport = ipc::Transport::kTcp;
  client.remote = {IpAddress::from_text(from_proxy ? "192.0.2.200" : "192.0.2.9").value(), 4000};
  client.local = {IpAddress::from_text("192.0.2.53").value(), 53};
  return client;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Host* const host = new Host;
  if (size == 0) return 0;
  const std::uint8_t mode = data[0];
  ByteView pieces(data + 1, size - 1);
  std::array<int, 2> pair{};
  PANDO_ASSERT(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair.data()) == 0);
  const Fd theirs(pair[0]);
  host->open(Fd(pair[1]), make_client(mode));
  Bytes unread;
  const auto send = [&](ByteView piece) {
    // A socket that is full or shut drops the rest: the client has gone.
    const ssize_t sent = ::send(theirs.get(), piece.data(), piece.size(), MSG_NOSIGNAL);
    host->turn();
    if ((mode & kReadsLate) == 0) read_answers(theirs.get(), unread);
    return sent == static_cast<ssize_t>(piece.size());
  };
  bool open = (mode & kAddHeader) == 0 || send(kHeader);
  while (open && !pieces.empty()) {
    const std::size_t wanted = pieces[0] == 0 ? 256 : pieces[0];
    const std::size_t length = std::min(wanted, pieces.size() - 1);
    if (length != 0) open = send(pieces.subspan(1, length));
    pieces = pieces.subspan(1 + length);
  }
  ::shutdown(theirs.get(), SHUT_WR);
  int turns = 0;
  while (host->has_connection()) {
    PANDO_ASSERT(++turns < kMaxTurns);
    host->turn();
    read_answers(theirs.get(), unread);
  }
  host->turn();  // handlers of the closed socket
  read_answers(theirs.get(), unread);
  PANDO_ASSERT(unread.empty());
  return 0;
}
