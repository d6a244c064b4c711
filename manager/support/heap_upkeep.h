#pragma once

#include <asio/io_context.hpp>
#include <asio/thread_pool.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace pando::manager {

/// Returns memory to the system that loads of zones have left free in the allocator's arenas. glibc
/// keeps memory freed by a background thread: 20 MB after a zone of 400,000 records.
class HeapUpkeep {
 public:
  struct Options {
    std::chrono::seconds interval{10};
    std::size_t free_bytes = std::size_t{8} << 20;  ///< less stays for the next load
    /// Bytes free in all arenas, and their release; both may walk all free blocks.
    std::function<std::size_t()> measure = measure_heap;
    std::function<void()> release = release_heap;
  };

  HeapUpkeep(asio::io_context& io, asio::thread_pool& pool, Options options)
      : io_(io), pool_(pool), options_(std::move(options)) {}

  /// To be called about once a second on the commit thread; returns immediately.
  void check(std::chrono::steady_clock::time_point now);
  /// Fixes the thresholds above which freed memory goes back to the system by itself. To be called
  /// first of all. malloc_trim() leaves the upper end of each thread's arena alone. glibc raises
  /// its own thresholds to 64 MB when the first large block is freed, so that a transfer left 30 MB
  /// for good.
  static void bound_heap();

  [[nodiscard]] std::uint64_t releases() const noexcept { return releases_; }
  [[nodiscard]] bool busy() const noexcept { return busy_; }

  static std::size_t measure_heap();
  static void release_heap();

 private:
  asio::io_context& io_;
  asio::thread_pool& pool_;
  Options options_;
  std::chrono::steady_clock::time_point next_{};
  std::uint64_t releases_ = 0;
  std::size_t left_ = 0;  ///< bytes free but released already, as far as known; of the pool's
                          ///< thread
  bool busy_ = false;
};

}  // namespace pando::manager
