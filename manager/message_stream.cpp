#include "manager/message_stream.h"

#include <asio/buffer.hpp>
#include <asio/read.hpp>
#include <asio/redirect_error.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/write.hpp>

#include "manager/outgoing_socket.h"

namespace pando::manager {

asio::awaitable<Status> MessageStream::connect() {
  arm();
  asio::error_code error = open_towards(socket_, peer_, source_);
  if (!error)
    co_await socket_.async_connect(to_asio<asio::ip::tcp>(peer_),
                                   asio::redirect_error(asio::use_awaitable, error));
  co_return verdict(error, "connect");
}

asio::awaitable<Status> MessageStream::send(const Bytes& message) {
  arm();
  Bytes framed;
  append_be16(framed, static_cast<std::uint16_t>(message.size()));  // RFC 1035 §4.2.2
  append(framed, message);
  asio::error_code error;
  co_await asio::async_write(socket_, asio::buffer(framed),
                             asio::redirect_error(asio::use_awaitable, error));
  co_return verdict(error, "send");
}

asio::awaitable<Result<ByteView>> MessageStream::receive() {
  arm();
  asio::error_code error;
  std::uint8_t prefix[2];
  co_await asio::async_read(socket_, asio::buffer(prefix),
                            asio::redirect_error(asio::use_awaitable, error));
  if (!error) {
    buffer_.resize(load_be16(prefix));
    co_await asio::async_read(socket_, asio::buffer(buffer_),
                              asio::redirect_error(asio::use_awaitable, error));
  }
  if (auto ok = verdict(error, "receive"); !ok) co_return pass(ok);
  co_return ByteView(buffer_);
}

void MessageStream::arm() {
  deadline_.expires_after(patience_);
  deadline_.async_wait([this, alive = std::weak_ptr<int>(alive_)](asio::error_code error) {
    if (error || alive.expired()) return;
    timed_out_ = true;
    asio::error_code ignored;
    socket_.close(ignored);
  });
}

Status MessageStream::verdict(const asio::error_code& error, const char* step) const {
  if (timed_out_) return fail(Errc::kIo, "{}: no progress in {} ms", step, patience_.count());
  if (error) return fail(Errc::kIo, "{}: {}", step, error.message());
  return {};
}

}  // namespace pando::manager
