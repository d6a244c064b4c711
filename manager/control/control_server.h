#pragma once

#include <asio/generic/seq_packet_protocol.hpp>
#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>

#include "dns/name.h"
#include "ipc/channel.h"
#include "ipc/control.h"
#include "manager/support/rate_limited_log.h"

namespace pando::manager {

/// The control socket: takes requests of pandoctl (ipc/control.h) from who may give commands, one
/// after the other on each connection.
class ControlServer {
 public:
  using Reply = std::function<void(Result<nlohmann::json>)>;
  /// Answers one request: calls `reply` once, now or later.
  using Handler = std::function<void(const ipc::ControlRequest&, Reply reply)>;
  /// kEdit: reads, and edits records in transactions that end with the connection.
  enum class Rights : std::uint8_t { kNone, kRead, kEdit, kAll };
  struct Callbacks {
    std::function<Rights(std::uint32_t uid)> rights_of;
    /// Whether connections with kEdit may make this request, which changes something. It may be
    /// changed to what they may ask for.
    std::function<Status(ipc::ControlRequest& request)> restrict;
    Handler handler;
    /// The connection with this number (ControlRequest::connection) is closed.
    std::function<void(std::uint64_t connection)> ended;
  };

  /// `group`: of pandoctl's users (ipc::listen_packets).
  static Result<std::unique_ptr<ControlServer>> open(asio::io_context& io,
                                                     const std::string& run_directory,
                                                     std::optional<std::uint32_t> group,
                                                     Callbacks callbacks);
  ~ControlServer();
  /// Takes no more requests; replies on their way still go out.
  void close();

 private:
  struct Connection;
  ControlServer(asio::io_context& io, Callbacks callbacks);
  void accept_next();
  void accept_some();
  /// Whether a connection of this user may be opened beside the open ones.
  [[nodiscard]] bool has_room(std::uint32_t uid) const;
  void admit(Fd socket);
  void refuse(const Fd& socket, std::uint32_t uid);
  void packet(const std::shared_ptr<Connection>& connection, const Bytes& data);
  void answer(const std::shared_ptr<Connection>& connection, const nlohmann::json& message);
  void end(const std::shared_ptr<Connection>& connection);
  [[nodiscard]] Status check_rights(Rights rights, ipc::ControlRequest& request) const;
  static void send(const std::shared_ptr<Connection>& connection, const nlohmann::json& message);

  asio::io_context& io_;
  Callbacks callbacks_;
  asio::generic::seq_packet_protocol::socket listening_;
  asio::steady_timer pause_;
  RateLimitedLog refused_;
  std::set<std::shared_ptr<Connection>> connections_;
  std::uint64_t numbers_ = 0;  // given to connections
};

}  // namespace pando::manager
