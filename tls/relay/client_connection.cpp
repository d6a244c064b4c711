#include "tls/relay/client_connection.h"

#include <openssl/err.h>
#include <sys/socket.h>

#include <asio/post.hpp>
#include <cerrno>

#include "base/net/proxy_header.h"
#include "tls/session/server_context.h"

namespace pando::tls {

namespace {

/// Steps of one client before other clients' turn.
constexpr int kSteps = 4;

const char* const kClosedByClient = "the client closed the connection";

}  // namespace

ClientConnection::ClientConnection(ClientHost& host, Socket socket, const Endpoint& remote,
                                   const Endpoint& local)
    : host_(host),
      outside_(std::move(socket)),
      inside_(outside_.get_executor()),
      client_(remote),
      local_(local) {}

ClientConnection::~ClientConnection() = default;

void ClientConnection::start() {
  enter(host_.handshakes());
  if (!host_.is_proxy(client_.address)) return begin_handshake({});
  state_ = State::kProxyHeader;
  wait(outside_, Socket::wait_read, &Waits::to_read);
}

void ClientConnection::close(std::string_view fault) noexcept {
  if (!outside_.is_open()) return;
  leave_deadlines();
  ssl_.reset();
  asio::error_code ignored;
  outside_.close(ignored);
  inside_.close(ignored);
  host_.ended(*this, fault);
}

void ClientConnection::expired() noexcept {
  const auto self = shared_from_this();
  if (state_ == State::kProxyHeader || state_ == State::kHandshake)
    return close("the handshake takes too long");
  close();
}

void ClientConnection::enter(Deadlines& queue) {
  if (deadlines_ == &queue) return;
  leave_deadlines();
  deadlines_ = &queue;
  deadline_ = queue.add(*this);
}

void ClientConnection::leave_deadlines() noexcept {
  if (deadlines_ != nullptr) deadlines_->remove(deadline_);
  deadlines_ = nullptr;
}

void ClientConnection::wait(Socket& socket, Wait what, bool Waits::*waiting) {
  if (waits_.*waiting || !socket.is_open()) return;
  waits_.*waiting = true;
  socket.async_wait(what, [self = shared_from_this(), waiting](const asio::error_code& error) {
    self->waits_.*waiting = false;
    if (!error) self->go_on();
  });
}

void ClientConnection::go_on_later() {
  asio::post(outside_.get_executor(), [self = shared_from_this()] { self->go_on(); });
}

void ClientConnection::go_on() {
  if (!outside_.is_open()) return;
  if (octets_) octets_->begin_turn();
  switch (state_) {
    case State::kProxyHeader:
      return read_proxy_header();
    case State::kHandshake:
      return shake_hands();
    case State::kRelay:
      return relay();
    case State::kClosing:
      return discard_input();
  }
}

// Before the relay
// --------------------------------------------------------------------------------------

void ClientConnection::read_proxy_header() {
  const auto space = host_.space();
  const ssize_t got = ::recv(outside_.native_handle(), space.data(), space.size(), MSG_DONTWAIT);
  const bool later = got < 0 && (errno == EAGAIN || errno == EINTR);
  if (got <= 0 && !later) return close(kClosedByClient);
  if (got > 0) append(to_worker_, ByteView(space.data(), static_cast<std::size_t>(got)));
  const ProxyHeader header = pando::read_proxy_header(to_worker_);
  if (header.kind == ProxyHeader::Kind::kIncomplete || later)
    return wait(outside_, Socket::wait_read, &Waits::to_read);
  if (header.kind == ProxyHeader::Kind::kMalformed) return close("malformed PROXY header");
  if (header.kind == ProxyHeader::Kind::kProxied) {
    client_ = header.source;
    local_ = header.destination;
  }
  Bytes rest(to_worker_.begin() + static_cast<std::ptrdiff_t>(header.size), to_worker_.end());
  Bytes().swap(to_worker_);
  begin_handshake(std::move(rest));
}

void ClientConnection::begin_handshake(Bytes read_before) {
  state_ = State::kHandshake;
  is_admitted_ = host_.begins_handshake(*this);
  if (!is_admitted_) return close();
  ssl_ = host_.context().make_session();
  octets_ = std::make_unique<SocketBio>(outside_.native_handle(), std::move(read_before));
  BIO* const bio = ssl_ ? octets_->make_bio() : nullptr;
  if (bio == nullptr) return close("no certificate, or no memory");
  ::SSL_set_bio(ssl_.get(), bio, bio);
  ::SSL_set_accept_state(ssl_.get());
  ::SSL_set_msg_callback(ssl_.get(), &ClientConnection::on_message);
  ::SSL_set_msg_callback_arg(ssl_.get(), this);
  shake_hands();
}

void ClientConnection::on_message(int is_sent, int, int type, const void* data, size_t size, SSL*,
                                  void* self) {
  const bool is_key_update = is_sent == 0 && type == SSL3_RT_HANDSHAKE && size > 0 &&
                             *static_cast<const unsigned char*>(data) == SSL3_MT_KEY_UPDATE;
  if (is_key_update) ++static_cast<ClientConnection*>(self)->key_updates_;
}

void ClientConnection::shake_hands() {
  const int done = ::SSL_do_handshake(ssl_.get());
  if (done == 1) return established();
  switch (::SSL_get_error(ssl_.get(), done)) {
    case SSL_ERROR_WANT_READ:
      return wait(outside_, Socket::wait_read, &Waits::to_read);
    case SSL_ERROR_WANT_WRITE:
      return wait(outside_, Socket::wait_write, &Waits::to_write);
    default:
      return close(take_openssl_error(kClosedByClient));
  }
}

/// Names of the remotes that the client's certificate proves.
std::vector<std::string> ClientConnection::prove_identity() {
  const ClientIdentities& identities = host_.context().identities();
  const CertificatePointer certificate(::SSL_get1_peer_certificate(ssl_.get()));
  if (identities.empty() || !certificate) return {};
  auto proof = identities.prove(certificate.get(), ::SSL_get_peer_cert_chain(ssl_.get()));
  if (proof.remotes.empty()) host_.is_unproven(client_, proof.fault);
  return std::move(proof.remotes);
}

void ClientConnection::established() {
  leave_deadlines();
  ipc::TlsConnection message;
  message.client = client_;
  message.local = local_;
  message.version = static_cast<std::uint32_t>(::SSL_version(ssl_.get()));
  message.remotes = prove_identity();
  has_identity_ = !message.remotes.empty();
  const unsigned char* alpn = nullptr;
  unsigned length = 0;
  ::SSL_get0_alpn_selected(ssl_.get(), &alpn, &length);
  message.alpn.assign(reinterpret_cast<const char*>(alpn), length);
  auto inside = host_.hand_over(*this, message, ::SSL_session_reused(ssl_.get()) == 1);
  state_ = State::kRelay;
  if (!inside) return close("no worker takes it");
  asio::error_code error;
  inside_.assign(inside->get(), error);
  if (error) return close("no worker takes it");
  [[maybe_unused]] const int owned_by_asio_now = inside->release();
  relay();
}

// The relay
// ---------------------------------------------------------------------------------------------

void ClientConnection::relay() {
  Progress in = Progress::kMore;
  Progress out = Progress::kMore;
  for (int i = 0; i < kSteps && (in == Progress::kMore || out == Progress::kMore); ++i) {
    if (in == Progress::kMore) in = read_client();
    if (!outside_.is_open()) return;
    if (out == Progress::kMore) out = read_worker();
    if (!outside_.is_open()) return;
    if (out == Progress::kEnded) return say_goodbye();
  }
  if (in == Progress::kMore || out == Progress::kMore) go_on_later();
}

/// Moves the octets of one record at most from the client to the worker.
ClientConnection::Progress ClientConnection::read_client() {
  if (!to_worker_.empty()) {
    const Bytes rest = std::exchange(to_worker_, {});
    if (const Progress sent = send_to_worker(rest); sent != Progress::kMore) return sent;
  }
  if (input_ended_) return Progress::kEnded;
  const auto space = host_.space();
  const int got = ::SSL_read(ssl_.get(), space.data(), static_cast<int>(space.size()));
  if (key_updates_ > kMaxKeyUpdates) {
    close("too many key updates");
    return Progress::kEnded;
  }
  if (got <= 0) return after_ssl(got);
  key_updates_ = 0;
  return send_to_worker(space.first(static_cast<std::size_t>(got)));
}

ClientConnection::Progress ClientConnection::send_to_worker(ByteView octets) {
  const ssize_t sent = ::send(inside_.native_handle(), octets.data(), octets.size(),
                              MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent < 0 && errno != EAGAIN && errno != EINTR) {
    input_ended_ = true;  // the worker has ended; what it has sent still leaves
    return Progress::kEnded;
  }
  const ByteView rest = octets.subspan(sent > 0 ? static_cast<std::size_t>(sent) : 0);
  if (rest.empty()) return Progress::kMore;
  to_worker_.assign(rest.begin(), rest.end());
  wait(inside_, Socket::wait_write, &Waits::to_send);
  return Progress::kWaits;
}

/// Moves octets from the worker to the client.
ClientConnection::Progress ClientConnection::read_worker() {
  if (!to_client_.empty()) {
    const Bytes rest = std::exchange(to_client_, {});
    if (const Progress sent = send_to_client(rest); sent != Progress::kMore) return sent;
  }
  const auto space = host_.space();
  const ssize_t got = ::recv(inside_.native_handle(), space.data(), space.size(), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
    wait(inside_, Socket::wait_read, &Waits::for_worker);
    return Progress::kWaits;
  }
  if (got <= 0) return Progress::kEnded;
  return send_to_client(space.first(static_cast<std::size_t>(got)));
}

/// While the client takes nothing, the worker's end is not read, and so its end not seen: the
/// client has a deadline.
ClientConnection::Progress ClientConnection::send_to_client(ByteView octets) {
  while (!octets.empty()) {
    const int sent = ::SSL_write(ssl_.get(), octets.data(), static_cast<int>(octets.size()));
    if (sent <= 0) {
      to_client_.assign(octets.begin(), octets.end());
      const Progress progress = after_ssl(sent);
      if (outside_.is_open()) enter(host_.stalled());
      return progress;
    }
    leave_deadlines();
    octets = octets.subspan(static_cast<std::size_t>(sent));
  }
  return Progress::kMore;
}

ClientConnection::Progress ClientConnection::after_ssl(int result) {
  switch (::SSL_get_error(ssl_.get(), result)) {
    case SSL_ERROR_WANT_READ:
      wait(outside_, Socket::wait_read, &Waits::to_read);
      return Progress::kWaits;
    case SSL_ERROR_WANT_WRITE:
      wait(outside_, Socket::wait_write, &Waits::to_write);
      return Progress::kWaits;
    case SSL_ERROR_ZERO_RETURN:  // the requests so far are still answered
      input_ended_ = true;
      ::shutdown(inside_.native_handle(), SHUT_WR);
      return Progress::kEnded;
    default:
      close(take_openssl_error(""));
      return Progress::kEnded;
  }
}

/// The worker has ended the connection. Closing with unread input would send a reset, which may
/// destroy answers in flight (RFC 1122 §4.2.2.13), so the client gets time to close.
void ClientConnection::say_goodbye() {
  ::SSL_shutdown(ssl_.get());  // close_notify; the client's is not waited for
  ssl_.reset();
  ::ERR_clear_error();
  if (input_ended_) return close();
  asio::error_code ignored;
  inside_.close(ignored);
  ::shutdown(outside_.native_handle(), SHUT_WR);
  state_ = State::kClosing;
  enter(host_.stalled());
  discard_input();
}

void ClientConnection::discard_input() {
  const auto space = host_.space();
  const ssize_t got = ::recv(outside_.native_handle(), space.data(), space.size(), MSG_DONTWAIT);
  if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) return close();
  wait(outside_, Socket::wait_read, &Waits::to_read);
}

}  // namespace pando::tls
