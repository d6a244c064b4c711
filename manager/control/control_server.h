#pragma once

#include <asio/generic/seq_packet_protocol.hpp>
#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <asio/thread_pool.hpp>
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

/// The control socket: takes requests of pandoctl (ipc/control.h) from who may give commands.
/// A connection may have several requests under way. They begin in the order in which they came,
/// and so do their replies, however long each takes.
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

  /// Requests of one connection that may be under way: no more are read until replies have left.
  static constexpr std::size_t kMaxUnanswered = 64;

  /// `pool` reads long requests. `group`: of pandoctl's users (ipc::listen_packets).
  static Result<std::unique_ptr<ControlServer>> open(asio::io_context& io, asio::thread_pool& pool,
                                                     const std::string& run_directory,
                                                     std::optional<std::uint32_t> group,
                                                     Callbacks callbacks);
  ~ControlServer();
  /// Takes no more requests; replies on their way still go out.
  void close();

 private:
  struct Unanswered;
  struct Connection;
  using ConnectionPtr = std::shared_ptr<Connection>;
  /// nullopt: the text is no JSON.
  using Decoded = std::optional<Result<ipc::ControlRequest>>;
  ControlServer(asio::io_context& io, asio::thread_pool& pool, Callbacks callbacks);
  void accept_next();
  void accept_some();
  /// Whether a connection of this user may be opened beside the open ones.
  [[nodiscard]] bool has_room(std::uint32_t uid) const;
  void admit(Fd socket);
  void refuse(const Fd& socket, std::uint32_t uid);
  void packet(const ConnectionPtr& connection, ipc::Packet&& received);
  void take(const ConnectionPtr& connection, std::string text,
            std::shared_ptr<const Fd> descriptor);
  [[nodiscard]] static Decoded decode(const std::string& text);
  void answer(const ConnectionPtr& connection, const std::shared_ptr<Unanswered>& place,
              Decoded decoded);
  void break_off(const ConnectionPtr& connection);
  void end(const ConnectionPtr& connection);
  [[nodiscard]] Status check_rights(Rights rights, ipc::ControlRequest& request) const;
  void reply(const ConnectionPtr& connection, Unanswered& place, const nlohmann::json& message);
  void send_ready(const ConnectionPtr& connection);

  asio::io_context& io_;
  asio::thread_pool& pool_;
  Callbacks callbacks_;
  asio::generic::seq_packet_protocol::socket listening_;
  asio::steady_timer pause_;
  RateLimitedLog refused_;
  std::set<ConnectionPtr> connections_;
  std::uint64_t numbers_ = 0;  // given to connections
};

}  // namespace pando::manager
