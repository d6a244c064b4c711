#pragma once

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <memory>
#include <optional>

#include "manager/commit/committer.h"
#include "manager/commit/compaction_limits.h"
#include "manager/support/rate_limited_log.h"

namespace pando::manager {

/// Keeps the store small: empties chunks that hold mostly garbage, gives back the blocks of
/// replaced zones, and shortens the zones' histories when all together are too large or the store
/// stays nearly full, one short step at a time. Steps ride along with groups of updates; when there
/// are none they run on their own.
///
/// In a store that is nearly full walks start for less garbage and take what there is room for;
/// those that gain nothing are not repeated before something changed.
class StoreUpkeep {
 public:
  struct Options {
    unsigned garbage_percent = kGarbagePercent;  ///< of the chunks in use: more starts a walk
    unsigned victim_percent = kVictimPercent;    ///< chunks with a smaller live part are emptied
    std::uint64_t least_chunks = 2;              ///< garbage below this is left alone
    std::chrono::microseconds slice{1000};       ///< how long one step may keep the commit thread
    std::chrono::milliseconds interval{100};
    unsigned patience = 30;  ///< walks in a row, a second apart, that pass over zones at work
  };
  struct Counters {
    std::uint64_t searches = 0;  ///< for chunks to empty, each a pass over all of them
    std::uint64_t walks = 0;
    std::uint64_t steps = 0;
    std::uint64_t chunks_reclaimed = 0;
  };

  StoreUpkeep(asio::io_context& io, shm::Store& store, Committer& committer, Options options);

  /// Starts the timer.
  void start();
  void stop();
  /// Bytes that the histories of all zones may take.
  void set_history_total(std::uint64_t bytes) { history_total_ = bytes; }
  /// Zones that compaction passes over while it is asked: their data are being worked on from a
  /// version that has to stay what it is. Not for ever, nor when the store is nearly full: then
  /// that work is done again.
  void leave_alone(zone::Draft::LeaveAlone zones) { leave_alone_ = std::move(zones); }
  /// Readers may have let go of something.
  void reclaim();
  [[nodiscard]] const Counters& counters() const noexcept { return counters_; }

 private:
  std::optional<CommitRequest> next_step();
  struct Garbage {
    std::uint64_t used = 0;     ///< chunks in use
    std::uint64_t chunks = 0;   ///< worth of garbage in them
    std::uint64_t percent = 0;  ///< the share
    std::uint64_t bytes = 0;
    std::uint64_t free = 0;   ///< chunks below the limit that are not in use
    std::uint64_t slack = 1;  ///< so many chunks more or less make no other walk of it
  };
  [[nodiscard]] Garbage garbage() const;
  bool wants_walk();
  [[nodiscard]] bool wants_shorter_histories() const;
  CommitRequest dismantle_step();
  CommitRequest shorten_step();
  void shortened_all();
  CommitRequest compact_step();
  void walk_done();
  [[nodiscard]] bool rests(const Garbage& now) const;
  bool shrink_steps();
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
  bool shortening_ = false;
  std::uint64_t history_total_ = UINT64_MAX;
  std::uint64_t history_before_ = 0;  // when the walk that shortens them began
  std::uint64_t history_needed_ = 0;  // by saved versions, as the last walk left it; or 0
  std::size_t names_ = 256;
  std::size_t histories_ = 8;  // zones whose history one step looks at
  bool starved_ = false;       // the other steps found no room: a walk goes first
  Garbage before_walk_;
  unsigned walks_in_vain_ = 0;    // in a row
  std::optional<Garbage> rests_;  // as it was when a walk was not worth it, or several in vain
  RateLimitedLog failed_{60'000};
  std::size_t blocks_ = 1024;
  zone::Draft::CompactCursor cursor_;
  zone::Draft::LeaveAlone leave_alone_;
  [[nodiscard]] bool is_left_alone(dns::NameView apex);
  bool left_alone_ = false;  // a zone, in this walk
  unsigned left_walks_ = 0;  // walks in a row that left one alone
  dns::Name shortened_;      // up to this zone
  std::chrono::steady_clock::time_point pause_until_{};
  Counters counters_;
};

}  // namespace pando::manager
