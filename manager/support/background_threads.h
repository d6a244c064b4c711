#pragma once

#include <asio/thread_pool.hpp>
#include <cstddef>
#include <optional>

namespace pando::manager {

/// Threads for long work that nobody waits for by the millisecond: reading, building and comparing
/// zones, writing copies. On a busy host these threads give way to the commit thread and the
/// workers (setpriority(2): Linux keeps a nice value for each thread). The nice value is small, so
/// that a thread that waits for a lock held by one of these does not wait long.
class BackgroundThreads {
 public:
  /// Added to the nice value of the creating thread: leaves a third of its share.
  static constexpr int kNice = 5;

  /// Added instead for work that may take hours: leaves a tenth of its share.
  static constexpr int kIdleNice = 10;

  explicit BackgroundThreads(std::size_t count, int nice = kNice);

  [[nodiscard]] asio::thread_pool& pool() noexcept { return *pool_; }

 private:
  std::optional<asio::thread_pool> pool_;
};

}  // namespace pando::manager
