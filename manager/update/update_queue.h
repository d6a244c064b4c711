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
/// need a signature pass, since keys are known from the start. Belongs to the commit thread.
class UpdateQueue {
 public:
  struct Limits {
    std::size_t requests = 8192;  ///< the most that 32 workers may have under way
    std::size_t octets = std::size_t{64} << 20;
    std::size_t slice = 64;  ///< waiting requests handled per turn of the event loop
    /// Requests that waited longer are refused: the worker has given its client SERVFAIL by then
    /// (worker/net/manager_link). A late execution would be done beside the client's next request.
    std::chrono::milliseconds patience{9'000};
  };
  using Take = std::function<void(ipc::Forward&&, ForwardReply)>;
  using Refuse = std::function<void(ipc::Forward&&, ForwardReply, std::string_view why)>;

  /// Starts open. `take` handles requests that pass, `refuse` the rejected ones; both outlive the
  /// queue.
  UpdateQueue(asio::io_context& io, Take take, Refuse refuse, const Limits& limits);

  void pass(ipc::Forward&& request, ForwardReply reply);
  /// Makes later requests wait.
  void hold();
  /// Handles the waiting requests in slices, and later ones directly.
  void open();
  /// Refuses the waiting and all later requests.
  void shut(std::string why);

  [[nodiscard]] std::size_t waiting() const noexcept { return waiting_.size(); }

 private:
  using Clock = std::chrono::steady_clock;
  struct Waiting {
    ipc::Forward request;
    ForwardReply reply;
    Clock::time_point came;
  };
  enum class State : std::uint8_t { kOpen, kHolding, kShut };
  void keep(ipc::Forward&& request, ForwardReply reply);
  Waiting next();
  void take_some();

  asio::io_context& io_;
  Take take_;
  Refuse refuse_;
  Limits limits_;
  State state_ = State::kOpen;
  std::string why_;  // with kShut
  std::deque<Waiting> waiting_;
  std::size_t octets_ = 0;  // bytes of the waiting messages
};

}  // namespace pando::manager
