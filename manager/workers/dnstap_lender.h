#pragma once

#include <asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "base/fd.h"
#include "base/result.h"
#include "manager/net/frame_stream_handshake.h"
#include "manager/support/rate_limited_log.h"
#include "manager/workers/worker_pool_options.h"
#include "manager/workers/worker_table.h"

namespace pando::manager {

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

  /// `table` must outlive this object.
  DnstapLender(WorkerTable& table, std::optional<DnstapOptions> options);
  ~DnstapLender();
  DnstapLender(const DnstapLender&) = delete;
  DnstapLender& operator=(const DnstapLender&) = delete;

  /// For present and future workers; none switches dnstap off.
  void set(std::optional<DnstapOptions> options);
  /// The slot has a worker that is served from now on.
  void worker_came(const WorkerSlot& slot);
  /// The worker's stream has ended.
  void stream_lost(const WorkerSlot& slot);

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

  WorkerTable& table_;
  std::optional<DnstapOptions> options_;
  std::map<std::uint32_t, Stream> streams_;
  RateLimitedLog failures_;
};

}  // namespace pando::manager
