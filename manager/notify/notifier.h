#pragma once

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "manager/commit/committer.h"
#include "manager/commit/runtime.h"
#include "manager/net/network.h"
#include "manager/notify/notify_queue.h"
#include "manager/notify/remote_presence.h"
#include "base/net/token_bucket.h"

namespace pando::manager {

/// Notifies secondaries of zone changes (NOTIFY, RFC 1996). Each address of each remote in a zone's
/// `notify` has its own queue, so that an absent remote delays no other. The number of NOTIFYs
/// under way and the rate per second are limited in total.
///
/// Lives on the commit thread, which only manages the queues. Messages are built, signed, sent and
/// verified on the network's thread.
class Notifier {
 public:
  struct Options {
    NotifyQueue::Options queue{};
    std::chrono::milliseconds timeout{3000};  ///< limit to wait for an answer, per try
    RemotePresence::Options presence{};
    /// Between two datagrams of a probe: a remote that comes up hears within a second.
    std::chrono::milliseconds probe_pause{800};
    /// Time between two probes of a remote that does not answer.
    std::uint64_t look_pause = 500;
    std::uint32_t max_running = 256;  ///< limit of sockets in use
    std::uint32_t max_running_per_remote = 32;
    std::uint32_t per_second = 1000;
    /// Rate to one address for the backlog: zones after a start, and zones that found the queue
    /// full. Each NOTIFY may cause a query and a transfer.
    std::uint32_t backlog_per_second = 200;
  };
  struct Counters {
    std::uint64_t sent = 0;  ///< tries
    std::uint64_t answered = 0;
    std::uint64_t failed = 0;  ///< given up, or answered with an error
  };

  /// A value that changes when the address asks for a SOA record or a transfer; 0: unknown.
  using SeenClient = std::function<std::uint64_t(const IpAddress& address)>;

  /// All references outlive the object. `seen` may be empty: then only time ends the pauses.
  Notifier(asio::io_context& commit_loop, Network& network, const Committer& committer,
           Options options, SeenClient seen = {});
  ~Notifier() { stop(); }
  Notifier(const Notifier&) = delete;
  Notifier& operator=(const Notifier&) = delete;

  /// Takes over a configuration. Pending zones of remotes in both configurations stay pending.
  void configure(const RuntimePtr& runtime);
  /// Called when a new version of the zone was published. Returns immediately.
  void zone_changed(const dns::Name& zone);
  /// Notifies every zone, spread over time: secondaries may have missed changes before a start.
  void tell_all();
  /// The last NOTIFY's result, by address of each remote of the zone.
  [[nodiscard]] std::map<std::string, std::string> status(const dns::Name& zone) const;
  [[nodiscard]] Counters counters() const noexcept { return counters_; }
  void stop();

 private:
  struct Target {
    Target(const config::Remote& remote, const Endpoint& address, const Options& options)
        : endpoint(address),
          key(remote.key),
          queue(options.queue),
          presence(options.presence),
          backlog_pace(options.backlog_per_second, 1) {}
    Endpoint endpoint;
    std::optional<dns::Name> key;
    NotifyQueue queue;
    RemotePresence presence;
    /// Backlogs of earlier configurations, translated in slices.
    std::deque<std::pair<RuntimePtr, ZoneBacklog>> earlier;
    TokenBucket backlog_pace;
    std::uint32_t running = 0;
    bool is_probing = false;       ///< a probe is under way
    std::uint64_t next_probe = 0;  ///< no probe begins earlier
    std::uint64_t seen = 0;     ///< SeenClient when the last try began
    std::uint64_t look_at = 0;  ///< time of the next probe
  };
  using TargetPtr = std::shared_ptr<Target>;
  struct Attempt;

  template <class Visit>
  void for_each_target(const config::ZoneOptions& options, Visit&& visit) const;
  bool is_notified(const Target& target, const config::ZoneOptions& options) const;
  bool keep_backlog(Target& target) const;
  void put(Target& target, const dns::Name& zone, std::size_t index, std::uint64_t due) const;
  void run_soon();
  void run_due();
  bool refill(Target& target, std::uint64_t now);
  void look_for_life(Target& target, std::uint64_t now) const;
  bool start_some(std::uint64_t now);
  [[nodiscard]] std::optional<std::uint64_t> next_start(const Target& target,
                                                        std::uint64_t now) const;
  bool start_one(const TargetPtr& target, std::uint64_t now);
  void start(const TargetPtr& target, const NotifyQueue::Try& next, std::uint64_t now);
  void finished(const std::shared_ptr<Attempt>& attempt, const Result<dns::Rcode>& result);
  void arm_timer(std::uint64_t now);

  asio::io_context& commit_loop_;
  Network& network_;
  const Committer& committer_;
  Options options_;
  SeenClient seen_;
  RuntimePtr runtime_;
  std::map<std::string, TargetPtr> targets_;  // by address and key
  // by the remote's name in the configuration
  std::map<std::string, std::vector<TargetPtr>> by_remote_;
  asio::steady_timer timer_;
  TokenBucket pace_;
  std::string turn_;  // key in targets_ of the last started NOTIFY
  std::uint32_t running_ = 0;
  bool run_posted_ = false;
  Counters counters_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace pando::manager
