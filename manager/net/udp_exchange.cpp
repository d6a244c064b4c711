#include "manager/net/udp_exchange.h"

#include <array>
#include <asio/buffer.hpp>
#include <asio/ip/udp.hpp>
#include <asio/redirect_error.hpp>
#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>
#include <memory>

#include "manager/net/outgoing_socket.h"

namespace pando::manager {

namespace {

using asio::ip::udp;

/// Larger answers are cut, and then rejected by the reader; an answer to a NOTIFY has few octets.
constexpr std::size_t kLargestAnswer = 4096;

/// Errors that the network reports about a peer that is not there.
bool tells_absence(const asio::error_code& error) {
  return error == asio::error::connection_refused || error == asio::error::host_unreachable ||
         error == asio::error::network_unreachable;
}

/// A connected UDP socket with a deadline: the kernel drops datagrams of other senders, and reports
/// ICMP errors.
class Attempt {
 public:
  Attempt(asio::any_io_executor executor, const UdpExchange& exchange)
      : exchange_(exchange), socket_(executor), deadline_(executor), again_(executor) {}
  ~Attempt() {
    deadline_.cancel();
    again_.cancel();
  }

  Status open() {
    asio::error_code error = open_towards(socket_, exchange_.peer, exchange_.source);
    if (!error) socket_.connect(to_asio<udp>(exchange_.peer), error);
    if (error) return fail(Errc::kIo, "{}", error.message());
    deadline_.expires_after(exchange_.timeout);
    deadline_.async_wait([this, alive = std::weak_ptr<int>(alive_)](asio::error_code ended) {
      if (ended || alive.expired()) return;
      timed_out_ = true;
      asio::error_code ignored;
      socket_.close(ignored);
    });
    if (exchange_.again.count() > 0) send_later();
    return {};
  }

  asio::awaitable<Status> run() {
    asio::error_code error;
    co_await socket_.async_send(asio::buffer(exchange_.message),
                                asio::redirect_error(asio::use_awaitable, error));
    while (goes_on(error)) {
      const std::size_t size = co_await socket_.async_receive(
          asio::buffer(buffer_), asio::redirect_error(asio::use_awaitable, error));
      if (!error && exchange_.accept(ByteView(buffer_.data(), size))) co_return Status();
    }
    if (timed_out_) error = absence_;
    if (!error) co_return fail(Errc::kIo, "no answer");
    co_return fail(Errc::kIo, "{}", error.message());
  }

 private:
  bool goes_on(const asio::error_code& error) {
    if (timed_out_) return false;
    const bool is_absent = exchange_.again.count() > 0 && tells_absence(error);
    if (is_absent) absence_ = error;
    return !error || is_absent;
  }

  /// An error of the network comes with the next receive.
  void send_later() {
    again_.expires_after(exchange_.again);
    again_.async_wait([this, alive = std::weak_ptr<int>(alive_)](asio::error_code ended) {
      if (ended || alive.expired() || timed_out_) return;
      asio::error_code ignored;
      socket_.send(asio::buffer(exchange_.message), 0, ignored);
      send_later();
    });
  }

  const UdpExchange& exchange_;
  udp::socket socket_;
  asio::steady_timer deadline_;
  asio::steady_timer again_;
  asio::error_code absence_;  // the last error that showed the peer's absence
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
  bool timed_out_ = false;
  std::array<std::uint8_t, kLargestAnswer> buffer_;
};

}  // namespace

asio::awaitable<Status> udp_exchange(UdpExchange exchange) {
  Attempt attempt(co_await asio::this_coro::executor, exchange);
  if (auto opened = attempt.open(); !opened) co_return opened;
  co_return co_await attempt.run();
}

}  // namespace pando::manager
