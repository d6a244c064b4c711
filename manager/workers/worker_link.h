#pragma once

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <vector>

#include "base/bytes.h"
#include "ipc/channel.h"
#include "ipc/worker_messages.h"
#include "manager/launch/launcher.h"
#include "manager/workers/listeners.h"
#include "manager/workers/transfer_signer.h"
#include "manager/xdp/xdp_lender.h"
#include "shm/slots.h"

namespace pando::manager {

/// Answers one forwarded request: the bytes to send to the client, empty = send nothing. Call it
/// exactly once, on the commit thread, at any later time; when the worker has gone meanwhile the
/// answer is dropped (the client retries, and the manager knows retransmissions).
using ForwardReply = std::function<void(Bytes response)>;

/// Takes a request that a worker could not answer alone: UPDATE, NOTIFY, or a query signed with a
/// key the manager holds (then `request.response` is the response to be signed).
using ForwardHandler =
    std::function<void(std::uint32_t slot, ipc::Forward&& request, ForwardReply reply)>;

/// TSIG keys as workers get them. A key named in any allow-update is held: it never leaves the
/// manager.
struct WorkerKeys {
  std::vector<dns::TsigKey> shared;
  std::vector<ipc::HeldKey> held;
  std::vector<ipc::CookieSecret> cookie_secrets;  ///< first signs; empty: the pool makes one
};

/// One connection to one worker. Messages of the worker are hostile input: one that is out of order
/// or beyond a bound ends the connection.
class WorkerLink : public std::enable_shared_from_this<WorkerLink> {
 public:
  /// Requests that one worker may have under way; workers keep to it (ipc: 256).
  static constexpr std::size_t kMaxOutstanding = 512;
  /// Requests answered without the worker before they are reported to it in one message.
  static constexpr std::size_t kFinishedTogether = 16;

  /// The way of a response that the manager sends itself (ipc::Forward::through).
  struct ResponsePath {
    std::uint32_t socket = 0;
    Endpoint client;
    IpAddress source;  ///< used by wildcard sockets only
  };

  struct Handlers {
    /// The worker has said Hello and, when it survived an earlier manager, handed its sockets back.
    std::function<void(const ipc::Hello&, std::vector<Listeners::Socket>&& adopted,
                       std::vector<AdoptedXdpQueue>&& queues)>
        hello;
    std::function<void(ipc::Forward&&, ForwardReply)> forward;
    /// Sends a response through the socket of the worker's slot that it named; false: it cannot.
    std::function<bool(const ResponsePath&, ByteView response)> respond;
    KeyringSource keyring;
    std::function<void(std::uint32_t socket)> drained;
    std::function<void(const ipc::TransferFinished&)> transfer_finished;
    std::function<void()> dnstap_lost;
    std::function<void(const ipc::XdpQueue&)> xdp_served;
    std::function<void(const ipc::XdpQueue&)> xdp_closed;
    std::function<void(const Error&)> closed;  ///< last call
  };

  static std::shared_ptr<WorkerLink> open(asio::io_context& io, Fd socket, Child peer,
                                          Handlers handlers);

  /// The process that connected.
  [[nodiscard]] const Child& peer() const noexcept { return peer_; }
  /// The slot that its Hello named; 0 before.
  [[nodiscard]] std::uint32_t hello_slot() const noexcept { return hello_.slot; }
  /// `image`: of a store that borrows its chunks (shm/borrowing.h), or none.
  void send_setup(std::uint32_t slot, shm::SlotLoan files, Fd image);
  void send_keys(const WorkerKeys& keys);
  /// Passes sockets with their descriptors (`with_descriptors`) or only their new ids and
  /// positions.
  void send_sockets(const std::vector<Listeners::Socket>& sockets, bool with_descriptors,
                    bool orphaned = false);
  void close_sockets(std::vector<std::uint32_t> ids);
  /// A message that needs no more than to be sent, with its descriptors.
  void tell(const ipc::ToWorker& message, std::vector<Fd> descriptors = {});
  void stop(std::uint32_t grace_ms);
  /// Tells the worker which of its requests were answered without it. That waits until there are
  /// some, or for this call: each packet wakes the worker up.
  void tell_finished();
  /// Ends the connection without a further call of a handler.
  void close() noexcept;
  /// Ends the connection to a worker that goes on. The worker is told first which of its requests
  /// were answered. The others fail at the end: SERVFAIL, and no answer to a NOTIFY over UDP.
  void leave();

 private:
  WorkerLink(asio::io_context& io, Child peer, Handlers handlers);
  void take_packet(ipc::Packet&& packet);
  void take(ipc::Hello&& hello, ipc::Packet& packet);
  void take(ipc::Adopt&& adopt, ipc::Packet& packet);
  void take(ipc::Forward&& forward, ipc::Packet& packet);
  void take(ipc::SignTransfer&& sign, ipc::Packet& packet);
  void take(ipc::Drained&& drained, ipc::Packet& packet);
  void take(ipc::TransferFinished&& transfer, ipc::Packet& packet);
  void take(ipc::Bye&& bye, ipc::Packet& packet);
  void take(ipc::DnstapLost&& lost, ipc::Packet& packet);
  void take(ipc::AdoptXdp&& adopt, ipc::Packet& packet);
  void take(ipc::XdpServing&& serving, ipc::Packet& packet);
  void take(ipc::XdpClosed&& closed, ipc::Packet& packet);
  void hello_if_complete();
  void reply(std::uint64_t id, const std::optional<ResponsePath>& path, Bytes&& response);
  void send(const ipc::ToWorker& message, std::vector<Fd> descriptors = {});
  void broken(Error error);

  std::shared_ptr<ipc::Channel> channel_;
  Child peer_;
  /// Shared, so that a handler may close the link while it runs; null when closed.
  std::shared_ptr<const Handlers> handlers_;
  asio::steady_timer hello_deadline_;
  ipc::Hello hello_;
  bool hello_seen_ = false;
  bool ready_ = false;
  std::vector<Listeners::Socket> adopted_;
  std::vector<AdoptedXdpQueue> adopted_queues_;
  std::size_t outstanding_ = 0;
  bool stopping_ = false;
  std::vector<std::uint64_t> finished_;  ///< not reported to the worker yet
  TransferSigner signer_;
};

}  // namespace pando::manager
