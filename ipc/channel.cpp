#include "ipc/channel.h"

#include <sys/socket.h>

#include "base/secret.h"

namespace pando::ipc {

namespace {
/// Packets taken before other handlers of the loop get their turn.
constexpr int kReadBudget = 32;

Result<SendOutcome> send_one(int socket, ByteView data, const std::vector<Fd>& descriptors) {
  std::vector<int> raw;
  raw.reserve(descriptors.size());
  for (const auto& fd : descriptors) raw.push_back(fd.get());
  return send_packet(socket, data, raw);
}
}  // namespace

std::shared_ptr<Channel> Channel::open(asio::io_context& io, Fd socket,
                                       std::size_t max_queued_bytes) {
  std::shared_ptr<Channel> channel(new Channel(io, max_queued_bytes));
  const asio::generic::seq_packet_protocol protocol(AF_UNIX, 0);
  asio::error_code ignored;
  channel->socket_.assign(protocol, socket.release(), ignored);
  return channel;
}

Channel::Channel(asio::io_context& io, std::size_t max_queued_bytes)
    : socket_(io), max_queued_bytes_(max_queued_bytes) {}

Channel::~Channel() {
  const WipeFreed wipe_freed;
  queue_.clear();
}

void Channel::start(Handlers handlers) {
  handlers_ = std::make_shared<const Handlers>(std::move(handlers));
  wait_readable();
}

Status Channel::send(Bytes data, std::vector<Fd> descriptors) {
  if (!is_open()) return fail(Errc::kNotFound, "the connection is closed");
  if (queue_.empty()) {
    auto sent = send_one(native(), data, descriptors);
    if (!sent) return pass(sent);
    if (*sent != SendOutcome::kWouldBlock) return {};
  }
  if (queued_bytes_ + data.size() > max_queued_bytes_)
    return fail(Errc::kFull, "{} bytes wait for the other side already", queued_bytes_);
  queued_bytes_ += data.size();
  queue_.push_back({std::move(data), std::move(descriptors)});
  wait_writable();
  return {};
}

void Channel::close() noexcept {
  const WipeFreed wipe_freed;
  asio::error_code ignored;
  socket_.close(ignored);
  queue_.clear();
  queued_bytes_ = 0;
  handlers_.reset();
}

void Channel::resume() {
  is_paused_ = false;
  if (is_open() && !is_reading_) wait_readable();
}

void Channel::wait_readable() {
  if (waiting_readable_) return;
  waiting_readable_ = true;
  socket_.async_wait(Socket::wait_read, [self = shared_from_this()](const asio::error_code& error) {
    self->waiting_readable_ = false;
    if (!error && self->is_open() && !self->is_paused_) self->read_packets();
  });
}

void Channel::read_packets() {
  const auto self = shared_from_this();
  Packet packet;
  is_reading_ = true;
  for (int i = 0; i < kReadBudget && !is_paused_; ++i) {
    auto got = receive_packet(native(), packet);
    if (!got) return fail_with(got.error());
    if (!*got) break;
    const auto handlers = handlers_;
    if (handlers && handlers->packet) handlers->packet(std::move(packet));
    if (!is_open()) return;
  }
  is_reading_ = false;
  if (!is_paused_) wait_readable();
}

void Channel::flush() {
  const WipeFreed wipe_freed;  // some packets have keys
  while (!queue_.empty()) {
    auto sent = send_one(native(), queue_.front().data, queue_.front().descriptors);
    if (!sent) return fail_with(sent.error());
    if (*sent == SendOutcome::kWouldBlock) return wait_writable();
    queued_bytes_ -= queue_.front().data.size();
    queue_.pop_front();
  }
}

void Channel::wait_writable() {
  if (waiting_writable_) return;
  waiting_writable_ = true;
  socket_.async_wait(Socket::wait_write,
                     [self = shared_from_this()](const asio::error_code& error) {
                       self->waiting_writable_ = false;
                       if (!error && self->is_open()) self->flush();
                     });
}

void Channel::fail_with(const Error& error) {
  const auto self = shared_from_this();
  const auto handlers = handlers_;
  close();
  if (handlers && handlers->closed) handlers->closed(error);
}

}  // namespace pando::ipc
