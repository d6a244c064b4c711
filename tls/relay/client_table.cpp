#include "tls/relay/client_table.h"

#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "base/net/address_holder.h"
#include "base/steady_time.h"
#include "ipc/log.h"

namespace pando::tls {

namespace {

std::string_view to_text(ClientLimits::Verdict verdict) noexcept {
  switch (verdict) {
    case ClientLimits::Verdict::kAdmitted:
      break;
    case ClientLimits::Verdict::kConnections:
      return "limits.tls-clients, or one address's share of it";
    case ClientLimits::Verdict::kHandshakes:
      return "too many handshakes under way";
    case ClientLimits::Verdict::kRate:
      return "too many handshakes of one address";
  }
  return "";
}

}  // namespace

std::uint64_t ClientTable::Line::one_more() noexcept {
  constexpr std::uint64_t kPauseMs = 1000;
  ++events_;
  const std::uint64_t now = steady_milliseconds();
  if (now < next_ms_) return 0;
  next_ms_ = now + kPauseMs;
  return std::exchange(events_, 0);
}

ClientTable::ClientTable(asio::io_context& io, const ServerContext& context, WorkerLinks& workers)
    : io_(io),
      context_(context),
      workers_(workers),
      handshakes_(io,
                  [this](ClientConnection& client) {
                    ++counts_.timeouts;
                    client.expired();
                  }),
      stalled_(io, [](ClientConnection& client) { client.expired(); }),
      space_(std::make_unique<Space>()) {}

ClientTable::~ClientTable() { close_all(); }

void ClientTable::set_limits(ipc::TlsLimits limits) {
  limits_.set(limits);
  handshakes_.set_time(std::chrono::milliseconds(limits.handshake_ms));
  stalled_.set_time(std::chrono::milliseconds(limits.idle_ms));
  proxies_ = std::move(limits.proxies);
}

ipc::TlsCounts ClientTable::counts() const noexcept {
  ipc::TlsCounts counts = counts_;
  counts.open = clients_.size();
  return counts;
}

bool ClientTable::is_proxy(const IpAddress& address) const noexcept {
  return std::any_of(proxies_.begin(), proxies_.end(),
                     [&](const IpPrefix& prefix) { return prefix.contains(address); });
}

void ClientTable::take(Fd fd) {
  ++counts_.accepted;
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  if (::getpeername(fd.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0) return;
  const auto remote = Endpoint::from_sockaddr(reinterpret_cast<sockaddr*>(&address));
  length = sizeof address;
  if (::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0) return;
  const auto local = Endpoint::from_sockaddr(reinterpret_cast<sockaddr*>(&address));
  if (const auto verdict = limits_.open(); verdict != ClientLimits::Verdict::kAdmitted)
    return refuse(remote, verdict);
  ClientConnection::Socket socket(io_);
  asio::error_code error;
  socket.assign(fd.get(), error);
  if (error) return limits_.close(nullptr);
  [[maybe_unused]] const int owned_by_asio_now = fd.release();
  auto client = std::make_shared<ClientConnection>(*this, std::move(socket), remote, local);
  client->set_place(clients_.insert(clients_.end(), client));
  client->start();
}

void ClientTable::refuse(const Endpoint& client, ClientLimits::Verdict verdict) {
  ++counts_.refused;
  if (const auto clients = refused_.one_more(); clients > 0)
    log::warning("tls_client_refused", "client", pando::to_text(client), "reason",
                 to_text(verdict), "clients", clients);
}

bool ClientTable::begins_handshake(ClientConnection& client) {
  const auto verdict =
      limits_.begin(holder_of(client.client().address), steady_milliseconds());
  if (verdict == ClientLimits::Verdict::kAdmitted) return true;
  refuse(client.client(), verdict);
  return false;
}

std::optional<Fd> ClientTable::hand_over(ClientConnection& client,
                                         const ipc::TlsConnection& message, bool resumed) {
  limits_.end_handshake(holder_of(client.client().address));
  ++counts_.handshakes;
  if (resumed) ++counts_.resumed;
  if (!message.remotes.empty()) ++counts_.identified;
  return workers_.give(message);
}

void ClientTable::is_unproven(const Endpoint& client, std::string_view fault) {
  if (const auto clients = unproven_.one_more(); clients > 0)
    log::info("tls_identity_unproven", "client", pando::to_text(client), "reason", fault,
              "clients", clients);
}

void ClientTable::ended(ClientConnection& client, std::string_view fault) noexcept {
  const IpAddress holder = holder_of(client.client().address);
  if (client.is_admitted() && client.shakes_hands()) {
    limits_.end_handshake(holder);
    ++counts_.failed;
  }
  limits_.close(client.is_admitted() ? &holder : nullptr);
  if (!fault.empty()) {
    if (const auto clients = failed_.one_more(); clients > 0)
      log::info("tls_client_failed", "client", pando::to_text(client.client()), "reason", fault,
                "clients", clients);
  }
  clients_.erase(client.place());
}

void ClientTable::end_identified() {
  std::vector<std::shared_ptr<ClientConnection>> identified;
  for (const auto& client : clients_)
    if (client->has_identity()) identified.push_back(client);
  for (const auto& client : identified) client->close();
}

void ClientTable::close_all() {
  while (!clients_.empty()) {
    const auto client = clients_.front();
    client->close();
  }
}

}  // namespace pando::tls
