#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/address.h"
#include "base/result.h"
#include "http/serve/http_message.h"

namespace pando::http {

/// Bounds on what strangers can make the server hold.
struct ServerLimits {
  std::size_t connections = 256;
  std::uint32_t header_bytes = 16 << 10;
  std::uint64_t body_bytes = 64 << 10;
  /// Of clients that Handlers::may_send_much lets send more: 20,000 records have some 3 MB.
  std::uint64_t large_body_bytes = 4 << 20;
  std::size_t large_bodies = 8;  ///< in memory together, until they are answered
  /// Of responses above body_bytes, until their clients have read them. One response alone may be
  /// larger.
  std::uint64_t unsent_bytes = 128 << 20;
  /// From the accept, or from the first request on, to the end of a whole request. No octet in
  /// between extends it, so that a client which sends one octet a second holds nothing for long.
  std::chrono::milliseconds request_time{10'000};
  std::chrono::milliseconds idle_time{60'000};  ///< the same for later requests
  std::chrono::milliseconds send_time{30'000};
  std::size_t threads = 2;   ///< that answer GET and HEAD
  /// Requests in progress or waiting for a thread. Reads and changes are counted apart.
  std::size_t waiting = 32;
  /// Of known clients together, and once more of all strangers.
  std::uint32_t requests_per_second = 100;
  std::uint32_t burst = 200;
};

/// Files of PEM.
struct TlsFiles {
  std::string certificate;
  std::string key;
};

/// An HTTP/1.1 server: one thread does all input and output, some threads answer GET and HEAD, and
/// one thread all other methods, in the order of their arrival. At the limit, a new connection
/// replaces the one that has waited longest for its client. Boost.Beast reads and writes the
/// messages.
class HttpServer {
 public:
  class Impl;
  /// Binds all addresses. kIo, kInvalid (certificate or key).
  static Result<std::unique_ptr<HttpServer>> open(const std::vector<Endpoint>& listen,
                                                  const std::optional<TlsFiles>& tls,
                                                  const ServerLimits& limits, Handlers handlers);
  ~HttpServer();
  /// Serves until SIGTERM, SIGINT or stop().
  void run();
  /// From any thread.
  void stop();
  /// The addresses that are bound, with the port that the kernel chose for port 0.
  [[nodiscard]] std::vector<Endpoint> addresses() const;

 private:
  explicit HttpServer(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace pando::http
