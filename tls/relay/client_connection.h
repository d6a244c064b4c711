#pragma once

#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/address.h"
#include "base/bytes.h"
#include "base/fd.h"
#include "ipc/tls_messages.h"
#include "tls/relay/deadline_queue.h"
#include "tls/session/openssl.h"
#include "tls/session/socket_bio.h"

namespace pando::tls {

class ClientConnection;
class ServerContext;
using Clients = std::list<std::shared_ptr<ClientConnection>>;
using Deadlines = DeadlineQueue<ClientConnection>;

/// Interface of a connection to the part that has all of them.
class ClientHost {
 public:
  virtual ~ClientHost() = default;
  virtual const ServerContext& context() noexcept = 0;
  /// Deadlines of handshakes, and of clients that take nothing or do not close.
  virtual Deadlines& handshakes() noexcept = 0;
  virtual Deadlines& stalled() noexcept = 0;
  /// Memory for octets on their way; used within one call only.
  virtual std::span<std::uint8_t> space() noexcept = 0;
  [[nodiscard]] virtual bool is_proxy(const IpAddress& address) const noexcept = 0;
  /// The client is known. False: it is over a limit, and its connection is to end.
  virtual bool begins_handshake(ClientConnection& client) = 0;
  /// The handshake is complete: gives the client to a worker. None: there is no worker.
  virtual std::optional<Fd> hand_over(ClientConnection& client, const ipc::TlsConnection& message,
                                      bool resumed) = 0;
  /// A certificate meets no demand. The client goes on without an identity.
  virtual void is_unproven(const Endpoint& client, std::string_view fault) = 0;
  /// `fault`: for the log; empty: nothing is wrong.
  virtual void ended(ClientConnection& client, std::string_view fault) noexcept = 0;
};

/// One client: a PROXY header if it comes through a load balancer, the handshake, and then octets
/// both ways between its TLS and a stream to a worker. Every buffer has a bound: a side that does
/// not read keeps the other from sending. An idle connection has no buffer. How long a client may be
/// idle is the worker's business: this ends when the worker's end does.
class ClientConnection : public std::enable_shared_from_this<ClientConnection> {
 public:
  using Socket = asio::posix::basic_stream_descriptor<asio::io_context::executor_type>;

  /// `remote`, `local`: addresses of the socket.
  ClientConnection(ClientHost& host, Socket socket, const Endpoint& remote,
                   const Endpoint& local);
  ~ClientConnection();

  void start();
  /// Ends the connection; `fault` as in ClientHost::ended().
  void close(std::string_view fault = {}) noexcept;
  /// The time of its state is over.
  void expired() noexcept;

  [[nodiscard]] const Endpoint& client() const noexcept { return client_; }
  /// Its certificate is a remote's.
  [[nodiscard]] bool has_identity() const noexcept { return has_identity_; }
  [[nodiscard]] bool shakes_hands() const noexcept { return state_ == State::kHandshake; }
  /// begins_handshake() has admitted it.
  [[nodiscard]] bool is_admitted() const noexcept { return is_admitted_; }
  [[nodiscard]] Clients::iterator place() const noexcept { return place_; }
  void set_place(Clients::iterator place) noexcept { place_ = place; }

 private:
  /// RFC 8446 §4.6.3 sets no limit; one each 2^24 records is due. So many without data are none that
  /// a client needs.
  static constexpr int kMaxKeyUpdates = 32;

  enum class State : std::uint8_t {
    kProxyHeader,
    kHandshake,
    kRelay,
    kClosing,  ///< all octets are sent, and the client is to close
  };
  enum class Progress : std::uint8_t {
    kMore,     ///< there may be more to do
    kWaits,    ///< a socket will be ready later
    kEnded,    ///< nothing is left to do in this direction
  };
  struct Waits {
    bool to_read = false;
    bool to_write = false;
    bool for_worker = false;
    bool to_send = false;
  };
  using Wait = asio::posix::descriptor_base::wait_type;

  void go_on();
  void go_on_later();
  void read_proxy_header();
  void begin_handshake(Bytes read_before);
  void shake_hands();
  void established();
  [[nodiscard]] std::vector<std::string> prove_identity();
  void relay();
  Progress read_client();
  Progress send_to_worker(ByteView octets);
  Progress read_worker();
  Progress send_to_client(ByteView octets);
  Progress after_ssl(int result);
  void say_goodbye();
  void discard_input();
  void wait(Socket& socket, Wait what, bool Waits::*waiting);
  void enter(Deadlines& queue);
  void leave_deadlines() noexcept;
  static void on_message(int is_sent, int version, int type, const void* data, size_t size,
                         SSL* ssl, void* self);

  ClientHost& host_;
  Socket outside_;
  Socket inside_;
  Endpoint client_;
  Endpoint local_;
  std::unique_ptr<SocketBio> octets_;
  SslPointer ssl_;
  Bytes to_worker_;  ///< that the worker has not taken; before: a PROXY header that is not whole
  Bytes to_client_;  ///< that the client has not taken
  Deadlines* deadlines_ = nullptr;  ///< that it is in
  Deadlines::Place deadline_;
  Clients::iterator place_;
  State state_ = State::kHandshake;
  Waits waits_;
  int key_updates_ = 0;  ///< since the last data
  bool is_admitted_ = false;
  bool has_identity_ = false;
  bool input_ended_ = false;
};

}  // namespace pando::tls
