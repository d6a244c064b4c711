#include "manager/server/previous_store.h"

#include <algorithm>
#include <utility>

#include "ipc/log.h"

namespace pando::manager {

using Clock = std::chrono::steady_clock;

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
  const auto spent = Clock::now() - since_;
  log::info("previous_store_left", "reason", reason, "ms",
            std::chrono::duration_cast<std::chrono::milliseconds>(spent).count());
  calls_.leave();
}

void PreviousStore::stop() noexcept {
  kept_ = false;
  timer_.cancel();
}

void PreviousStore::look() {
  if (lacks_memory()) return leave("the machine lacks memory for two stores");
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
