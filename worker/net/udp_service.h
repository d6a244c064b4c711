#pragma once

#include <asio/io_context.hpp>
#include <asio/ip/udp.hpp>
#include <asio/steady_timer.hpp>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "worker/net/core.h"
#include "worker/net/tapped_requests.h"
#include "worker/net/udp_batch.h"

namespace pando::worker {

/// Serves the worker's UDP sockets. A readable socket is received from and answered in batches
/// until it is empty or its budget is used. Then other handlers of the loop get their turn.
class UdpService {
 public:
  /// `drained` is called when an orphaned socket was found empty and closed.
  UdpService(asio::io_context& io, Core& core, std::function<void(std::uint32_t)> drained);
  ~UdpService();

  /// Places later batches in memory that outlives the process. Call when attached, before the first
  /// socket. A batch of the slot's previous worker is answered when its socket comes.
  void keep_batches(const shm::Reader::Scratch& memory);
  void add(const ipc::SocketDescription& description, Fd socket);
  /// Sets the new id and position of a socket known by its address; returns false when none has
  /// that address.
  bool update(const ipc::SocketDescription& description);
  /// Answers the queued requests and closes the socket.
  bool close(std::uint32_t id);
  /// Reads all sockets until they are empty (the worker is leaving).
  void drain();
  /// Asks the manager about a request that came to `client`.local by another way than a socket. The
  /// answer leaves by the worker's own socket there; false when there is none. `response`: as in
  /// ipc::Forward.
  bool forward(ByteView message, const Client& client, const Outcome& outcome, ByteView response,
               std::shared_ptr<const HeldExchange> held);
  /// The worker's own sockets with their descriptors, without orphaned sockets.
  [[nodiscard]] std::vector<std::pair<ipc::SocketDescription, int>> sockets() const;

 private:
  struct Socket;
  /// The way back of a forwarded request's answer.
  struct ReplyPath {
    Endpoint to;
    std::optional<IpAddress> source;  ///< for wildcard sockets
    bool direct = false;              ///< the manager may send the answer itself
  };
  /// Limit of batches of one socket before other sockets, TCP and the manager get their turn.
  static constexpr int kBudget = 4;

  void wait(const std::shared_ptr<Socket>& socket);
  bool read(const std::shared_ptr<Socket>& socket);
  void empty(const std::shared_ptr<Socket>& socket);
  void answer_messages(const std::shared_ptr<Socket>& socket, std::size_t begin, std::size_t end);
  void answer_together(const std::shared_ptr<Socket>& socket, std::size_t begin, std::size_t end,
                       const timespec& received);
  void answer_inherited(const std::shared_ptr<Socket>& socket);
  bool unwrap(std::size_t i, const Socket& socket, Arrival& arrival) const;
  void forward(const std::shared_ptr<Socket>& socket, std::size_t i, const Arrival& arrival,
               const Outcome& outcome);
  void ask_manager(const std::shared_ptr<Socket>& socket, const ReplyPath& path, ByteView message,
                   const Client& client, const Outcome& outcome, ByteView response,
                   std::shared_ptr<const HeldExchange> held);
  void note_for_taps(const Socket& socket, std::size_t i, const Arrival& arrival,
                     const Outcome& outcome, const timespec& received);
  [[nodiscard]] int sender_for(const std::shared_ptr<Socket>& socket) const;
  void read_orphaned(const std::shared_ptr<Socket>& socket, int empty_looks);

  asio::io_context& io_;
  Core& core_;
  std::function<void(std::uint32_t)> drained_;
  std::unique_ptr<UdpBatch> batch_;
  std::vector<std::shared_ptr<Socket>> sockets_;
  TappedRequests tapped_;  ///< of the batch in hand
};

}  // namespace pando::worker
