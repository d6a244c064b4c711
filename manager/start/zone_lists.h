#pragma once

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <asio/thread_pool.hpp>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "config/load.h"
#include "ipc/control.h"
#include "manager/commit/runtime.h"
#include "manager/update/update_queue.h"

namespace pando::manager {

using UnreadLists = std::shared_ptr<config::UnreadLists>;

/// `known` and the zones of `lists`. Any thread may call it.
Result<RuntimePtr> with_lists(const RuntimePtr& known, UnreadLists lists);

/// The zone lists of a start. A live store has everything that workers need, so the store is
/// served before the lists are read, which takes 10 µs for each zone. Until then updates and
/// NOTIFYs wait in the update queue, and commands that need all zones wait here.
///
/// All methods on the commit thread.
class ZoneLists {
 public:
  enum class State : std::uint8_t { kRead, kReading, kFailed };
  struct Hooks {
    /// The configuration with all its zones; the lists are in use once accept() is called.
    std::function<void(const RuntimePtr& complete)> read;
    std::function<void()> failed;  ///< state() and problem() report it already
  };
  using Reply = std::function<void(Result<nlohmann::json>)>;
  /// A worker starts and serves in a tenth of this time.
  static constexpr std::chrono::milliseconds kWorkersFirst{100};
  /// Half of the control connections that there may be, so that other commands get through.
  static constexpr std::size_t kMaxWaitingCommands = 32;
  /// The state that systemd shows after a failure.
  static constexpr std::string_view kNotRead =
      "the zone lists could not be read: zones are served as they were";

  /// `lists`: null when the configuration has all its zones. `queue` outlives the object.
  ZoneLists(asio::io_context& io, asio::thread_pool& pool, UpdateQueue& queue, UnreadLists lists,
            Hooks hooks);

  [[nodiscard]] bool has_unread() const noexcept { return lists_ != nullptr; }
  [[nodiscard]] State state() const noexcept { return state_; }
  [[nodiscard]] std::string_view state_text() const noexcept;
  /// With State::kFailed: the reason, for people.
  [[nodiscard]] const std::string& problem() const noexcept { return problem_; }
  void set_problem(std::string text) { problem_ = std::move(text); }

  /// Reads the lists once a worker serves, as the worker needs the processor more, or after
  /// kWorkersFirst, as no worker may come.
  void read_later(RuntimePtr known);
  void worker_serves() { timer_.cancel(); }

  /// The configuration has all its zones: updates and commands that waited go on.
  void accept();
  /// After a failure: the updates that wait, and all that come, are refused.
  void refuse_updates();
  void run_waiting();

  /// Calls `again` later, or `reply` with an error, and returns true; or returns false: the command
  /// can be carried out now.
  bool put_off(std::string_view verb, std::function<void()> again, const Reply& reply);

  /// The process is to end: no list is read and no command waits any more.
  void stop() noexcept { stopping_ = true; }
  /// The process ends: each waiting request gets an answer.
  void give_up();

 private:
  void read_now();
  void end_read(const Result<RuntimePtr>& complete);

  asio::io_context& io_;
  asio::thread_pool& pool_;
  UpdateQueue& queue_;
  UnreadLists lists_;  // until a thread reads them
  Hooks hooks_;
  RuntimePtr known_;  // while the lists wait to be read
  asio::steady_timer timer_;
  State state_ = State::kRead;
  std::string problem_;
  std::deque<std::function<void()>> waiting_;  // with State::kReading
  bool stopping_ = false;
};

}  // namespace pando::manager
