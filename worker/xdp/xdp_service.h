#pragma once

#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "base/fd.h"
#include "ipc/worker_messages.h"
#include "worker/net/core.h"
#include "worker/net/tapped_requests.h"
#include "worker/net/udp_service.h"
#include "worker/xdp/frame.h"
#include "worker/xdp/xdp_socket.h"

namespace pando::worker {

/// Serves the worker's AF_XDP sockets: requests are read from frames, and their responses written
/// into others. The program at the interface lets no other frames through than queries to addresses
/// of this server; all else is the sockets'.
class XdpService {
 public:
  /// The report to the manager.
  struct Calls {
    std::function<void(const ipc::XdpQueue&)> serving;  ///< the socket has its frames
    std::function<void(const ipc::XdpQueue&)> closed;   ///< the socket was closed
  };

  /// `udp` sends answers that come from the manager.
  XdpService(asio::io_context& io, Core& core, UdpService& udp, Calls calls);
  ~XdpService();
  XdpService(const XdpService&) = delete;
  XdpService& operator=(const XdpService&) = delete;

  /// Serves the queue from now on. Without a valid socket the queue counts as closed immediately.
  void add(const ipc::ServeXdp& what, std::vector<Fd>&& descriptors);
  /// Answers what has come, waits a moment for frames that are on their way, and closes the socket.
  void close(const ipc::XdpQueue& queue);
  /// Reads all sockets until they are empty (the worker is leaving).
  void drain();
  /// The worker's queues, each with the descriptors of its socket and link.
  [[nodiscard]] std::vector<ManagerLink::HeldXdpQueue> held() const;

 private:
  struct Queue;
  using QueuePtr = std::shared_ptr<Queue>;

  void wait(const QueuePtr& queue);
  bool read(Queue& queue);
  void answer_together(Queue& queue, std::span<const ByteView> frames, const timespec& received);
  void answer(Queue& queue, const RequestFrame& request, const Arrival& arrival, std::size_t i,
              const timespec& received);
  void flush(Queue& queue);
  void flush_later(Queue& queue);
  void empty(Queue& queue);
  void finish_close(const ipc::XdpQueue& queue);
  void count_missed();

  asio::io_context& io_;
  Core& core_;
  UdpService& udp_;
  Calls calls_;
  std::map<ipc::XdpQueue, QueuePtr> queues_;
  TappedRequests tapped_;  ///< of the batch in hand
  asio::steady_timer missed_timer_;
  std::size_t answers_ = 0;        ///< of the batch in hand
  std::size_t answer_octets_ = 0;  ///< the same
  std::uint16_t identification_ = 0;
};

}  // namespace pando::worker
