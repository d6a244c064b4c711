#include "manager/net/message_stream.h"

#include <sys/socket.h>

#include <asio/buffer.hpp>
#include <asio/redirect_error.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/write.hpp>
#include <cerrno>
#include <cstring>

#include "manager/net/outgoing_socket.h"

namespace pando::manager {

namespace {

constexpr std::size_t kPrefix = 2;
/// Buffer size for short messages, such as answers to SOA queries and small IXFRs. A longer message
/// gets a buffer for any message.
constexpr std::size_t kShort = 4096;
constexpr std::size_t kLongest = kPrefix + 65535;

/// Sends as much as the socket takes in one call: a turn of the event loop costs more than the
/// call. Errors are left to the later write of the rest.
std::size_t send_at_once(int socket, const Bytes& octets) {
  const ssize_t sent = ::send(socket, octets.data(), octets.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  return sent < 0 ? 0 : static_cast<std::size_t>(sent);
}

}  // namespace

asio::awaitable<Status> MessageStream::connect() {
  begin_step();
  asio::error_code error = open_towards(socket_, peer_, source_);
  if (!error)
    co_await socket_.async_connect(to_asio<asio::ip::tcp>(peer_),
                                   asio::redirect_error(asio::use_awaitable, error));
  Status connected = end_step(error, "connect");
  connected_ = connected.has_value();
  co_return connected;
}

asio::awaitable<Status> MessageStream::send(const Bytes& message) {
  begin_step();
  Bytes framed;
  framed.reserve(kPrefix + message.size());
  append_be16(framed, static_cast<std::uint16_t>(message.size()));  // RFC 1035 §4.2.2
  append(framed, message);
  asio::error_code error;
  const std::size_t sent = send_at_once(socket_.native_handle(), framed);
  if (sent < framed.size())
    co_await asio::async_write(socket_, asio::buffer(framed) + sent,
                               asio::redirect_error(asio::use_awaitable, error));
  co_return end_step(error, "send");
}

asio::awaitable<Result<ByteView>> MessageStream::receive() {
  begin_step();
  asio::error_code error;
  std::size_t whole = kPrefix;
  for (;;) {
    if (end_ - begin_ >= kPrefix) whole = kPrefix + load_be16(buffer_.data() + begin_);
    if (end_ - begin_ >= whole) break;
    make_room(whole);
    const std::size_t more =
        co_await socket_.async_receive(asio::buffer(buffer_.data() + end_, buffer_.size() - end_),
                                       asio::redirect_error(asio::use_awaitable, error));
    end_ += more;
    received_ += more;
    if (meter_ != nullptr) meter_->fetch_add(more, std::memory_order_relaxed);
    if (error) break;
  }
  if (auto ok = end_step(error, "receive"); !ok) co_return pass(ok);
  const ByteView message(buffer_.data() + begin_ + kPrefix, whole - kPrefix);
  begin_ += whole;
  co_return message;
}

/// Makes room for at least one more byte, and for a message of `octets` bytes.
void MessageStream::make_room(std::size_t octets) {
  const std::size_t have = end_ - begin_;
  if (begin_ > 0 && (have == 0 || begin_ + octets > buffer_.size())) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, have);
    begin_ = 0;
    end_ = have;
  }
  if (buffer_.size() < octets || buffer_.empty())
    buffer_.resize(octets <= kShort ? kShort : kLongest);
}

bool MessageStream::at_rest() {
  if (!connected_ || failed_ || begin_ != end_) return false;
  std::uint8_t octet = 0;
  const ssize_t there =
      ::recv(socket_.native_handle(), &octet, sizeof octet, MSG_PEEK | MSG_DONTWAIT);
  return there < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

void MessageStream::shrink() {
  if (buffer_.size() <= kShort || begin_ != end_) return;
  buffer_ = Bytes();
  begin_ = end_ = 0;
}

void MessageStream::begin_step() {
  due_ = Clock::now() + timeout_;
  in_step_ = true;
  if (!watching_ || due_ < deadline_.expiry()) watch();
}

void MessageStream::watch() {
  watching_ = true;
  deadline_.expires_at(due_);
  deadline_.async_wait([this, alive = std::weak_ptr<int>(alive_)](asio::error_code error) {
    if (error || alive.expired()) return;
    watching_ = false;
    if (!in_step_) return;
    if (Clock::now() < due_) return watch();
    timed_out_ = true;
    asio::error_code ignored;
    socket_.close(ignored);
  });
}

Status MessageStream::end_step(const asio::error_code& error, const char* step) {
  in_step_ = false;
  failed_ = failed_ || timed_out_ || error;
  if (timed_out_) return fail(Errc::kIo, "{}: no progress in {} ms", step, timeout_.count());
  if (error) return fail(Errc::kIo, "{}: {}", step, error.message());
  return {};
}

}  // namespace pando::manager
