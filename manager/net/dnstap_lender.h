#pragma once

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "ipc/worker_messages.h"
#include "manager/net/frame_stream_handshake.h"
#include "manager/support/rate_limited_log.h"

namespace pando::manager {

/// server.dnstap: where the collector listens, and what workers write for it.
struct DnstapOptions {
  std::string socket;
  ipc::Dnstap what;
  bool operator==(const DnstapOptions&) const = default;
};

/// Lends each worker a stream to the dnstap collector (server.dnstap): workers can open none. A
/// collector that is absent is tried again, with growing pauses; so is one that ended a stream. A
/// worker may report as many lost streams as it likes: only the first of each stream counts.
class DnstapLender {
 public:
  static constexpr std::chrono::milliseconds kFirstPause{100};
  static constexpr std::chrono::milliseconds kLongestPause{10'000};
  /// A stream that lasted for this time was a good one: the pauses begin anew.
  static constexpr std::chrono::milliseconds kGoodStream{10'000};
  /// The time that a collector has to accept.
  static constexpr std::chrono::milliseconds kHandshakeTime{5'000};

  struct Calls {
    /// Tells the worker of a slot; false when there is none.
    std::function<bool(std::uint32_t slot, const ipc::Dnstap& what, Fd stream)> tell;
    /// The slots whose workers serve.
    std::function<std::vector<std::uint32_t>()> serving;
  };

  DnstapLender(asio::io_context& io, std::optional<DnstapOptions> options, Calls calls);
  ~DnstapLender();
  DnstapLender(const DnstapLender&) = delete;
  DnstapLender& operator=(const DnstapLender&) = delete;

  /// For present and future workers; none switches dnstap off.
  void set(std::optional<DnstapOptions> options);
  /// The slot has a worker that is served from now on.
  void worker_came(std::uint32_t slot);
  /// The stream of the slot's worker has ended.
  void stream_lost(std::uint32_t slot);

 private:
  struct Stream {
    explicit Stream(asio::io_context& io) : pause(io) {}
    std::shared_ptr<FrameStreamHandshake> opening;
    asio::steady_timer pause;
    std::chrono::milliseconds next_pause{0};
    std::optional<std::chrono::steady_clock::time_point> lent;  ///< while the worker has it
  };

  [[nodiscard]] ipc::Dnstap message() const;
  void open(std::uint32_t slot);
  void opened(std::uint32_t slot, Result<Fd> stream);
  void open_later(std::uint32_t slot, Stream& stream);
  void forget(std::uint32_t slot);
  void forget_all();

  asio::io_context& io_;
  std::optional<DnstapOptions> options_;
  Calls calls_;
  std::map<std::uint32_t, Stream> streams_;
  RateLimitedLog failures_;
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
};

}  // namespace pando::manager
