#include "manager/control/control_server.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <asio/post.hpp>
#include <deque>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/steady_time.h"
#include "ipc/log.h"
#include "ipc/packet_socket.h"

namespace pando::manager {

namespace {
constexpr std::size_t kMaxConnections = 64;
/// Users other than root and the manager's own: whatever they do, these two get in.
constexpr std::size_t kMaxOfOthers = 56;
constexpr std::size_t kMaxOfOneUser = 32;
/// Together 1,600 connections a second: a flood must not stall the commit thread.
constexpr int kAcceptsPerTurn = 16;
constexpr std::chrono::milliseconds kAcceptPause{10};
/// Two of the longest replies: a client that does not read loses its connection.
constexpr std::size_t kMaxQueuedOctets = 2 * ipc::kMaxReplyBytes;
/// Longer requests are read in the pool, at 25 ns for each byte: updates must not wait for that.
constexpr std::size_t kLongRequest = std::size_t{32} << 10;
/// True for commands that change nothing and cost little.
bool is_reading(std::string_view verb) {
  return verb == ipc::verb::kStatus || verb == ipc::verb::kZoneList ||
         verb == ipc::verb::kZoneStatus || verb == ipc::verb::kZoneSnapshots ||
         verb == ipc::verb::kWorkerList || verb == ipc::verb::kHttpSettings ||
         verb == ipc::verb::kDnssecList || verb == ipc::verb::kDnssecStatus;
}

}  // namespace

/// A request under way, or one whose reply waits for those of earlier requests.
struct ControlServer::Unanswered {
  std::size_t bytes = 0;                            // of the request, and of a reply that waits
  std::shared_ptr<const Fd> descriptor{};           // that came with the request
  std::optional<std::vector<std::string>> reply{};  // its packets
};

struct ControlServer::Connection {
  std::shared_ptr<ipc::Channel> channel;
  ipc::PacketAssembler assembler{ipc::kMaxRequestBytes};
  std::uint32_t uid = 0;
  Rights rights = Rights::kNone;
  std::uint64_t number = 0;                              // from 1 on
  std::deque<std::shared_ptr<Unanswered>> unanswered{};  // in the order of the requests
  std::size_t unanswered_bytes = 0;
  bool is_decoding = false;  // requests after a long one begin after it

  /// The requests under way, and replies that wait for an earlier one, take little more memory than
  /// the longest request.
  void read_if_it_may() {
    const bool may = !is_decoding && unanswered.size() < kMaxUnanswered &&
                     unanswered_bytes < ipc::kMaxRequestBytes;
    may ? channel->resume() : channel->pause();
  }
};

ControlServer::ControlServer(asio::io_context& io, asio::thread_pool& pool, Callbacks callbacks)
    : io_(io), pool_(pool), callbacks_(std::move(callbacks)), listening_(io), pause_(io) {}

ControlServer::~ControlServer() {
  // Replies that come later find no socket.
  for (const ConnectionPtr& connection : connections_) connection->channel->close();
}

Result<std::unique_ptr<ControlServer>> ControlServer::open(asio::io_context& io,
                                                           asio::thread_pool& pool,
                                                           const std::string& run_directory,
                                                           std::optional<std::uint32_t> group,
                                                           Callbacks callbacks) {
  const std::string path = run_directory + "/" + std::string(ipc::kControlSocketName);
  auto socket = ipc::listen_packets(path, group);
  if (!socket) return pass(socket);
  if (ipc::is_open_to_all(path)) log::info("socket_open_to_all", "path", path);
  std::unique_ptr<ControlServer> server(new ControlServer(io, pool, std::move(callbacks)));
  asio::error_code error;
  server->listening_.assign(asio::generic::seq_packet_protocol(AF_UNIX, 0), socket->release(),
                            error);
  if (error) return fail(Errc::kIo, "control socket: {}", error.message());
  server->accept_next();
  return server;
}

void ControlServer::close() {
  asio::error_code ignored;
  listening_.close(ignored);
  pause_.cancel();
}

void ControlServer::accept_next() {
  listening_.async_wait(asio::socket_base::wait_read, [this](const asio::error_code& error) {
    if (error) return;
    accept_some();
    pause_.expires_after(kAcceptPause);
    pause_.async_wait([this](const asio::error_code& stopped) {
      if (!stopped) accept_next();
    });
  });
}

void ControlServer::accept_some() {
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    auto socket = ipc::accept_packets(listening_.native_handle());
    if (!socket) return log::warning("control_accept_failed", "reason", socket.error().text);
    if (!*socket) return;
    admit(std::move(*socket));
  }
}

/// A courtesy to people: one packet, and if it does not fit, none.
void ControlServer::refuse(const Fd& socket, std::uint32_t uid) {
  if (const auto connections = refused_.one_more(steady_milliseconds()))
    log::warning("control_refused", "uid", uid, "connections", *connections);
  const Error why{Errc::kDenied,
                  "this user may not give commands (server.control-group), or too many do"};
  for (const std::string& packet : ipc::to_packets(ipc::error_reply(why))) {
    const Bytes data(packet.begin(), packet.end());
    [[maybe_unused]] const auto sent = ipc::send_packet(socket.get(), data, {});
  }
}

bool ControlServer::has_room(std::uint32_t uid) const {
  const auto is_other = [](std::uint32_t user) { return user != 0 && user != ::geteuid(); };
  if (!is_other(uid)) return connections_.size() < kMaxConnections;
  const auto count = [&](const auto& counts) {
    return static_cast<std::size_t>(std::ranges::count_if(connections_, counts));
  };
  return count([&](const auto& one) { return is_other(one->uid); }) < kMaxOfOthers &&
         count([&](const auto& one) { return one->uid == uid; }) < kMaxOfOneUser;
}

void ControlServer::admit(Fd socket) {
  const auto peer = ipc::peer_credentials(socket.get());
  const Rights rights = peer ? callbacks_.rights_of(peer->uid) : Rights::kNone;
  if (rights == Rights::kNone || !has_room(peer->uid))
    return refuse(socket, peer ? peer->uid : 0xFFFFFFFFU);
  auto connection = std::make_shared<Connection>();
  connection->uid = peer->uid;
  connection->rights = rights;
  connection->number = ++numbers_;
  connection->channel = ipc::Channel::open(io_, std::move(socket), kMaxQueuedOctets);
  connections_.insert(connection);
  ipc::Channel::Handlers handlers;
  const std::weak_ptr<Connection> weak = connection;
  handlers.packet = [this, weak](ipc::Packet&& received) {
    if (const auto self = weak.lock()) packet(self, std::move(received));
  };
  handlers.closed = [this, weak](const Error&) {
    if (const auto self = weak.lock()) end(self);
  };
  connection->channel->start(std::move(handlers));
}

void ControlServer::packet(const ConnectionPtr& connection, ipc::Packet&& received) {
  const Bytes& data = received.data;
  auto text =
      connection->assembler.feed_text({reinterpret_cast<const char*>(data.data()), data.size()});
  if (!text) return break_off(connection);
  if (!*text) return;
  // No request needs more than one. A descriptor of an earlier packet is closed.
  std::shared_ptr<const Fd> descriptor;
  if (!received.descriptors.empty())
    descriptor = std::make_shared<const Fd>(std::move(received.descriptors.front()));
  take(connection, std::move(**text), std::move(descriptor));
}

void ControlServer::take(const ConnectionPtr& connection, std::string text,
                         std::shared_ptr<const Fd> descriptor) {
  auto place = std::make_shared<Unanswered>(text.size(), std::move(descriptor));
  connection->unanswered.push_back(place);
  connection->unanswered_bytes += place->bytes;
  connection->is_decoding = text.size() > kLongRequest;
  connection->read_if_it_may();
  if (!connection->is_decoding) return answer(connection, place, decode(text));
  asio::post(pool_, [this, weak = std::weak_ptr(connection), place, text = std::move(text)] {
    auto decoded = std::make_shared<Decoded>(decode(text));
    asio::post(io_, [this, weak, place, decoded] {
      const ConnectionPtr self = weak.lock();
      if (!self || !self->channel->is_open()) return;
      self->is_decoding = false;
      self->read_if_it_may();
      answer(self, place, std::move(*decoded));
    });
  });
}

ControlServer::Decoded ControlServer::decode(const std::string& text) {
  const auto message = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (message.is_discarded()) return std::nullopt;
  return ipc::request_from_json(message);
}

void ControlServer::break_off(const ConnectionPtr& connection) {
  connection->channel->close();
  end(connection);
}

void ControlServer::end(const ConnectionPtr& connection) {
  if (connections_.erase(connection) != 0) callbacks_.ended(connection->number);
}

Status ControlServer::check_rights(Rights rights, ipc::ControlRequest& request) const {
  if (rights == Rights::kAll || is_reading(request.verb)) return {};
  if (rights == Rights::kEdit) return callbacks_.restrict(request);
  return fail(Errc::kDenied, "this user may only read (http.user)");
}

void ControlServer::answer(const ConnectionPtr& connection,
                           const std::shared_ptr<Unanswered>& place, Decoded decoded) {
  if (!decoded) return break_off(connection);
  Result<ipc::ControlRequest>& request = *decoded;
  if (!request) return reply(connection, *place, ipc::error_reply(request.error()));
  if (auto allowed = check_rights(connection->rights, *request); !allowed)
    return reply(connection, *place, ipc::error_reply(allowed.error()));
  request->descriptor = std::move(place->descriptor);
  request->connection = connection->number;
  request->uid = connection->uid;
  request->session = connection->rights == Rights::kEdit ? connection->number : 0;
  callbacks_.handler(*request, [this, connection, place](Result<nlohmann::json> result) {
    reply(connection, *place,
          result ? ipc::ok_reply(std::move(*result)) : ipc::error_reply(result.error()));
  });
}

void ControlServer::reply(const ConnectionPtr& connection, Unanswered& place,
                          const nlohmann::json& message) {
  if (!connection->channel->is_open()) return;
  place.reply = ipc::to_packets(message);
  std::size_t bytes = 0;
  for (const std::string& packet : *place.reply) bytes += packet.size();
  place.bytes += bytes;
  connection->unanswered_bytes += bytes;
  send_ready(connection);
}

void ControlServer::send_ready(const ConnectionPtr& connection) {
  auto& unanswered = connection->unanswered;
  while (!unanswered.empty() && unanswered.front()->reply) {
    const auto done = std::move(unanswered.front());
    unanswered.pop_front();
    connection->unanswered_bytes -= done->bytes;
    for (const std::string& packet : *done->reply)
      if (!connection->channel->send(Bytes(packet.begin(), packet.end())))
        return break_off(connection);
  }
  connection->read_if_it_may();
}

}  // namespace pando::manager
