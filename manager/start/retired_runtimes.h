#pragma once

#include <algorithm>
#include <asio/post.hpp>
#include <asio/thread_pool.hpp>
#include <cstddef>
#include <utility>
#include <vector>

#include "manager/commit/runtime.h"

namespace pando::manager {

/// Configurations that are no longer in force. Whoever lets go of one last frees it, which takes
/// the commit thread 15 ms for the settings of 100,000 zones. So each one is held until nobody else
/// has it, and then freed in the pool. Lives on the commit thread.
class RetiredRuntimes {
 public:
  explicit RetiredRuntimes(asio::thread_pool& pool) : pool_(pool) {}

  /// `runtime` may be null, and may still be in use.
  void add(RuntimePtr runtime) {
    const bool known = std::find(kept_.begin(), kept_.end(), runtime) != kept_.end();
    if (runtime && !known) kept_.push_back(std::move(runtime));
  }
  /// Frees settings that nobody else has; to be called regularly.
  void free_unused() {
    std::erase_if(kept_, [this](RuntimePtr& runtime) {
      if (runtime.use_count() > 1) return false;
      asio::post(pool_, [old = std::move(runtime)] {});
      return true;
    });
  }
  [[nodiscard]] std::size_t count() const noexcept { return kept_.size(); }

 private:
  asio::thread_pool& pool_;
  std::vector<RuntimePtr> kept_;
};

}  // namespace pando::manager
