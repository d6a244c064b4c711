#include "manager/notify/notifier.h"

#include <fmt/chrono.h>

#include <asio/co_spawn.hpp>
#include <asio/post.hpp>
#include <chrono>
#include <ctime>

#include "base/steady_time.h"
#include "base/unix_time.h"
#include "ipc/log.h"
#include "manager/notify/notify_out.h"

namespace pando::manager {

namespace {

/// Backlog zones checked per turn of the event loop: most of a table may not be for this remote.
constexpr std::size_t kBacklogSlice = 4096;
/// The backlog is taken up only when the queue is nearly empty, so that new changes find room in
/// the queue.
constexpr std::size_t kFewWaiting = 64;

std::string target_key(const config::Remote& remote, const Endpoint& address) {
  return fmt::format("{} {}", to_text(address), remote.key ? to_text(remote.key->folded()) : "-");
}

/// SERVFAIL comes from servers that are just starting, so the NOTIFY is repeated.
bool asks_to_come_again(dns::Rcode rcode) { return rcode == dns::Rcode::kServFail; }

}  // namespace

/// One try to send a NOTIFY.
struct Notifier::Attempt {
  TargetPtr target;
  dns::Name zone;
  dns::Serial serial;
  std::uint32_t number = 1;
  bool is_probe = false;
  RuntimePtr runtime;  // keeps the key alive
};

Notifier::Notifier(asio::io_context& commit_loop, Network& network, const Committer& committer,
                   Options options, SeenClient seen)
    : commit_loop_(commit_loop),
      network_(network),
      committer_(committer),
      options_(options),
      seen_(std::move(seen)),
      timer_(commit_loop),
      pace_(options.per_second, options.max_running_per_remote) {}

void Notifier::stop() {
  *alive_ = false;
  timer_.cancel();
}

template <class Visit>
void Notifier::for_each_target(const config::ZoneOptions& options, Visit&& visit) const {
  for (const std::string& name : options.notify) {
    const auto remote = by_remote_.find(name);
    if (remote == by_remote_.end()) continue;
    for (const TargetPtr& target : remote->second) visit(*target);
  }
}

bool Notifier::is_notified(const Target& target, const config::ZoneOptions& options) const {
  bool found = false;
  for_each_target(options, [&](const Target& one) { found = found || &one == &target; });
  return found;
}

void Notifier::configure(const RuntimePtr& runtime) {
  const RuntimePtr before = std::exchange(runtime_, runtime);
  const auto old_targets = std::exchange(targets_, {});
  by_remote_.clear();
  std::vector<TargetPtr> new_targets;
  const config::Settings& settings = runtime->settings;
  for (const std::string& name : runtime->uses.notified) {
    const config::Remote* remote = settings.find_remote(name);
    if (remote == nullptr) continue;
    std::vector<TargetPtr>& list = by_remote_[name];
    for (const Endpoint& address : remote->address) {
      TargetPtr& target = targets_[target_key(*remote, address)];
      const auto old = old_targets.find(target_key(*remote, address));
      if (!target && old == old_targets.end()) {
        target = std::make_shared<Target>(*remote, address, options_);
        if (before) new_targets.push_back(target);
      }
      if (!target) target = old->second;
      list.push_back(target);
    }
  }
  if (before)
    for (const auto& [key, target] : targets_)
      if (target->queue.put_off_count() > 0)
        target->earlier.emplace_back(before, target->queue.take_backlog());
  // A newly added secondary may have had an old version for long, so all zones are notified.
  for (const TargetPtr& target : new_targets) {
    target->queue.put_off_all(settings.zones.size());
    target->presence.news(steady_milliseconds());
  }
  run_soon();
}

/// Translates the old backlog, which identifies zones by their index in the previous table. A
/// million look-ups are spread over several turns of the event loop. False: more zones remain.
bool Notifier::keep_backlog(Target& target) const {
  const config::ZoneTable& zones = runtime_->settings.zones;
  for (std::size_t looked_at = 0; !target.earlier.empty(); ++looked_at) {
    if (looked_at == kBacklogSlice) return false;
    auto& [before, backlog] = target.earlier.front();
    const auto index = backlog.next();
    if (!index)
      target.earlier.pop_front();
    else if (const auto place = zones.find(before->settings.zones[*index].name))
      target.queue.put_off(*place, zones.size());
  }
  return true;
}

void Notifier::put(Target& target, const dns::Name& zone, std::size_t index,
                   std::uint64_t due) const {
  target.presence.news(due);
  if (!target.queue.add(zone, due)) target.queue.put_off(index, runtime_->settings.zones.size());
}

void Notifier::zone_changed(const dns::Name& zone) {
  if (!runtime_ || by_remote_.empty()) return;
  const config::ZoneTable& zones = runtime_->settings.zones;
  const auto index = zones.find(zone);
  if (!index) return;
  const config::ZoneOptions& options = *zones[*index].options;
  if (options.notify.empty()) return;
  const std::uint64_t due =
      steady_milliseconds() + static_cast<std::uint64_t>(options.notify_delay.count());
  for_each_target(options, [&](Target& target) { put(target, zone, *index, due); });
  run_soon();
}

void Notifier::tell_all() {
  for (const auto& [key, target] : targets_) {
    target->queue.put_off_all(runtime_->settings.zones.size());
    target->presence.news(steady_milliseconds());
  }
  run_soon();
}

/// Posted: a group of updates publishes many zones, and the answers to the updates come first.
void Notifier::run_soon() {
  if (std::exchange(run_posted_, true)) return;
  asio::post(commit_loop_, [this, alive = alive_] {
    if (!*alive) return;
    run_posted_ = false;
    run_due();
  });
}

void Notifier::run_due() {
  const std::uint64_t now = steady_milliseconds();
  bool more_backlog = false;
  for (const auto& [key, target] : targets_) {
    more_backlog = refill(*target, now) || more_backlog;
    look_for_life(*target, now);
  }
  while (start_some(now)) continue;
  if (more_backlog) run_soon();
  arm_timer(now);
}

/// Moves zones from the backlog to the queue. True: more zones can be checked right away.
bool Notifier::refill(Target& target, std::uint64_t now) {
  if (!keep_backlog(target)) return true;
  const config::ZoneTable& zones = runtime_->settings.zones;
  for (std::size_t looked_at = 0; target.queue.put_off_count() > 0; ++looked_at) {
    if (target.queue.waiting() >= kFewWaiting || target.backlog_pace.next_ms() > now) return false;
    if (looked_at == kBacklogSlice) return true;
    const std::size_t index = *target.queue.next_put_off();
    if (!is_notified(target, *zones[index].options)) continue;
    target.backlog_pace.take(now);
    static_cast<void>(target.queue.add(dns::Name(zones[index].name), now));
  }
  return false;
}

/// A query of a remote that did not answer shows that the remote is back: the pauses end. At most
/// one probe each pause, and none while the remote answers.
void Notifier::look_for_life(Target& target, std::uint64_t now) const {
  if (!seen_ || !target.presence.is_silent() || target.queue.waiting() == 0 || now < target.look_at)
    return;
  target.look_at = now + options_.look_pause;
  const std::uint64_t seen = seen_(target.endpoint.address);
  if (seen == 0 || seen == target.seen) return;
  target.presence.seen();
  target.queue.end_pauses(now);
}

/// Starts one NOTIFY per remote, beginning after the last served one. So no remote takes all
/// sockets or the whole rate per second. False: nothing can start now.
bool Notifier::start_some(std::uint64_t now) {
  bool any = false;
  auto at = targets_.upper_bound(turn_);
  for (std::size_t i = 0; i < targets_.size(); ++i, ++at) {
    if (at == targets_.end()) at = targets_.begin();
    if (!start_one(at->second, now)) continue;
    turn_ = at->first;
    any = true;
  }
  return any;
}

/// The time of the next try; nullopt: none is pending, or the end of another one comes first.
std::optional<std::uint64_t> Notifier::next_start(const Target& target, std::uint64_t now) const {
  const auto due = target.queue.next_due();
  if (!due || target.running >= options_.max_running_per_remote) return std::nullopt;
  if (!target.presence.is_probed(now)) return due;
  if (target.is_probing) return std::nullopt;
  return std::max(*due, target.next_probe);
}

bool Notifier::start_one(const TargetPtr& target, std::uint64_t now) {
  const auto at = next_start(*target, now);
  if (!at || *at > now || running_ >= options_.max_running || !pace_.take(now)) return false;
  start(target, *target->queue.take(now), now);
  return true;
}

void Notifier::start(const TargetPtr& target, const NotifyQueue::Try& next, std::uint64_t now) {
  const config::Settings& settings = runtime_->settings;
  const auto* options = settings.zones.options_of(next.zone);
  const zone::ZoneView view = committer_.current().zone_at(next.zone);
  const zone::RRsetView soa = view && view.loaded() ? view.soa() : zone::RRsetView();
  const auto* key = target->key ? runtime_->keys.find(*target->key) : nullptr;
  const bool unsigned_only = target->key && key == nullptr;
  if (options == nullptr || !is_notified(*target, *options) || !soa || unsigned_only)
    return target->queue.dropped(next.zone);
  auto attempt = std::make_shared<Attempt>();
  attempt->target = target;
  attempt->zone = next.zone;
  attempt->serial = view.serial();
  attempt->number = next.number;
  attempt->runtime = runtime_;
  attempt->is_probe = target->presence.is_probed(now);
  if (seen_) target->seen = seen_(target->endpoint.address);
  NotifyJob job;
  job.zone = next.zone;
  job.soa.assign(soa.first_rdata().begin(), soa.first_rdata().end());
  job.ttl = soa.ttl();
  job.remote = target->endpoint;
  job.source = settings.server.transfer_source;
  job.timeout = options_.timeout;
  if (attempt->is_probe) {
    target->is_probing = true;
    target->next_probe = now + static_cast<std::uint64_t>(options_.probe_pause.count());
    job.again = options_.probe_pause;
  }
  job.key = key;
  ++running_;
  ++target->running;
  ++counters_.sent;
  asio::co_spawn(
      network_.loop(), notify_out(std::move(job)),
      [this, attempt, alive = alive_](const std::exception_ptr& thrown, Result<dns::Rcode> result) {
        if (thrown) result = fail(Errc::kIo, "NOTIFY ended by an exception");
        asio::post(commit_loop_, [this, attempt, alive, result = std::move(result)] {
          if (*alive) finished(attempt, result);
        });
      });
}

void Notifier::finished(const std::shared_ptr<Attempt>& attempt, const Result<dns::Rcode>& result) {
  --running_;
  --attempt->target->running;
  NotifyQueue& queue = attempt->target->queue;
  const std::uint64_t now = steady_milliseconds();
  const bool final = result && !asks_to_come_again(*result);
  const bool good = result && *result == dns::Rcode::kNoError;
  NotifyQueue::Outcome outcome{attempt->serial, unix_seconds(),
                               result ? to_text(*result) : result.error().text, good, 0};
  RemotePresence& presence = attempt->target->presence;
  if (attempt->is_probe) attempt->target->is_probing = false;
  if (!result) presence.unanswered(now);
  // The remote is back: the back-off of its other zones ends.
  if (result && presence.answered()) queue.end_pauses(now);
  auto tell = NotifyQueue::Tell::kNothing;
  if (final)
    tell = queue.answered(attempt->zone, outcome, now);
  else if (!result && presence.is_probed(now))
    queue.try_again(attempt->zone, now);
  else
    tell = queue.unanswered(attempt->zone, outcome, now);
  const bool given_up = !final && !queue.pending(attempt->zone);
  counters_.answered += final ? 1 : 0;
  counters_.failed += (final && !good) || given_up ? 1 : 0;
  const auto log = [&](log::Level level, const char* event) {
    log::detail::event(level, event, "zone", to_text(attempt->zone), "remote",
                       to_text(attempt->target->endpoint), "serial", attempt->serial.value, "try",
                       attempt->number, "result", outcome.text);
  };
  if (tell == NotifyQueue::Tell::kFailed)
    log(log::Level::kWarning, "notify_failed");
  else
    log(tell == NotifyQueue::Tell::kWorksAgain ? log::Level::kInfo : log::Level::kDebug,
        final ? "notify_answered" : "notify_unanswered");
  run_soon();
}

void Notifier::arm_timer(std::uint64_t now) {
  std::optional<std::uint64_t> next;
  const auto consider = [&](std::uint64_t at) { next = next ? std::min(*next, at) : at; };
  for (const auto& [key, target] : targets_) {
    if (const auto at = next_start(*target, now)) consider(std::max(*at, pace_.next_ms()));
    if (target->queue.put_off_count() > 0 && target->queue.waiting() < kFewWaiting)
      consider(target->backlog_pace.next_ms());
    if (seen_ && target->presence.is_silent() && target->queue.waiting() > 0)
      consider(target->look_at);
  }
  // With all sockets in use, the end of a NOTIFY calls run_soon().
  if (!next || running_ >= options_.max_running || !*alive_) {
    timer_.cancel();
    return;
  }
  timer_.expires_after(std::chrono::milliseconds(*next > now ? *next - now : 1));
  timer_.async_wait([this, alive = alive_](asio::error_code error) {
    if (!error && *alive) run_due();
  });
}

std::map<std::string, std::string> Notifier::status(const dns::Name& zone) const {
  std::map<std::string, std::string> rows;
  const auto* options = runtime_ ? runtime_->settings.zones.options_of(zone) : nullptr;
  if (options == nullptr) return rows;
  for_each_target(*options, [&](const Target& target) {
    std::string& row = rows[to_text(target.endpoint)];
    if (const NotifyQueue::Outcome* last = target.queue.last(zone))
      row = fmt::format("serial {} at {:%Y-%m-%dT%H:%M:%SZ}: {}", last->serial.value,
                        fmt::gmtime(static_cast<std::time_t>(last->at)), last->text);
    if (const auto tries = target.queue.pending(zone))
      row += fmt::format("{}pending, {} sent", row.empty() ? "" : "; ", *tries);
    if (row.empty()) row = "not yet";
  });
  return rows;
}

}  // namespace pando::manager
