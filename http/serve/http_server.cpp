#include "http/serve/http_server.h"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>
#include <csignal>
#include <list>
#include <type_traits>

#include "http/serve/request_header.h"
#include "http/serve/request_rate.h"
#include "ipc/log.h"

namespace pando::http {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace wire = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

constexpr auto kAcceptPause = std::chrono::milliseconds(100);

/// A connection, as the server sees it.
class Connection {
 public:
  virtual ~Connection() = default;
  virtual void start() = 0;
  virtual void close() noexcept = 0;
  /// Nothing of the client's is in work: the connection waits for its request.
  bool waits_for_client = true;
  std::list<std::weak_ptr<Connection>>::iterator place;
};

}  // namespace

class HttpServer::Impl {
 private:
  /// Longest wait first. Outlives `io`, whose handlers hold the connections.
  std::list<std::weak_ptr<Connection>> connections_;

 public:
  std::size_t large_bodies = 0;  ///< read, or in work; outlives `io`, too
  std::uint64_t unsent_bytes = 0;  ///< of large responses; outlives `io`, too
  Impl(const ServerLimits& bounds, Handlers given)
      : limits(bounds),
        handlers(std::move(given)),
        known_rate_(bounds.requests_per_second, bounds.burst),
        strangers_rate_(bounds.requests_per_second, bounds.burst) {}

  Status load_tls(const TlsFiles& files);
  Status listen(const Endpoint& at);
  void run();
  void stop() { asio::post(io, [this] { end(); }); }
  [[nodiscard]] std::vector<Endpoint> addresses() const;

  /// Calls `reply` on the server's thread, later. False: too many requests are in work.
  template <class Reply>
  bool handle(Request request, Reply reply);
  /// Calls `next` in a thread that answers GET, then `reply` with its result and its part on the
  /// server's thread. A response under way is never refused for the number of requests.
  template <class Reply>
  void make_part(NextPart& next, Reply reply);
  /// Whether the client may have a request answered now. Strangers take nothing from known clients.
  bool take_turn(const Request& request) {
    const bool known = !handlers.is_known || handlers.is_known(request);
    return (known ? known_rate_ : strangers_rate_).take(RequestRate::Clock::now());
  }
  void forget(Connection& connection) noexcept { connections_.erase(connection.place); }
  /// `connection` waits for its client from now on, shorter than all others that do.
  void waits(Connection& connection) noexcept {
    connections_.splice(connections_.end(), connections_, connection.place);
    connection.waits_for_client = true;
  }

  asio::io_context io{1};
  const ServerLimits limits;
  const Handlers handlers;

 private:
  struct Listener {
    explicit Listener(asio::io_context& io) : acceptor(io), pause(io) {}
    tcp::acceptor acceptor;
    asio::steady_timer pause;
  };
  void accept(Listener& listener);
  void admit(tcp::socket socket);
  bool make_room();
  void end();

  /// Threads that call the handler. Made by run(): threads have the rights of the thread that makes
  /// them.
  struct Pool {
    std::optional<asio::thread_pool> threads{};
    std::size_t in_work = 0;
  };

  RequestRate known_rate_;
  RequestRate strangers_rate_;
  std::optional<asio::ssl::context> tls_;
  std::list<Listener> listeners_;
  asio::signal_set signals_{io, SIGTERM, SIGINT};
  /// Both end first. A change may wait for the manager and a disk; reading continues meanwhile.
  Pool reading_;
  Pool changing_;
};

namespace {

using PlainStream = beast::tcp_stream;
using TlsStream = beast::ssl_stream<beast::tcp_stream>;

template <class Stream>
class Session final : public Connection, public std::enable_shared_from_this<Session<Stream>> {
 public:
  template <class... Tls>
  Session(HttpServer::Impl& server, tcp::socket socket, Tls&... tls)
      : server_(server), stream_(std::move(socket), tls...) {}
  ~Session() override {
    release_large();
    release_response();
    server_.forget(*this);
  }

  void start() override {
    tcp_layer().expires_after(server_.limits.request_time);
    if constexpr (std::is_same_v<Stream, TlsStream>)
      stream_.async_handshake(asio::ssl::stream_base::server,
                              [self = this->shared_from_this()](const error_code& error) {
                                if (!error) self->read();
                              });
    else
      read();
  }
  void close() noexcept override { tcp_layer().close(); }

 private:
  [[nodiscard]] beast::tcp_stream& tcp_layer() noexcept {
    return beast::get_lowest_layer(stream_);
  }

  void read() {
    server_.waits(*this);
    // A request that cannot be read is no HEAD, even after one.
    version_ = kNewestVersion;
    without_body_ = false;
    parser_.emplace();
    parser_->header_limit(server_.limits.header_bytes);
    parser_->body_limit(std::max(server_.limits.body_bytes, server_.limits.large_body_bytes));
    wire::async_read_header(stream_, buffer_, *parser_,
                            [self = this->shared_from_this()](const error_code& error,
                                                              std::size_t) {
                              error ? self->read_done(error) : self->header_done();
                            });
  }

  /// The client's rights decide how much is read: a body is in memory before it is parsed.
  void header_done() {
    if (const auto refused = header_refusal(parser_->get())) return refuse(*refused);
    const auto& may_send_much = server_.handlers.may_send_much;
    const bool large =
        parser_->chunked() || parser_->content_length().value_or(0) > server_.limits.body_bytes;
    if (large && may_send_much && may_send_much(header_of(parser_->get()))) {
      if (server_.large_bodies >= server_.limits.large_bodies)
        return refuse(text_response(503, "too many large requests are in work"));
      ++server_.large_bodies;
      has_large_ = true;
    } else if (parser_->content_length().value_or(0) > server_.limits.body_bytes) {
      return read_done(wire::error::body_limit);
    } else {
      parser_->body_limit(server_.limits.body_bytes);
    }
    // RFC 9110 §10.1.1: the client waits for a sign that its body is wanted.
    if (beast::iequals(parser_->get()[wire::field::expect], "100-continue")) return go_on();
    read_body();
  }

  void go_on() {
    continue_ = wire::response<wire::empty_body>(wire::status::continue_, 11);
    wire::async_write(stream_, continue_,
                      [self = this->shared_from_this()](const error_code& error, std::size_t) {
                        error ? self->close() : self->read_body();
                      });
  }

  void read_body() {
    wire::async_read(stream_, buffer_, *parser_,
                     [self = this->shared_from_this()](const error_code& error, std::size_t) {
                       self->read_done(error);
                     });
  }

  void release_large() noexcept {
    if (std::exchange(has_large_, false)) --server_.large_bodies;
  }

  /// For a request whose body is not read: the connection cannot be used again.
  void refuse(Response response) {
    waits_for_client = false;
    keep_alive_ = false;
    send(std::move(response));
  }

  void read_done(const error_code& error) {
    waits_for_client = false;
    tcp_layer().expires_never();
    if (error) {
      keep_alive_ = false;
      const auto response = error_refusal(error);
      if (response) return send(*response);
      return finish();
    }
    Message message = parser_->release();
    keep_alive_ = message.keep_alive();
    version_ = message.version();
    without_body_ = message.method() == wire::verb::head;
    Request request = header_of(message);
    if (!server_.take_turn(request)) return send(text_response(429, "too many requests"));
    request.body = std::move(message.body());
    error_code gone;
    const auto client = tcp_layer().socket().remote_endpoint(gone);
    if (!gone) request.client = client.address().to_string();
    const bool taken = server_.handle(
        std::move(request),
        [self = this->shared_from_this()](Response response) { self->send(std::move(response)); });
    if (!taken) send(text_response(503, "too many requests are in work"));
  }

  template <class Head>
  void fill_head(Head& head, const Response& response) const {
    head.set(wire::field::server, "pando");
    head.set(wire::field::cache_control, "no-store");
    for (const auto& [name, value] : response.fields) head.set(name, value);
    head.keep_alive(keep_alive_);
  }

  void send(Response response) {
    if (response.next_part) return send_in_parts(std::move(response));
    if (!hold(response.body.size()))
      response = text_response(503, "too many large responses wait for their clients");
    response_ = wire::response<wire::string_body>(static_cast<wire::status>(response.status),
                                                  version_);
    fill_head(response_, response);
    if (response.status != 204) {  // RFC 9110 §8.6: no length where there is no content
      response_.set(wire::field::content_type, response.content_type);
      response_.content_length(response.body.size());
    }
    if (!without_body_) response_.body() = std::move(response.body);
    tcp_layer().expires_after(server_.limits.send_time);
    // RFC 9110 §9.3.2: the response to HEAD has the fields of GET, and no content.
    wire::async_write(stream_, response_,
                      [self = this->shared_from_this()](const error_code& error, std::size_t) {
                        self->sent(error);
                      });
  }

  /// RFC 9112 §7.1: chunks, because the length is not known yet. To a client of HTTP/1.0, which
  /// knows no chunks, the content goes up to the end of the connection.
  void send_in_parts(Response response) {
    has_chunks_ = version_ == kNewestVersion;
    keep_alive_ = keep_alive_ && has_chunks_;
    head_ = wire::response<wire::empty_body>(static_cast<wire::status>(response.status), version_);
    fill_head(head_, response);
    head_.set(wire::field::content_type, response.content_type);
    head_.chunked(has_chunks_);
    part_ = std::move(response.body);
    next_part_ = without_body_ ? NextPart() : std::move(response.next_part);
    tcp_layer().expires_after(server_.limits.send_time);
    serializer_.emplace(head_);
    wire::async_write_header(
        stream_, *serializer_,
        [self = this->shared_from_this()](const error_code& error, std::size_t) {
          if (error || self->without_body_) return self->parts_sent(error);
          self->write_part();
        });
  }

  /// Each part has the time of a whole response: a client that reads nothing holds one part only.
  void write_part() {
    if (part_.empty()) return part_written();  // a chunk without octets would be the last one
    tcp_layer().expires_after(server_.limits.send_time);
    auto written = [self = this->shared_from_this()](const error_code& error, std::size_t) {
      error ? self->parts_sent(error) : self->part_written();
    };
    if (has_chunks_)
      asio::async_write(stream_, wire::make_chunk(asio::buffer(part_)), std::move(written));
    else
      asio::async_write(stream_, asio::buffer(part_), std::move(written));
  }

  void part_written() {
    part_.clear();
    if (!next_part_) return end_parts();
    tcp_layer().expires_never();
    server_.make_part(
        next_part_, [self = this->shared_from_this()](const Result<bool>& more, std::string part) {
          if (!more) return self->cut(more.error());
          if (!*more) self->next_part_ = nullptr;
          self->part_ = std::move(part);
          self->write_part();
        });
  }

  void end_parts() {
    if (!has_chunks_) return parts_sent({});
    asio::async_write(stream_, wire::make_chunk_last(),
                      [self = this->shared_from_this()](const error_code& error, std::size_t) {
                        self->parts_sent(error);
                      });
  }

  void parts_sent(const error_code& error) {
    serializer_.reset();
    next_part_ = nullptr;
    part_ = {};
    sent(error);
  }

  /// A client of HTTP/1.0 knows by the reset alone that parts are missing.
  void cut(const Error& error) {
    log::debug("http_response_cut", "reason", error.text);
    error_code ignored;
    tcp_layer().socket().set_option(asio::socket_base::linger(true, 0), ignored);
    parts_sent(asio::error::connection_aborted);
  }

  /// A client that reads slowly keeps its response in memory. False: too much is there already.
  bool hold(std::uint64_t bytes) noexcept {
    const ServerLimits& limits = server_.limits;
    if (without_body_ || bytes <= limits.body_bytes) return true;
    if (server_.unsent_bytes != 0 && server_.unsent_bytes + bytes > limits.unsent_bytes)
      return false;
    held_ = bytes;
    server_.unsent_bytes += bytes;
    return true;
  }
  void release_response() noexcept { server_.unsent_bytes -= std::exchange(held_, 0); }

  void sent(const error_code& error) {
    release_large();
    release_response();
    response_.body() = {};  // the client may keep the connection for long
    if (error) return close();
    if (!keep_alive_) return finish();
    tcp_layer().expires_after(server_.limits.idle_time);
    read();
  }

  /// Closing with unread input would send a reset, which may destroy the response (RFC 9112 §9.6).
  void finish() {
    error_code ignored;
    tcp_layer().socket().shutdown(tcp::socket::shutdown_send, ignored);
    server_.waits(*this);
    tcp_layer().expires_after(server_.limits.request_time);
    discard();
  }
  void discard() {
    tcp_layer().async_read_some(
        asio::buffer(rest_),
        [self = this->shared_from_this()](const error_code& error, std::size_t) {
          if (!error) self->discard();
        });
  }

  HttpServer::Impl& server_;
  Stream stream_;
  beast::flat_buffer buffer_{std::size_t{64} << 10};
  std::optional<wire::request_parser<wire::string_body>> parser_;
  wire::response<wire::empty_body> continue_;
  wire::response<wire::string_body> response_;
  wire::response<wire::empty_body> head_;  ///< of a response in parts
  std::optional<wire::response_serializer<wire::empty_body>> serializer_;
  NextPart next_part_;  ///< called in another thread, while nothing of the session is under way
  std::string part_;
  std::array<char, 1024> rest_{};
  static constexpr unsigned kNewestVersion = 11;
  unsigned version_ = kNewestVersion;
  std::uint64_t held_ = 0;  ///< bytes of this response in Impl::unsent_bytes
  bool keep_alive_ = false;
  bool without_body_ = false;
  bool has_chunks_ = false;
  bool has_large_ = false;
};

}  // namespace

Status HttpServer::Impl::load_tls(const TlsFiles& files) {
  tls_.emplace(asio::ssl::context::tls_server);
  error_code error;
  tls_->set_options(asio::ssl::context::default_workarounds | asio::ssl::context::no_sslv2 |
                        asio::ssl::context::no_sslv3 | asio::ssl::context::no_tlsv1 |
                        asio::ssl::context::no_tlsv1_1,
                    error);
  if (!error) tls_->use_certificate_chain_file(files.certificate, error);
  if (error) return fail(Errc::kInvalid, "{}: {}", files.certificate, error.message());
  tls_->use_private_key_file(files.key, asio::ssl::context::pem, error);
  if (error) return fail(Errc::kInvalid, "{}: {}", files.key, error.message());
  return {};
}

Status HttpServer::Impl::listen(const Endpoint& at) {
  sockaddr_storage address{};
  const socklen_t length = at.to_sockaddr(address);
  tcp::endpoint endpoint;
  endpoint.resize(length);
  std::memcpy(endpoint.data(), &address, length);
  Listener& listener = listeners_.emplace_back(io);
  error_code error;
  listener.acceptor.open(endpoint.protocol(), error);
  if (!error) listener.acceptor.set_option(asio::socket_base::reuse_address(true), error);
  if (!error && !at.address.is_v4())
    listener.acceptor.set_option(asio::ip::v6_only(true), error);
  if (!error) listener.acceptor.bind(endpoint, error);
  if (!error) listener.acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) return fail(Errc::kIo, "{}: {}", to_text(at), error.message());
  return {};
}

std::vector<Endpoint> HttpServer::Impl::addresses() const {
  std::vector<Endpoint> all;
  for (const Listener& listener : listeners_) {
    const tcp::endpoint local = listener.acceptor.local_endpoint();
    all.push_back(Endpoint::from_sockaddr(local.data()));
  }
  return all;
}

void HttpServer::Impl::run() {
  signals_.async_wait([this](const error_code& error, int) {
    if (!error) end();
  });
  reading_.threads.emplace(limits.threads);
  changing_.threads.emplace(1);
  for (Listener& listener : listeners_) accept(listener);
  io.run();
  reading_.threads->join();
  changing_.threads->join();
}

void HttpServer::Impl::end() {
  signals_.cancel();
  for (Listener& listener : listeners_) {
    error_code ignored;
    listener.acceptor.close(ignored);
    listener.pause.cancel();
  }
  io.stop();
}

void HttpServer::Impl::accept(Listener& listener) {
  listener.acceptor.async_accept([this, &listener](const error_code& error, tcp::socket socket) {
    if (!listener.acceptor.is_open()) return;
    if (!error) {
      admit(std::move(socket));
      return accept(listener);
    }
    // The cause may be a lack of descriptors: an immediate attempt would fail again.
    listener.pause.expires_after(kAcceptPause);
    listener.pause.async_wait([this, &listener](const error_code& cancelled) {
      if (!cancelled) accept(listener);
    });
  });
}

/// Ends the connection that has waited longest. False: all are in work.
bool HttpServer::Impl::make_room() {
  for (const auto& weak : connections_) {
    const auto connection = weak.lock();
    if (!connection || !connection->waits_for_client) continue;
    connection->waits_for_client = false;  // its end comes with the next turn of the loop
    connection->close();
    return true;
  }
  return false;
}

void HttpServer::Impl::admit(tcp::socket socket) {
  // Connections that were closed are still in the list for a moment.
  if (connections_.size() >= limits.connections && !make_room()) return;
  std::shared_ptr<Connection> connection;
  if (tls_)
    connection = std::make_shared<Session<TlsStream>>(*this, std::move(socket), *tls_);
  else
    connection = std::make_shared<Session<PlainStream>>(*this, std::move(socket));
  connection->place = connections_.insert(connections_.end(), connection);
  connection->start();
}

template <class Reply>
bool HttpServer::Impl::handle(Request request, Reply reply) {
  Pool& pool = request.is_safe() ? reading_ : changing_;
  if (pool.in_work >= limits.waiting) return false;
  ++pool.in_work;
  asio::post(*pool.threads, [this, &pool, request = std::move(request),
                             reply = std::move(reply)]() mutable {
    Response response = handlers.answer(request);
    asio::post(io, [&pool, response = std::move(response), reply = std::move(reply)]() mutable {
      --pool.in_work;
      reply(std::move(response));
    });
  });
  return true;
}

template <class Reply>
void HttpServer::Impl::make_part(NextPart& next, Reply reply) {
  asio::post(*reading_.threads, [this, &next, reply = std::move(reply)]() mutable {
    std::string part;
    Result<bool> more = next(part);
    asio::post(io, [more = std::move(more), part = std::move(part),
                    reply = std::move(reply)]() mutable { reply(more, std::move(part)); });
  });
}

HttpServer::HttpServer(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
HttpServer::~HttpServer() = default;

Result<std::unique_ptr<HttpServer>> HttpServer::open(const std::vector<Endpoint>& listen,
                                                     const std::optional<TlsFiles>& tls,
                                                     const ServerLimits& limits, Handlers handlers) {
  auto impl = std::make_unique<Impl>(limits, std::move(handlers));
  if (tls) {
    if (auto loaded = impl->load_tls(*tls); !loaded) return pass(loaded);
  }
  for (const Endpoint& at : listen)
    if (auto bound = impl->listen(at); !bound) return pass(bound);
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

void HttpServer::run() { impl_->run(); }
void HttpServer::stop() { impl_->stop(); }
std::vector<Endpoint> HttpServer::addresses() const { return impl_->addresses(); }

}  // namespace pando::http
