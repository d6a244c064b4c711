#pragma once

#include <asio/io_context.hpp>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <string>

#include "manager/workers/worker_link.h"

namespace pando::manager {

/// Stands before the update service while the manager does not know all zones of the configuration
/// yet: UPDATE and NOTIFY wait in the order in which they came, within bounds, or are turned away.
/// Queries that are only to be signed go through, since keys are known from the start. Belongs to
/// the commit thread.
class UpdateQueue {
 public:
  struct Limits {
    std::size_t requests = 8192;  ///< what 32 workers may have under way
    std::size_t octets = std::size_t{64} << 20;
    std::size_t slice = 64;  ///< of those that waited, taken up in one go
    /// Who waited longer is turned away, since the worker has given its client SERVFAIL by then
    /// (worker/net/manager_link): it would be done beside what the client sends instead.
    std::chrono::milliseconds patience{9'000};
  };
  using Take = std::function<void(ipc::Forward&&, ForwardReply)>;
  using Refuse = std::function<void(ipc::Forward&&, ForwardReply, std::string_view why)>;

  /// Open. `take` gets what goes through, `refuse` what is turned away; both outlive the gate.
  UpdateQueue(asio::io_context& io, Take take, Refuse refuse, const Limits& limits);

  void pass(ipc::Forward&& request, ForwardReply reply);
  /// From now on requests wait.
  void hold();
  /// Those that wait are taken up, in slices, and then whatever comes.
  void open();
  /// Those that wait, and whatever comes, are turned away.
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
  std::size_t octets_ = 0;  // of their messages
};

}  // namespace pando::manager
