#pragma once

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <functional>
#include <optional>

#include "manager/commit/committer.h"
#include "manager/support/rate_limited_log.h"
#include "manager/upkeep/compaction_rest.h"
#include "manager/upkeep/history_shortening.h"
#include "zone/draft/compaction.h"

namespace pando::manager {

/// Keeps the store small, one short step at a time: empties chunks that hold mostly garbage, and
/// frees the blocks of replaced zones. Histories are shortened when their sum is too large, or when
/// space stays low without pinned chunks. Steps ride along with groups of updates, or run on their
/// own when there are none.
///
/// With low space, walks start at less garbage and use the space there is. A fruitless walk is not
/// repeated before something has changed.
class StoreUpkeep {
 public:
  struct Options {
    unsigned garbage_percent = kGarbagePercent;  ///< share of garbage in the chunks in use that
                                                 ///< starts a walk
    unsigned victim_percent = kVictimPercent;    ///< chunks with a smaller live part are emptied
    std::uint64_t least_chunks = 2;              ///< less garbage than this is not compacted
    std::chrono::microseconds slice{1000};  ///< time for which one step may occupy the commit thread
    std::chrono::milliseconds interval{100};
    unsigned sparing_walks = 30;  ///< consecutive walks, a second apart, that spare zones at work
  };
  struct Counters {
    std::uint64_t searches = 0;  ///< for chunks to empty, each a pass over all of them
    std::uint64_t walks = 0;
    std::uint64_t steps = 0;
    std::uint64_t chunks_reclaimed = 0;
  };

  StoreUpkeep(asio::io_context& io, shm::Store& store, Committer& committer, Options options);

  void start();
  void stop();
  /// Bytes that the histories of all zones may take.
  void set_history_total(std::uint64_t bytes) { histories_.set_limit(bytes); }
  /// Sets a predicate of zones that compaction spares while work on their pinned data is under way.
  /// After `sparing_walks` walks, or with low space, such a zone is moved all the same, and the
  /// work repeated.
  void leave_alone(zone::LeaveAlone zones) { spared_.is_at_work = std::move(zones); }
  /// While `has_work` is true of other work of the commit thread, walks begin at twice the garbage.
  /// Low space begins them all the same.
  void yield_to(std::function<bool()> has_work) { has_other_work_ = std::move(has_work); }
  /// Frees chunks that readers have let go.
  void reclaim();
  [[nodiscard]] const Counters& counters() const noexcept { return counters_; }

 private:
  std::optional<CommitRequest> next_step();
  /// Zones that compaction spares while work on their pinned data is under way.
  struct SparedZones {
    zone::LeaveAlone is_at_work;
    bool in_this_walk = false;
    unsigned walks = 0;  // in a row that spared a zone
  };
  [[nodiscard]] StoreGarbage garbage() const { return StoreGarbage::of(store_.stats()); }
  bool wants_walk();
  [[nodiscard]] unsigned least_garbage_percent() const;
  [[nodiscard]] bool wants_shorter_histories() const;
  CommitRequest dismantle_step();
  CommitRequest shorten_step();
  CommitRequest compact_step();
  void walk_done();
  bool shrink_steps();
  void look_at_machine();
  [[nodiscard]] bool is_spared(dns::NameView apex);
  void step_done(const Status& status);
  void tick();
  [[nodiscard]] std::chrono::nanoseconds slice() const;
  void adapt(std::size_t& amount, std::chrono::nanoseconds spent);

  shm::Store& store_;
  Committer& committer_;
  Options options_;
  asio::steady_timer timer_;
  bool stopped_ = false;
  bool step_running_ = false;
  bool walking_ = false;
  bool starved_ = false;  // the other steps lacked space: a walk goes first
  HistoryShortening histories_;
  CompactionRest rest_;
  SparedZones spared_;
  std::function<bool()> has_other_work_;
  std::size_t names_ = 256;  // that one step of a walk compacts
  RateLimitedLog failed_{60'000};
  RateLimitedLog refused_{60'000};
  bool memory_refused_ = false;  // at the last check
  std::size_t blocks_ = 1024;    // of discarded data that one step frees
  zone::CompactCursor cursor_;
  std::chrono::steady_clock::time_point pause_until_{};
  Counters counters_;
};

}  // namespace pando::manager
