#pragma once

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "manager/commit/committer.h"
#include "manager/commit/runtime.h"
#include "manager/net/network.h"
#include "manager/notify/notify_queue.h"
#include "manager/support/token_bucket.h"

namespace pando::manager {

/// Tells secondaries when zones change (NOTIFY, RFC 1996). Each address of each remote in a zone's
/// `notify` has a queue of its own, so that one that is away keeps nobody else waiting; how many
/// NOTIFYs are under way, and how many leave in a second, is bounded for all together.
///
/// Lives on the commit thread, which only keeps the queues; messages are made, signed, sent and
/// checked on the network's.
class Notifier {
 public:
  struct Options {
    NotifyQueue::Options queue{};
    std::chrono::milliseconds patience{3000};  ///< for an answer, with each try
    std::uint32_t max_running = 256;           ///< sockets
    std::uint32_t max_running_per_remote = 32;
    std::uint32_t per_second = 1000;
    /// To one address: zones of a start, and those that found the queue full. Each may bring a
    /// question and a transfer back.
    std::uint32_t backlog_per_second = 200;
  };
  struct Counters {
    std::uint64_t sent = 0;  ///< tries
    std::uint64_t answered = 0;
    std::uint64_t failed = 0;  ///< given up, or answered with an error
  };

  /// All references outlive the object.
  Notifier(asio::io_context& commit_loop, Network& network, const Committer& committer,
           Options options);
  ~Notifier() { stop(); }
  Notifier(const Notifier&) = delete;
  Notifier& operator=(const Notifier&) = delete;

  /// Takes over a configuration. What waits for remotes that are in both goes on waiting.
  void configure(const RuntimePtr& runtime);
  /// A new version of the zone was published. Returns at once.
  void zone_changed(const dns::Name& zone);
  /// Tells about every zone, spread over time: nobody knows what secondaries missed before a start.
  void tell_all();
  /// By address of each remote that is told about the zone: how the last NOTIFY ended.
  [[nodiscard]] std::map<std::string, std::string> status(const dns::Name& zone) const;
  [[nodiscard]] Counters counters() const noexcept { return counters_; }
  void stop();

 private:
  struct Target {
    Target(const config::Remote& remote, const Endpoint& address, const Options& options)
        : endpoint(address),
          key(remote.key),
          queue(options.queue),
          backlog_pace(options.backlog_per_second, 1) {}
    Endpoint endpoint;
    std::optional<dns::Name> key;
    NotifyQueue queue;
    /// What waited when the configuration became another one, which is translated bit by bit.
    std::deque<std::pair<RuntimePtr, ZoneBacklog>> earlier;
    TokenBucket backlog_pace;
    std::uint32_t running = 0;
  };
  using TargetPtr = std::shared_ptr<Target>;
  struct Attempt;

  template <class Visit>
  void for_each_target(const config::ZoneOptions& options, Visit&& visit) const;
  bool is_told(const Target& target, const config::ZoneOptions& options) const;
  bool keep_backlog(Target& target) const;
  void put(Target& target, const dns::Name& zone, std::size_t index, std::uint64_t due) const;
  void run_soon();
  void run_due();
  bool refill(Target& target, std::uint64_t now);
  bool start_round(std::uint64_t now);
  bool start_one(const TargetPtr& target, std::uint64_t now);
  void start(const TargetPtr& target, const NotifyQueue::Try& next);
  void finished(const std::shared_ptr<Attempt>& attempt, const Result<dns::Rcode>& result);
  void arm_timer(std::uint64_t now);

  asio::io_context& commit_loop_;
  Network& network_;
  const Committer& committer_;
  Options options_;
  RuntimePtr runtime_;
  std::map<std::string, TargetPtr> targets_;                 // by address and key
  std::map<std::string, std::vector<TargetPtr>> by_remote_;  // by name in the configuration
  asio::steady_timer timer_;
  TokenBucket pace_;
  std::string turn_;  // whose NOTIFY was started last, as in targets_
  std::uint32_t running_ = 0;
  bool run_posted_ = false;
  Counters counters_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace pando::manager
