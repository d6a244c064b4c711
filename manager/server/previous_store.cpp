#include "manager/server/previous_store.h"

#include <algorithm>
#include <utility>

#include "base/steady_time.h"
#include "ipc/log.h"

namespace pando::manager {

namespace {
using Clock = std::chrono::steady_clock;
/// A worker that hangs must not hold back the second try for ever.
constexpr int kMemoryLooks = 50;
}  // namespace

PreviousStore::PreviousStore(asio::io_context& io, const shm::Store& store, Calls calls,
                             Options options)
    : store_(store), calls_(std::move(calls)), options_(options), timer_(io) {}

void PreviousStore::keep() {
  if (std::exchange(kept_, true)) return;
  since_ = progressed_ = Clock::now();
  most_loaded_ = calls_.loaded();
  most_chunks_ = store_.stats().peak_chunks;
  log::info("previous_store_kept", "until", "all zones are loaded");
  look_later();
}

void PreviousStore::leave(std::string_view reason) {
  if (!std::exchange(kept_, false)) return;
  timer_.cancel();
  log::info("previous_store_left", "reason", reason, "ms", milliseconds_since(since_));
  calls_.leave();
}

void PreviousStore::loaded(std::uint64_t failed) {
  const shm::StoreStats stats = store_.stats();
  const bool may_lack = stats.limit_bytes < stats.size_limit && (kept_ || lacked_memory_);
  lacked_memory_ = false;
  leave("all zones are loaded");
  if (failed > 0 && may_lack) await_memory(stats.limit_bytes, kMemoryLooks);
}

/// Readers leave the other store within milliseconds, and its memory is free then.
void PreviousStore::await_memory(std::uint64_t limit, int looks) {
  if (looks == 0 || store_.stats().limit_bytes > limit + limit / 16) return calls_.load_again();
  timer_.expires_after(options_.interval);
  timer_.async_wait([this, limit, looks](const asio::error_code& error) {
    if (!error) await_memory(limit, looks - 1);
  });
}

void PreviousStore::stop() noexcept {
  kept_ = lacked_memory_ = false;
  timer_.cancel();
}

void PreviousStore::look() {
  lacked_memory_ = lacks_memory();
  if (lacked_memory_) return leave("the machine lacks memory for two stores");
  if (is_stuck(Clock::now())) return leave("loading makes no progress");
  look_later();
}

void PreviousStore::look_later() {
  timer_.expires_after(options_.interval);
  timer_.async_wait([this](const asio::error_code& error) {
    if (!error && kept_) look();
  });
}

/// A store that is full by its own limit gains nothing from the other store's end.
bool PreviousStore::lacks_memory() const {
  const shm::StoreStats stats = store_.stats();
  return stats.memory_refused || (stats.limit_bytes < stats.size_limit && store_.low_space());
}

bool PreviousStore::is_stuck(Clock::time_point now) {
  const std::uint64_t loaded = calls_.loaded();
  const std::uint64_t chunks = store_.stats().peak_chunks;
  if (loaded > most_loaded_ || chunks > most_chunks_) progressed_ = now;
  most_loaded_ = std::max(most_loaded_, loaded);
  most_chunks_ = std::max(most_chunks_, chunks);
  return now - progressed_ > options_.patience;
}

}  // namespace pando::manager
