#pragma once

#include <asio/io_context.hpp>
#include <chrono>
#include <functional>

namespace pando::manager::testing {

/// Runs an event loop until `done` says so; false after a generous time. What other threads do is
/// looked at often enough.
inline bool run_until(asio::io_context& io, const std::function<bool()>& done) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(300);
  while (!done()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    io.restart();
    io.run_one_for(std::chrono::milliseconds(5));
  }
  return true;
}

}  // namespace pando::manager::testing
