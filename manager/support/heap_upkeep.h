#pragma once

#include <asio/io_context.hpp>
#include <asio/thread_pool.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace pando::manager {

/// Gives memory back to the machine that loading a zone has left free in the allocator's arenas:
/// glibc keeps what a pool thread has freed, 20 MB after a zone of 400,000 records.
class HeapUpkeep {
 public:
  struct Options {
    std::chrono::seconds interval{10};
    std::size_t free_bytes = std::size_t{8} << 20;  ///< less is left for the next load
    /// Bytes free in all arenas, and giving them back; both may walk all free blocks.
    std::function<std::size_t()> measure = measure_heap;
    std::function<void()> release = release_heap;
  };

  HeapUpkeep(asio::io_context& io, asio::thread_pool& pool, Options options)
      : io_(io), pool_(pool), options_(std::move(options)) {}

  /// Call about once a second on the commit thread; returns at once.
  void check(std::chrono::steady_clock::time_point now);
  /// Fixes the bounds from which freed memory goes back by itself. Call first of all: malloc_trim()
  /// leaves the upper end of each thread's arena alone, and glibc raises its own bounds to 64 MB
  /// with the first large block that is freed, so that a transfer left 30 MB there for good.
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
  std::size_t left_ = 0;  ///< free and given back already, as far as known; the pool's
  bool busy_ = false;
};

}  // namespace pando::manager
