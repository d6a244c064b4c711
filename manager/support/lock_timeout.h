#pragma once

#include <chrono>
#include <thread>

#include "base/result.h"

namespace pando::manager {

/// Time for which a killed process may still hold a lock. The kernel drops the lock only after the
/// process is dismantled, and a large mapping takes a while.
inline constexpr std::chrono::milliseconds kKilledProcessTimeout{3000};

/// Repeats `attempt` while the result is kExists (another process has the lock), at most for
/// `timeout`. Blocks: for the start of the process only.
template <class Attempt>
auto retry_while_held(std::chrono::milliseconds timeout, Attempt attempt) {
  constexpr std::chrono::milliseconds kStep{10};
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  for (;;) {
    auto result = attempt();
    const bool held = !result && result.error().code == Errc::kExists;
    if (!held || std::chrono::steady_clock::now() >= deadline) return result;
    std::this_thread::sleep_for(kStep);
  }
}

}  // namespace pando::manager
