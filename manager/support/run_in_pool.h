#pragma once

#include <asio/awaitable.hpp>
#include <asio/co_spawn.hpp>
#include <asio/thread_pool.hpp>
#include <asio/use_awaitable.hpp>
#include <type_traits>
#include <utility>

namespace pando::manager {

/// Runs `work` in a thread of `pool` while the calling coroutine waits. The coroutine goes on, with
/// the result of `work`, on its own executor. A co_await of asio::post(pool, use_awaitable) would
/// not do: its completion goes through the coroutine's executor, so the work would run on the
/// caller's loop.
template <class Work>
asio::awaitable<std::invoke_result_t<Work>> run_in_pool(asio::thread_pool& pool, Work work) {
  const auto in_pool = [](Work todo) -> asio::awaitable<std::invoke_result_t<Work>> {
    co_return todo();
  };
  co_return co_await asio::co_spawn(pool, in_pool(std::move(work)), asio::use_awaitable);
}

}  // namespace pando::manager
