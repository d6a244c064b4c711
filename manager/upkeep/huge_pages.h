#pragma once

#include <asio/io_context.hpp>
#include <asio/thread_pool.hpp>
#include <cstdint>

#include "shm/store.h"

namespace pando::manager {

/// Puts huge pages under a store that has grown much (shm::Store::collapse), in a pool thread. Each
/// 2 MiB are copied once. A thread that reads a region meanwhile, a worker or the commit thread,
/// waits for milliseconds. So the copies follow a load or a reload of many zones, once the store's
/// size has come to rest, not the trickle of updates. A large zone gets its huge pages before
/// publication (shm/transaction.cpp).
class HugePages {
 public:
  struct Options {
    /// Growth that makes a pass over the chunks worthwhile; an eighth of the store when that is
    /// more.
    std::uint64_t growth_bytes = std::uint64_t{16} << 20;
    /// 2 MiB regions at a time: some 30 ms of a pool thread's time.
    std::size_t regions = 64;
    /// A store whose memory changed by more since the check before is not at rest.
    std::uint64_t rest_bytes = std::uint64_t{2} << 20;
  };

  /// All references outlive the pool's threads.
  HugePages(asio::io_context& io, asio::thread_pool& pool, shm::Store& store, Options options)
      : io_(io), pool_(pool), store_(store), options_(options) {}

  /// To be called about once a second on the commit thread; returns immediately.
  void check();
  /// Regions that the kernel has given a huge page.
  [[nodiscard]] std::uint64_t regions() const noexcept { return done_; }
  [[nodiscard]] bool busy() const noexcept { return busy_; }

 private:
  /// Whether the store's memory is about what it was at the check before.
  bool is_at_rest(std::uint64_t memory);
  void finished(std::size_t regions);

  asio::io_context& io_;
  asio::thread_pool& pool_;
  shm::Store& store_;
  Options options_;
  std::uint64_t looked_at_ = 0;  ///< memory of the store at the last complete pass
  std::uint64_t at_check_ = 0;   ///< memory of the store at the last check
  std::uint64_t done_ = 0;
  bool busy_ = false;
};

}  // namespace pando::manager
