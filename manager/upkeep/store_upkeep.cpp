#include "manager/upkeep/store_upkeep.h"

#include <algorithm>
#include <utility>

#include "base/crash_point.h"
#include "base/steady_time.h"
#include "ipc/log.h"
#include "zone/draft/compaction.h"
#include "zone/draft/discarded_blocks.h"
#include "zone/draft/shorten_histories.h"

namespace pando::manager {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kLeastPerStep = 32;
constexpr std::size_t kMaxPerStep = 16384;
/// With low space chunks up to this live share are emptied, too. Scattered deletes leave small
/// holes everywhere, which together exceed the reserve.
constexpr unsigned kLowSpaceVictimPercent = 98;
/// Garbage of this many percent makes steps longer: updates must not outrun the walk.
constexpr std::uint64_t kUrgentPercent = 33;
constexpr int kUrgentFactor = 4;
/// Pause after a failed step, or after a walk that could not help.
constexpr std::chrono::seconds kPause{1};

}  // namespace

StoreUpkeep::StoreUpkeep(asio::io_context& io, shm::Store& store, Committer& committer,
                         Options options)
    : store_(store), committer_(committer), options_(options), timer_(io) {}

void StoreUpkeep::start() {
  committer_.on_idle_room([this] { return next_step(); });
  tick();
}

void StoreUpkeep::stop() {
  stopped_ = true;
  timer_.cancel();
}

void StoreUpkeep::tick() {
  if (stopped_) return;
  reclaim();
  look_at_machine();
  if (!committer_.busy())
    if (auto step = next_step()) committer_.submit(std::move(*step));
  timer_.expires_after(options_.interval);
  timer_.async_wait([this](const asio::error_code& error) {
    if (!error) tick();
  });
}

void StoreUpkeep::look_at_machine() {
  store_.look_at_machine();
  const shm::StoreStats stats = store_.stats();
  const bool before = std::exchange(memory_refused_, stats.memory_refused);
  if (before || !memory_refused_) return;
  if (auto times = refused_.one_more(steady_milliseconds()))
    log::warning("store_memory_refused", "effective_limit", stats.limit_bytes, "limit",
                 stats.size_limit, "times", *times);
}

void StoreUpkeep::reclaim() {
  if (store_.stats().waiting_chunks > 0) counters_.chunks_reclaimed += store_.reclaim();
}

unsigned StoreUpkeep::least_garbage_percent() const {
  return options_.garbage_percent * (has_other_work_ && has_other_work_() ? 2 : 1);
}

bool StoreUpkeep::wants_walk() {
  if (store_.is_borrowing()) return false;  // no chunk can be chosen now; later one can
  const StoreGarbage now = garbage();
  const bool low_space = store_.low_space();
  if (now.chunks < options_.least_chunks) return false;
  if (low_space ? rest_.goes_on(now) : now.percent < least_garbage_percent()) return false;
  ++counters_.searches;
  const unsigned most = low_space ? kLowSpaceVictimPercent : options_.victim_percent;
  if (store_.choose_victims(most, now.used / 2 + 1) > 0) {
    rest_.begin_walk(now);
    return true;
  }
  if (low_space)
    rest_.begin(now);
  else
    pause_until_ = Clock::now() + kPause;
  return false;
}

std::optional<CommitRequest> StoreUpkeep::next_step() {
  if (stopped_ || step_running_ || Clock::now() < pause_until_) return std::nullopt;
  const bool discarded = committer_.current().has_discarded();
  if (!histories_.is_walking() && wants_shorter_histories())
    histories_.begin_walk(committer_.current().history_bytes());
  if (!walking_ && (starved_ || (!discarded && !histories_.is_walking()))) {
    walking_ = wants_walk();
    if (walking_) ++counters_.walks;
  }
  if (!walking_ && !discarded && !histories_.is_walking()) return std::nullopt;
  step_running_ = true;
  ++counters_.steps;
  if (walking_) return compact_step();
  return histories_.is_walking() ? shorten_step() : dismantle_step();
}

bool StoreUpkeep::wants_shorter_histories() const {
  const zone::StoreView current = committer_.current();
  const std::uint64_t bytes = current.history_bytes();
  if (store_.low_space_without_pins()) return bytes > 0 || current.archives() > 0;
  return histories_.exceeds(bytes);
}

std::chrono::nanoseconds StoreUpkeep::slice() const {
  const bool urgent = garbage().percent >= kUrgentPercent || store_.low_space();
  return options_.slice * (urgent ? kUrgentFactor : 1);
}

/// By processor time: on a busy host, wall-clock time would shorten the steps just when upkeep
/// falls behind.
void StoreUpkeep::adapt(std::size_t& amount, std::chrono::nanoseconds spent) {
  const auto slice = this->slice();
  if (spent > slice)
    amount = std::max(amount / 2, std::min(amount, kLeastPerStep));
  else if (spent * 2 < slice)
    amount = std::min(amount * 2, kMaxPerStep);
}

CommitRequest StoreUpkeep::dismantle_step() {
  CommitRequest request;
  request.stage = [this](Stage& stage) -> Status {
    stage.reserve = shm::Reserve::kAll;
    const auto start = thread_time();
    if (auto done = zone::dismantle_discarded(stage.draft, blocks_); !done) return pass(done);
    adapt(blocks_, thread_time() - start);
    return {};
  };
  request.done = [this](const Result<std::uint64_t>& version) {
    crash_point("store-discarded-dismantled");
    step_done(status_of(version));
  };
  return request;
}

CommitRequest StoreUpkeep::shorten_step() {
  struct Progress {
    dns::Name cursor;
    bool finished = false;
  };
  auto progress = std::make_shared<Progress>();
  CommitRequest request;
  request.stage = [this, progress](Stage& stage) -> Status {
    stage.reserve = shm::Reserve::kAll;
    progress->cursor = histories_.cursor();
    auto done = zone::shorten_histories(stage.draft, progress->cursor, histories_.zones_per_step());
    if (!done) return pass(done);
    progress->finished = *done;
    return {};
  };
  request.done = [this, progress](const Result<std::uint64_t>& version) {
    version ? histories_.step_done(progress->cursor) : histories_.step_failed();
    if (version && progress->finished) histories_.end_walk(committer_.current().history_bytes());
    step_done(status_of(version));
  };
  return request;
}

/// The cursor moves on only with the version that holds the moved blocks.
CommitRequest StoreUpkeep::compact_step() {
  struct Progress {
    zone::CompactCursor cursor;
    bool finished = false;
    std::chrono::nanoseconds spent{0};
  };
  auto progress = std::make_shared<Progress>();
  CommitRequest request;
  request.stage = [this, progress](Stage& stage) -> Status {
    stage.reserve = shm::Reserve::kAll;
    const auto start = thread_time();
    progress->cursor = cursor_;
    // A name may take much longer in one part of the store than in the next, so a number of names
    // is no bound of the time.
    auto done = zone::compact(
        stage.draft, progress->cursor, names_,
        [this](dns::NameView apex) { return is_spared(apex); },
        [start, most = slice()] { return thread_time() - start >= most; });
    if (!done) return pass(done);
    progress->finished = *done;
    progress->spent = thread_time() - start;
    crash_point("store-compact-staged");
    return {};
  };
  request.done = [this, progress](const Result<std::uint64_t>& version) {
    crash_point("store-compact-published");
    if (version) cursor_ = progress->cursor;
    const bool full = !version && version.error().code == Errc::kFull;
    if (full && shrink_steps()) return step_done({});
    if (version) adapt(names_, progress->spent);
    if (!version || progress->finished || !store_.narrow_victims()) walk_done();
    step_done(status_of(version));
  };
  return request;
}

void StoreUpkeep::walk_done() {
  walking_ = false;
  cursor_ = {};
  store_.forget_victims();
  reclaim();
  crash_point("store-compact-ended");
  spared_.walks = spared_.in_this_walk ? spared_.walks + 1 : 0;
  // The garbage of spared zones is still there, and the next walk might not help either.
  if (std::exchange(spared_.in_this_walk, false)) pause_until_ = Clock::now() + kPause;
  if (rest_.end_walk(garbage())) starved_ = false;
}

/// Moved blocks need space before the old ones are freed, so a shorter step needs less. False when
/// the step is the shortest already.
bool StoreUpkeep::shrink_steps() {
  constexpr std::size_t kShortest = 2;
  if (names_ <= kShortest) return false;
  names_ = std::max(names_ / 2, kShortest);
  return true;
}

/// With low space, freeing chunks is worth repeating a computation.
bool StoreUpkeep::is_spared(dns::NameView apex) {
  if (spared_.walks >= options_.sparing_walks || store_.low_space()) return false;
  if (!spared_.is_at_work || !spared_.is_at_work(apex)) return false;
  spared_.in_this_walk = true;
  return true;
}

void StoreUpkeep::step_done(const Status& status) {
  step_running_ = false;
  if (!status) {
    if (auto times = failed_.one_more(steady_milliseconds()))
      log::warning("store_upkeep_failed", "reason", status.error().text, "times", *times);
    starved_ = starved_ || status.error().code == Errc::kFull;
    pause_until_ = Clock::now() + kPause;
    return;
  }
  // With an idle committer the next step starts immediately; otherwise the next group takes a step
  // along.
  if (!committer_.busy())
    if (auto step = next_step()) committer_.submit(std::move(*step));
}

}  // namespace pando::manager
