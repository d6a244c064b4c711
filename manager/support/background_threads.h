#pragma once

#include <asio/thread_pool.hpp>
#include <cstddef>
#include <optional>

namespace pando::manager {

/// Threads for work that takes long and for which nobody waits by the millisecond: reading and
/// building zones, comparing them, writing copies. Where processors are short they stand back for
/// the commit thread and the workers (setpriority(2): Linux keeps a nice value for each thread),
/// but not so far back that whoever waits for a lock that one of them holds waits long.
class BackgroundThreads {
 public:
  /// Above the nice value of the thread that makes them: a third of its share.
  static constexpr int kNice = 5;

  explicit BackgroundThreads(std::size_t count);

  [[nodiscard]] asio::thread_pool& pool() noexcept { return *pool_; }

 private:
  std::optional<asio::thread_pool> pool_;
};

}  // namespace pando::manager
