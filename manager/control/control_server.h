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
  enum class Rights : std::uint8_t { kNone, kRead, kAll };
  using Guard = std::function<Rights(std::uint32_t uid)>;

  /// `group`: of pandoctl's users (ipc::listen_packets).
  static Result<std::unique_ptr<ControlServer>> open(asio::io_context& io,
                                                     const std::string& run_directory,
                                                     std::optional<std::uint32_t> group,
                                                     Guard rights_of, Handler handler);
  ~ControlServer();
  /// Takes no more requests; replies on their way still go out.
  void close();

 private:
  struct Connection;
  ControlServer(asio::io_context& io, Guard rights_of, Handler handler);
  void accept_next();
  void accept_some();
  /// Whether a connection of this user may be opened beside the open ones.
  [[nodiscard]] bool has_room(std::uint32_t uid, Rights rights) const;
  void admit(Fd socket);
  void refuse(const Fd& socket, std::uint32_t uid);
  void packet(const std::shared_ptr<Connection>& connection, const Bytes& data);
  void answer(const std::shared_ptr<Connection>& connection, const nlohmann::json& message);
  static void send(const std::shared_ptr<Connection>& connection, const nlohmann::json& message);

  asio::io_context& io_;
  Guard rights_of_;
  Handler handler_;
  asio::generic::seq_packet_protocol::socket listening_;
  asio::steady_timer pause_;
  RateLimitedLog refused_;
  std::set<std::shared_ptr<Connection>> connections_;
};

}  // namespace pando::manager
