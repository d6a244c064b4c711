#pragma once

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <memory>
#include <optional>

#include "manager/committer.h"

namespace pando::manager {

/// Keeps the store small: empties chunks that hold mostly garbage and gives back the blocks of
/// replaced zones, one short step at a time. Steps ride along with groups of updates; when there
/// are none they run on their own.
class StoreUpkeep {
 public:
  struct Options {
    unsigned garbage_percent = 20;          ///< of the chunks in use: more starts a walk
    unsigned victim_percent = 85;           ///< chunks with a smaller live part are emptied
    std::uint64_t least_chunks = 2;         ///< garbage below this is left alone
    std::chrono::microseconds slice{1000};  ///< how long one step may keep the commit thread
    std::chrono::milliseconds interval{100};
  };
  struct Counters {
    std::uint64_t walks = 0;
    std::uint64_t steps = 0;
    std::uint64_t chunks_reclaimed = 0;
  };

  StoreUpkeep(asio::io_context& io, shm::Store& store, Committer& committer, Options options);

  /// Starts the timer.
  void start();
  void stop();
  /// A zone was replaced or removed: there is something to give back.
  void zones_retired() { retired_ = true; }
  /// Readers may have let go of something.
  void reclaim();
  [[nodiscard]] const Counters& counters() const noexcept { return counters_; }

 private:
  std::optional<CommitRequest> next_step();
  struct Garbage {
    std::uint64_t used = 0;     ///< chunks in use
    std::uint64_t chunks = 0;   ///< worth of garbage in them
    std::uint64_t percent = 0;  ///< the share
  };
  [[nodiscard]] Garbage garbage() const;
  bool wants_walk();
  CommitRequest dismantle_step();
  CommitRequest compact_step();
  void step_done(const Status& status);
  void tick();
  void adapt(std::size_t& amount, std::chrono::nanoseconds spent);

  shm::Store& store_;
  Committer& committer_;
  Options options_;
  asio::steady_timer timer_;
  bool stopped_ = false;
  bool step_running_ = false;
  bool walking_ = false;
  bool retired_ = true;  // what an earlier manager left
  std::size_t names_ = 256;
  std::size_t blocks_ = 1024;
  zone::Draft::CompactCursor cursor_;
  std::chrono::steady_clock::time_point pause_until_{};
  Counters counters_;
};

}  // namespace pando::manager
