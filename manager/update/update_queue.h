#pragma once

#include <asio/io_context.hpp>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <string>

#include "manager/workers/worker_link.h"

namespace pando::manager {

/// Queue in front of the update service while the manager does not know all configured zones yet.
/// UPDATE and NOTIFY wait in order of arrival, within bounds, or are refused. Queries that only
/// need a signature never wait, since keys are known from the start. Belongs to the commit thread.
class UpdateQueue {
 public:
  struct Limits {
    std::size_t requests = 8192;  ///< the most that 32 workers may have under way
    std::size_t bytes = std::size_t{64} << 20;
    std::size_t slice = 64;  ///< waiting requests handled per turn of the event loop
    /// Requests that waited longer are refused: the worker has given its client SERVFAIL by then
    /// (worker/net/manager_link). A late execution would be done beside the client's next request.
    std::chrono::milliseconds timeout{9'000};
  };
  using Take = std::function<void(ipc::Forward&&, ForwardReply)>;
  using Refuse = std::function<void(ipc::Forward&&, ForwardReply, std::string_view why)>;

  /// `take` handles requests, `refuse` the rejected ones; both outlive the queue. Nothing waits at
  /// first.
  UpdateQueue(asio::io_context& io, Take take, Refuse refuse, const Limits& limits);

  void submit(ipc::Forward&& request, ForwardReply reply);
  /// Makes later requests wait.
  void pause();
  /// Handles the waiting requests in slices, and later ones directly.
  void resume();
  /// Refuses the waiting and all later requests.
  void reject(std::string why);

  [[nodiscard]] std::size_t waiting() const noexcept { return waiting_.size(); }

 private:
  using Clock = std::chrono::steady_clock;
  struct Waiting {
    ipc::Forward request;
    ForwardReply reply;
    Clock::time_point came;
  };
  enum class State : std::uint8_t { kRunning, kPaused, kRejecting };
  void enqueue(ipc::Forward&& request, ForwardReply reply);
  Waiting next();
  void take_some();

  asio::io_context& io_;
  Take take_;
  Refuse refuse_;
  Limits limits_;
  State state_ = State::kRunning;
  std::string why_;  // with kRejecting
  std::deque<Waiting> waiting_;
  std::size_t bytes_ = 0;  // bytes of the waiting messages
};

}  // namespace pando::manager
