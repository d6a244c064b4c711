#pragma once

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "ipc/channel.h"
#include "ipc/worker_messages.h"
#include "shm/slots.h"

namespace pando::worker {

/// Receives the answer to a forwarded request: octets for the client, or none.
using ReplyHandler = std::function<void(Bytes)>;

/// The worker's connection to the manager. Requests that need an absent manager are held for
/// kHoldTime, for the manager's successor. So are queries that a lost manager had not answered; its
/// updates may have been executed and are never sent again. After that time, or without a reply, they fail
/// (Responder::make_failure()). Everything else that the worker does waits for no manager.
/// Connecting is tried every 10 ms for 2 s, then every 100 ms, while other work goes on.
class ManagerLink {
 public:
  /// Limit of requests that the manager has not answered, including those whose clients already got
  /// the failure. Further requests fail immediately.
  static constexpr std::size_t kMaxPending = 256;
  /// Limit of pending queries that the manager has to verify. Any client that knows a key's name
  /// can send them, so room must remain for updates.
  static constexpr std::size_t kMaxPendingQueries = 64;

  /// Time after which a client gets the failure; the request stays pending. The manager may be
  /// stopped in a debugger or syncing to a dying disk. The time is shorter than clients wait before
  /// they give up (nsupdate: twelve seconds).
  static constexpr std::chrono::milliseconds kReplyTimeout{10'000};
  /// Time for which requests wait for the successor of a manager that was lost. A service manager
  /// starts one within 200 ms. Clients repeat a request after three seconds at the earliest
  /// (nsupdate), so they do not notice.
  static constexpr std::chrono::milliseconds kHoldTime{2'000};

  /// A queue that the worker serves, with descriptors that stay the worker's.
  struct HeldXdpQueue {
    ipc::XdpQueue queue;
    int socket = -1;
    int link = -1;  ///< of the program at the interface
  };

  struct Handlers {
    std::function<std::vector<std::pair<ipc::SocketDescription, int>>()> sockets;  ///< for Hello
    std::function<std::vector<HeldXdpQueue>()> xdp_queues;  ///< for Hello; may be empty
    std::function<void(ipc::Setup&&, shm::SlotLoan files, Fd image)> setup;
    std::function<void(ipc::Keys&&)> keys;
    std::function<void(ipc::Sockets&&, std::vector<Fd>&&)> serve;
    std::function<void(const ipc::CloseSockets&)> close;
    std::function<void(const ipc::ServeXdp&, std::vector<Fd>&&)> serve_xdp;
    std::function<void(const ipc::CloseXdp&)> close_xdp;
    std::function<void(const ipc::Stop&)> stop;
    std::function<void(const ipc::SentAway&)> sent_away;
    std::function<void(const ipc::Logging&)> logging;
    std::function<void(ipc::Dnstap&&, Fd stream)> dnstap;
    std::function<void(const ipc::QueryLog&, Fd stream)> query_log;
    std::function<void(const ipc::TlsIntake&, Fd connection)> tls_intake;
  };
  struct Identity {
    std::uint32_t slot = 0;
    std::uint64_t layout = 0;
    std::string socket_path;
    std::string build{};  ///< own_build()
  };

  ManagerLink(asio::io_context& io, Identity identity, Handlers handlers,
              std::chrono::milliseconds reply_timeout = kReplyTimeout,
              std::chrono::milliseconds hold_time = kHoldTime);
  void start();

  [[nodiscard]] bool connected() const noexcept { return connected_; }
  /// Whether requests are sent or wait for a successor; otherwise each fails immediately.
  [[nodiscard]] bool takes_requests() const noexcept { return connected_ || holding_; }
  /// Number of requests whose clients wait for the answer.
  [[nodiscard]] std::size_t pending() const noexcept;
  /// Number of requests that the manager has not answered, including those whose clients no longer
  /// wait.
  [[nodiscard]] std::size_t unanswered() const noexcept { return pending_.size(); }
  /// Asks the manager. `reply` is called exactly once, later or immediately: with the manager's
  /// answer, or with `failure` when no answer can come.
  void forward(ipc::Forward&& request, Bytes failure, ReplyHandler reply);
  /// Asks for the signature on one message of a transfer; an empty answer means failure.
  void sign(ipc::SignTransfer&& request, ReplyHandler reply);
  /// Tells the manager that a stream ends before its last message: its place there is free again.
  void abort_stream(std::uint64_t stream);
  /// Sends a message that needs no answer; without a connection the message is lost.
  void tell(const ipc::FromWorker& message);
  [[nodiscard]] std::uint64_t next_id() noexcept { return ++last_id_; }

 private:
  /// An entry stays until the manager has answered or is gone. The manager counts requests of a
  /// worker, too, and disconnects a worker above the agreed number. Ids are never reused, so a late
  /// answer finds its own entry or none.
  struct Pending {
    Bytes failure;
    ReplyHandler reply;  ///< empty once the client has the failure
    std::chrono::steady_clock::time_point deadline;
    bool query = false;
    /// The request, if another manager may get it: none has it yet, or it is a query.
    std::optional<ipc::FromWorker> again{};
    bool held = false;  ///< it waits for a manager
  };

  void connect();
  void connect_later();
  void say_hello();
  void hand_over(const ipc::FromWorker& message, std::initializer_list<int> descriptors);
  void take_packet(ipc::Packet&& packet);
  void take(ipc::Setup&& setup, ipc::Packet& packet);
  void take(ipc::Keys&& keys, ipc::Packet& packet);
  void take(ipc::Sockets&& sockets, ipc::Packet& packet);
  void take(ipc::CloseSockets&& close, ipc::Packet& packet);
  void take(ipc::Reply&& reply, ipc::Packet& packet);
  void take(ipc::Finished&& finished, ipc::Packet& packet);
  void take(ipc::Stop&& stop, ipc::Packet& packet);
  void take(ipc::SentAway&& away, ipc::Packet& packet);
  void take(ipc::Logging&& logging, ipc::Packet& packet);
  void take(ipc::Dnstap&& dnstap, ipc::Packet& packet);
  void take(ipc::QueryLog&& log, ipc::Packet& packet);
  void take(ipc::ServeXdp&& serve, ipc::Packet& packet);
  void take(ipc::CloseXdp&& close, ipc::Packet& packet);
  void take(ipc::TlsIntake&& intake, ipc::Packet& packet);
  void ask(std::uint64_t id, ipc::FromWorker&& message, Pending&& pending);
  void send_held();
  [[nodiscard]] std::size_t pending_queries() const noexcept;
  void lost(const Error& error);
  void hold_or_fail_all();
  void end_hold();
  void expire_pending();

  asio::io_context& io_;
  Identity identity_;
  Handlers handlers_;
  std::chrono::milliseconds reply_timeout_;
  std::chrono::milliseconds hold_time_;
  asio::steady_timer retry_;
  std::uint32_t retries_ = 0;  ///< since the last Setup
  asio::steady_timer expiry_;
  asio::steady_timer hold_end_;
  bool holding_ = false;  ///< a manager was lost less than hold_time_ ago
  std::shared_ptr<ipc::Channel> channel_;
  bool connected_ = false;
  std::uint64_t last_id_ = 0;
  std::map<std::uint64_t, Pending> pending_;  ///< by id, hence by age
};

}  // namespace pando::worker
