#include "tls/control_link.h"

#include "base/secret.h"
#include "ipc/log.h"

namespace pando::tls {

namespace {

constexpr auto kFirstRetry = std::chrono::milliseconds(10);
constexpr std::uint32_t kFirstRetries = 200;
constexpr auto kRetry = std::chrono::milliseconds(100);
constexpr std::size_t kMaxQueuedBytes = std::size_t{64} << 10;

}  // namespace

ControlLink::ControlLink(asio::io_context& io, std::string socket_path, ipc::TlsHello hello,
                         Handlers handlers)
    : io_(io),
      socket_path_(std::move(socket_path)),
      hello_(std::move(hello)),
      handlers_(std::move(handlers)),
      retry_(io) {}

void ControlLink::connect() {
  auto socket = ipc::connect_packets(socket_path_);
  if (!socket) {
    if (socket.error().code != Errc::kNotFound)
      log::error("manager_connection_failed", "error", socket.error().text);
    return connect_later();
  }
  channel_ = ipc::Channel::open(io_, std::move(*socket), kMaxQueuedBytes);
  channel_->start({[this](ipc::Packet&& packet) { take_packet(std::move(packet)); },
                   [this](const Error& error) { lost(error); }});
  tell(hello_);
}

void ControlLink::connect_later() {
  if (leaving_) return;
  retry_.expires_after(++retries_ < kFirstRetries ? kFirstRetry : kRetry);
  retry_.async_wait([this](const asio::error_code& error) {
    if (!error) connect();
  });
}

void ControlLink::tell(const ipc::FromTls& message) {
  if (!channel_ || !channel_->is_open()) return;
  if (auto sent = channel_->send(ipc::encode(message)); !sent) lost(sent.error());
}

void ControlLink::take_packet(ipc::Packet&& packet) {
  const WipeFreed wipe_freed;  // the keys of tickets
  retries_ = 0;
  auto message = ipc::decode_to_tls(packet.data);
  wipe(packet.data);
  if (!message) return lost(message.error());
  handlers_.message(std::move(*message), std::move(packet.descriptors));
}

void ControlLink::lost(const Error& error) {
  if (!channel_) return;
  log::info("manager_lost", "reason", error.text);
  channel_->close();
  channel_.reset();
  connect_later();
}

}  // namespace pando::tls
