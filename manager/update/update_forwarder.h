#pragma once

#include <asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "base/address.h"
#include "base/bytes.h"
#include "base/result.h"
#include "manager/net/network.h"
#include "manager/secondary/refresh_slots.h"
#include "base/net/token_bucket.h"

namespace pando::manager {

/// An UPDATE for a secondary zone, to be forwarded to the primary.
struct ForwardedUpdate {
  Bytes message;                    ///< unchanged from the client
  std::vector<Endpoint> primaries;  ///< in order of preference; not empty
  std::optional<IpAddress> source;  ///< see open_towards()
  bool proven = false;              ///< this server has verified the client's signature
};

/// Forwards UPDATEs to primaries (RFC 2136 §6), unchanged but for the message ID, and returns the
/// answers with the client's ID. A client's TSIG therefore holds from end to end. The TSIG covers
/// the original ID (RFC 8945 §5.3.2), and its key need not be known here.
///
/// Uses TCP, so nothing is sent twice. The next primary is tried only while nothing has been sent,
/// since a sent update may have been executed.
///
/// Lives on the commit thread; connections run on the network's.
class UpdateForwarder {
 public:
  struct Options {
    std::uint32_t max_running = 128;
    std::uint32_t max_per_primary = 32;  ///< an absent primary leaves room for the others
    /// Of a primary that has not answered the last update: several such primaries leave room, too.
    std::uint32_t max_per_silent_primary = 4;
    /// Of all such primaries together, however many there are.
    std::uint32_t max_silent = 64;
    /// Updates a second whose client nobody has verified. Each costs the primary a connection, and
    /// anybody can send such updates.
    std::uint32_t unproven_per_second = 100;
    /// Limit for the whole exchange; less than workers wait for the manager's answer.
    std::chrono::milliseconds timeout{8000};
    std::chrono::milliseconds connect_timeout{2000};  ///< limit to connect, for each primary
  };
  struct Counters {
    std::uint64_t forwarded = 0;  ///< a primary answered
    std::uint64_t failed = 0;     ///< no primary answered, or too many updates were under way
  };
  /// Receives the primary's answer with the client's message ID, or an error. Called on the commit
  /// thread, possibly before forward() returns.
  using Done = std::function<void(Result<Bytes>)>;

  UpdateForwarder(asio::io_context& commit_loop, Network& network, Options options)
      : commit_loop_(commit_loop),
        network_(network),
        options_(options),
        unproven_pace_(options.unproven_per_second, options.unproven_per_second) {
    running_.set_limits({options.max_running, options.max_per_primary});
  }
  ~UpdateForwarder() { stop(); }
  UpdateForwarder(const UpdateForwarder&) = delete;
  UpdateForwarder& operator=(const UpdateForwarder&) = delete;

  void forward(ForwardedUpdate update, Done done);
  [[nodiscard]] const Counters& counters() const noexcept { return counters_; }
  void stop() { *alive_ = false; }

 private:
  [[nodiscard]] Status check_room(const Endpoint& primary) const;
  [[nodiscard]] std::uint32_t running_at_silent() const;
  void finished(const Endpoint& primary, Result<Bytes> answer, const Done& done);

  asio::io_context& commit_loop_;
  Network& network_;
  Options options_;
  TokenBucket unproven_pace_;
  RefreshSlots running_;       // by the first primary of the zone
  std::set<Endpoint> silent_;  // first primaries of zones for which no primary answered last
  Counters counters_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace pando::manager
