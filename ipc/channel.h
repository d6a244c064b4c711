#pragma once

#include <asio/generic/seq_packet_protocol.hpp>
#include <asio/io_context.hpp>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "ipc/packet_socket.h"

namespace pando::ipc {

/// One SEQPACKET connection in an Asio loop: whole packets in and out, never blocking. Packets that
/// the kernel does not take are queued here up to `max_queued_bytes`.
class Channel : public std::enable_shared_from_this<Channel> {
 public:
  struct Handlers {
    std::function<void(Packet&&)> packet;
    /// Called once, when the other side closed or broke the framing; not after close().
    std::function<void(const Error&)> closed;
  };

  static std::shared_ptr<Channel> open(asio::io_context& io, Fd socket,
                                       std::size_t max_queued_bytes);
  ~Channel();
  void start(Handlers handlers);
  /// Takes no more packets until resume(), so that the peer has to wait. The end of the connection
  /// is not noticed meanwhile.
  void pause() noexcept { is_paused_ = true; }
  void resume();

  /// Queues one packet and takes the descriptors over (they are closed when sent). kFull when the
  /// queue would pass its bound, because the peer does not read; that packet is not sent. Packets
  /// to a peer that has closed are lost without an error. closed() reports the end, after the last
  /// packet of the peer was taken.
  Status send(Bytes data, std::vector<Fd> descriptors = {});
  /// Closes at once; queued packets are lost and handlers are not called any more.
  void close() noexcept;
  [[nodiscard]] bool is_open() const noexcept { return socket_.is_open(); }
  [[nodiscard]] int native() { return socket_.native_handle(); }

 private:
  using Socket = asio::generic::seq_packet_protocol::socket;
  struct Outgoing {
    Bytes data;
    std::vector<Fd> descriptors;
  };
  Channel(asio::io_context& io, std::size_t max_queued_bytes);
  void wait_readable();
  void read_packets();
  void flush();
  void wait_writable();
  void fail_with(const Error& error);

  Socket socket_;
  /// Shared, so that a handler may close the channel while it runs.
  std::shared_ptr<const Handlers> handlers_;
  std::deque<Outgoing> queue_;
  std::size_t queued_bytes_ = 0;
  std::size_t max_queued_bytes_;
  bool waiting_writable_ = false;
  bool waiting_readable_ = false;
  bool is_reading_ = false;  // a handler runs
  bool is_paused_ = false;
};

}  // namespace pando::ipc
