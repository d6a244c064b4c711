#include "manager/dnssec/signature_watch.h"

#include <asio/post.hpp>
#include <chrono>
#include <span>

#include "base/progress.h"
#include "base/steady_time.h"
#include "dns/folded_key.h"
#include "ipc/log.h"
#include "manager/journal/record/journal_payload.h"
#include "manager/commit/rollback.h"
#include "shm/side_table.h"
#include "zone/draft/detached_draft.h"

namespace pando::manager {

namespace {

constexpr std::uint64_t kHour = 3600;  // seconds
/// Time before the end of a signature from which on the log warns. Signers replace signatures a
/// week before (BIND), or after nine tenths of their life (Knot): older ones were forgotten.
constexpr std::uint64_t kWarnBefore = 72 * kHour;
/// Between two warnings of one zone.
constexpr std::uint64_t kRepeatAfter = 24 * kHour;
/// After a verification was given up for its memory.
constexpr std::uint64_t kAfterGivingUp = kHour;
constexpr std::chrono::minutes kSweepInterval{10};
/// Between two checks of the zones whose pause is not over.
constexpr std::chrono::seconds kLookInterval{1};
/// Zones checked in one turn of the event loop.
constexpr std::size_t kSweepSlice = 1000;

/// Whether there is anything to verify: keys, signatures, or a digest.
bool has_signatures(const zone::ZoneView& zone) {
  if (!zone || !zone.loaded()) return false;
  const zone::RecordView apex = zone.apex_record();
  return apex.find(dns::RRType::kDNSKEY).count() != 0 || zone.soa().signature_count() != 0 ||
         apex.find(dns::RRType::kZONEMD).count() != 0;
}

}  // namespace

struct SignatureWatch::State {
  std::uint64_t data_version = 0;   // of the verified data; 0: not verified yet
  std::uint64_t whole_version = 0;  // of the data that were verified as a whole
  dns::Serial serial;               // of the verified data
  std::uint64_t faults = 0;
  std::string first_fault{};
  std::uint64_t end = 0;  // of the first signature; 0: unknown
  std::string end_of{};   // owner and type of that signature
  // Of the steady clock:
  std::uint64_t verified_at = 0;
  std::uint64_t not_before = 0;  // the next verification
  std::uint64_t told_at = 0;     // of the last line about faults
  std::uint64_t warned_at = 0;   // of the last line about the end
  bool wanted = false;           // other data than the verified ones were put
  bool queued = false;

  [[nodiscard]] bool ends_before(std::uint64_t time) const noexcept {
    return end != 0 && end <= time;
  }
};

/// One verification, in the watch's thread.
struct SignatureWatch::Task {
  std::string key;
  zone::ZoneView zone;
  shm::SlotTable::OwnPin pin;
  std::uint64_t version = 0;
  std::uint64_t data_version = 0;
  dns::Serial serial;
  std::uint64_t now = 0;
  unsigned threads = 0;
  // With a draft: only the changes since `known`, a serial whose data had no fault. The draft
  // becomes the zone of then. Declared after the pin, so that the draft ends first.
  dns::Serial known;
  std::unique_ptr<zone::DetachedDraft> draft;
  Progress progress;  // to give up
  Verdict verdict;
  std::chrono::milliseconds duration{};
  /// Of this thread's processor time: a busy host makes the work longer, not dearer. With more
  /// threads it is the duration.
  std::chrono::milliseconds cost{};

  void run() {
    const auto begun = std::chrono::steady_clock::now();
    const auto cost_before = thread_time();
    const Progress::Scope scope(&progress);
    verdict.whole = !verify_changes_alone();
    if (verdict.whole) verdict.found = zone::verify_zone(zone, {now, threads});
    duration = std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::steady_clock::now() - begun);
    cost = threads == 0 ? std::chrono::floor<std::chrono::milliseconds>(thread_time() - cost_before)
                        : duration;
  }

 private:
  bool verify_changes_alone() {
    if (!draft) return false;
    const bool verified = find_verdict_on_changes();
    draft.reset();
    return verified;
  }
  bool find_verdict_on_changes() {
    const auto back = history_diff(zone, serial, known, kMaxChangedRecords);
    if (!back || !draft->draft().apply(*back, zone::DataLimits::none())) return false;
    const zone::ZoneView before = draft->draft().view().zone_at(back->zone);
    auto found = verify_changes(before, zone, std::span(&*back, 1), now);
    if (found) verdict.found = std::move(*found);
    return found.has_value();
  }
};

SignatureWatch::SignatureWatch(asio::io_context& io, shm::Store& store, shm::SlotTable& slots,
                               const Committer& committer, PolicyOf policy_of, Options options)
    : io_(io),
      store_(store),
      slots_(slots),
      committer_(committer),
      policy_of_(std::move(policy_of)),
      options_(std::move(options)),
      timer_(io),
      waiting_timer_(io) {}

SignatureWatch::~SignatureWatch() { stop(); }

void SignatureWatch::start() { sweep_later(); }

void SignatureWatch::release() {
  held_ = false;
  next();
}

void SignatureWatch::stop() {
  stopped_ = true;
  timer_.cancel();
  waiting_timer_.cancel();
  queue_.clear();
  if (under_way_) under_way_->progress.give_up();
}

bool SignatureWatch::is_wanted(const dns::Name& name, const zone::ZoneView& zone) const {
  return has_signatures(zone) && policy_of_(name) != config::SignaturePolicy::kOff;
}

// Queue -------------------------------------------------------------------------------------------

void SignatureWatch::served(const dns::Name& name, const Verdict* verdict) {
  const zone::ZoneView zone = committer_.current().zone_at(name);
  if (!is_wanted(name, zone)) {
    // Zones that are signed here are looked at by their signer (manager/signing).
    if (zone && !is_signed_here(zone)) set_end(zone, 0);
    if (!states_.empty()) forget(states_.find(dns::folded_key(name)));
    return;
  }
  const auto at = states_.try_emplace(dns::folded_key(name)).first;
  State& state = at->second;
  if (verdict != nullptr && !verdict->found.given_up) {
    Task task;
    task.data_version = zone.data_version();
    task.serial = zone.serial();
    task.now = options_.now();
    task.verdict = *verdict;
    return take(name, state, task);
  }
  if (state.data_version == zone.data_version()) return;
  state.wanted = true;
  enqueue(at->first, state);
}

void SignatureWatch::enqueue(const std::string& key, State& state) {
  if (stopped_ || std::exchange(state.queued, true)) return;
  queue_.push_back(key);
  // Posted, since our caller may be iterating the states.
  if (!under_way_ && !held_) asio::post(io_, [this] { next(); });
}

void SignatureWatch::next() {
  while (!stopped_ && !held_ && !under_way_ && !queue_.empty()) {
    const std::string key = std::move(queue_.front());
    queue_.pop_front();
    const auto at = states_.find(key);
    if (at == states_.end()) continue;
    State& state = at->second;
    state.queued = false;
    const dns::Name name(dns::name_of_key(key));
    const zone::ZoneView live = committer_.current().zone_at(name);
    if (!is_wanted(name, live)) {
      forget(at);
      continue;
    }
    if (!needs_verdict(state, live)) continue;
    if (options_.steady() < state.not_before) {
      wait(key, state.not_before);
      continue;
    }
    state.wanted = false;
    begin(make_task(key, state));
  }
}

void SignatureWatch::wait(const std::string& key, std::uint64_t until) {
  if (waiting_.empty()) look_at_waiting();
  waiting_.emplace(until, key);
}

void SignatureWatch::look_at_waiting() {
  waiting_timer_.expires_after(kLookInterval);
  waiting_timer_.async_wait([this](const asio::error_code& error) {
    if (error || stopped_) return;
    const std::uint64_t now = options_.steady();
    while (!waiting_.empty() && waiting_.begin()->first <= now) {
      const auto at = states_.find(waiting_.extract(waiting_.begin()).value().second);
      if (at != states_.end()) enqueue(at->first, at->second);
    }
    if (!waiting_.empty()) look_at_waiting();
  });
}

/// Other data than the verified ones; or the first signature has ended, which verifies no more; or
/// its end is near, and changes gave it as a lower bound alone.
bool SignatureWatch::needs_verdict(const State& state, const zone::ZoneView& live) const {
  const std::uint64_t now = options_.now();
  if (live.data_version() != state.data_version) return true;
  if (state.ends_before(now) && state.faults == 0) return true;
  return state.ends_before(now + kWarnBefore) &&
         state.whole_version != state.data_version;
}

std::shared_ptr<SignatureWatch::Task> SignatureWatch::make_task(const std::string& key,
                                                                const State& state) {
  const shm::VersionInfo version = store_.current();
  const dns::Name name(dns::name_of_key(key));
  auto task = std::make_shared<Task>();
  task->key = key;
  task->pin = slots_.pin_own(version.number);
  task->zone = committer_.current().zone_at(name);
  task->version = version.number;
  task->data_version = task->zone.data_version();
  task->serial = task->zone.serial();
  task->now = options_.now();
  if (task->zone.name_count() >= kNamesForThreads) task->threads = options_.threads;
  task->known = state.serial;
  const bool is_near = state.ends_before(task->now + kWarnBefore);
  if (state.data_version != 0 && state.faults == 0 && !is_near &&
      task->serial.ahead_of(state.serial))
    task->draft = std::make_unique<zone::DetachedDraft>(store_, version, name);
  return task;
}

void SignatureWatch::begin(const std::shared_ptr<Task>& task) {
  under_way_ = task;
  ++counters_.begun;
  asio::post(thread_.pool(), [this, task] {
    task->run();
    asio::post(io_, [this, task] { finished(task); });
  });
}

void SignatureWatch::finished(const std::shared_ptr<Task>& task) {
  under_way_.reset();
  task->pin = {};
  if (stopped_) return;
  if (const auto at = states_.find(task->key); at != states_.end()) conclude(at, *task);
  next();
}

void SignatureWatch::conclude(States::iterator at, const Task& task) {
  const dns::Name name(dns::name_of_key(at->first));
  const zone::ZoneView live = committer_.current().zone_at(name);
  if (!is_wanted(name, live)) {
    if (live && !is_signed_here(live)) set_end(live, 0);
    return forget(at);
  }
  if (task.verdict.found.given_up) {
    at->second.wanted = true;
    at->second.not_before = options_.steady() + kAfterGivingUp;
    return;
  }
  ++(task.verdict.whole ? counters_.whole : counters_.changes);
  take(name, at->second, task);
}

void SignatureWatch::configured() {
  if (!under_way_) return;
  const dns::Name name(dns::name_of_key(under_way_->key));
  if (!is_wanted(name, committer_.current().zone_at(name))) under_way_->progress.give_up();
}

void SignatureWatch::check_pin(std::uint64_t most_bytes) {
  if (!under_way_ || under_way_->progress.is_given_up()) return;
  const std::uint64_t bytes = store_.chunks_held_by(under_way_->version) * shm::kChunkBytes;
  if (bytes <= most_bytes) return;
  log::info("zone_not_verified", "zone", to_text(dns::name_of_key(under_way_->key)), "bytes", bytes,
            "limit", most_bytes);
  under_way_->progress.give_up();
}

// Verdicts ----------------------------------------------------------------------------------------

void SignatureWatch::take(const dns::Name& zone, State& state, const Task& task) {
  const zone::Verification& result = task.verdict.found;
  const std::string fault = result.ok() ? std::string() : result.faults.front();
  const bool is_new = fault != state.first_fault;
  state.data_version = task.data_version;
  state.serial = task.serial;
  set_faults(state, result.fault_count);
  state.first_fault = fault;
  state.verified_at = options_.steady();
  const auto cost = static_cast<std::uint64_t>(task.cost.count());
  state.not_before = options_.steady() + options_.pause_factor * cost / 1000;
  const std::uint64_t end = result.first_end ? result.first_end->at : 0;
  if (task.verdict.whole || state.end == 0 || (end != 0 && end < state.end)) {
    state.end = end;
    state.end_of =
        end == 0 ? std::string()
                 : fmt::format("{} {}", to_text(result.first_end->owner),
                               to_text(result.first_end->type));
  }
  if (task.verdict.whole) state.whole_version = task.data_version;
  if (const zone::ZoneView live = committer_.current().zone_at(zone)) set_end(live, state.end);
  log_faults(zone, state, task, is_new);
  look_at_end(zone, state);
}

void SignatureWatch::log_faults(const dns::Name& zone, State& state, const Task& task,
                                bool is_new) {
  const zone::Verification& result = task.verdict.found;
  if (result.ok())
    return log::debug("zone_verified", "zone", to_text(zone), "serial", task.serial.value, "whole",
                     task.verdict.whole, "signatures", result.signatures, "ms", task.duration.count());
  const std::uint64_t now = options_.steady();
  if (!is_new && now < state.told_at + kRepeatAfter) return;
  state.told_at = now;
  const auto left_out = lines_.one_more(steady_milliseconds());
  if (!left_out) return;
  log::warning("zone_not_valid", "zone", to_text(zone), "serial", task.serial.value, "faults",
               result.fault_count, "reason", result.faults.front(), "left_out",
               *left_out);
}

void SignatureWatch::look_at_end(const dns::Name& zone, State& state) {
  const std::uint64_t now = options_.now();
  if (!state.ends_before(now + kWarnBefore)) return;
  const std::uint64_t steady = options_.steady();
  if (state.warned_at != 0 && steady < state.warned_at + kRepeatAfter) return;
  state.warned_at = steady;
  ++counters_.warnings;
  const auto left_out = lines_.one_more(steady_milliseconds());
  if (!left_out) return;
  log::warning("signatures_end", "zone", to_text(zone), "set", state.end_of, "s",
               state.end < now ? 0 : state.end - now, "left_out",
               *left_out);
}

void SignatureWatch::set_faults(State& state, std::uint64_t faults) {
  if (state.faults != 0) --zones_with_faults_;
  state.faults = faults;
  if (state.faults != 0) ++zones_with_faults_;
}

/// For the status, and for readers of the store.
void SignatureWatch::set_end(const zone::ZoneView& zone, std::uint64_t end) {
  shm::set_signatures_end(store_, zone.side_index(), end);
}

void SignatureWatch::forget(States::iterator at) {
  if (at == states_.end()) return;
  set_faults(at->second, 0);
  states_.erase(at);
}

// Sweep -------------------------------------------------------------------------------------------

void SignatureWatch::sweep() { sweep_from({}); }

void SignatureWatch::sweep_from(const std::string& after) {
  if (stopped_) return;
  auto at = after.empty() ? states_.begin() : states_.upper_bound(after);
  std::string last;
  for (std::size_t count = 0; count < kSweepSlice && at != states_.end(); ++count) {
    const auto here = at++;
    last = here->first;
    if (!look_at(here->first, here->second)) forget(here);
  }
  if (at == states_.end()) return sweep_later();
  asio::post(io_, [this, last] { sweep_from(last); });
}

/// A zone that updates change is verified once a day, or before its signatures end: updates were
/// verified, and may have brought an earlier end.
bool SignatureWatch::look_at(const std::string& key, State& state) {
  const dns::Name name(dns::name_of_key(key));
  const zone::ZoneView live = committer_.current().zone_at(name);
  if (!is_wanted(name, live)) return false;
  const std::uint64_t now = options_.now();
  const std::uint64_t steady = options_.steady();
  const bool is_due = state.wanted || state.ends_before(now + kWarnBefore) ||
                      steady >= state.verified_at + kRepeatAfter;
  if (is_due && steady >= state.not_before && needs_verdict(state, live))
    enqueue(key, state);
  else
    look_at_end(name, state);
  return true;
}

void SignatureWatch::sweep_later() {
  timer_.expires_after(kSweepInterval);
  timer_.async_wait([this](const asio::error_code& error) {
    if (!error && !stopped_) sweep();
  });
}

// Status ------------------------------------------------------------------------------------------

std::uint64_t SignatureWatch::faults(dns::NameView zone) const {
  if (zones_with_faults_ == 0) return 0;
  const auto found = states_.find(dns::folded_key(zone));
  return found == states_.end() ? 0 : found->second.faults;
}

std::string SignatureWatch::problem(dns::NameView zone) const {
  if (zones_with_faults_ == 0) return {};
  const auto found = states_.find(dns::folded_key(zone));
  if (found == states_.end() || found->second.faults == 0) return {};
  const State& state = found->second;
  const std::string others =
      state.faults > 1 ? fmt::format(" (and {} more)", state.faults - 1) : std::string();
  return fmt::format("not valid: {}{}", state.first_fault, others);
}

bool SignatureWatch::is_verified(const zone::ZoneView& zone) const {
  const auto found = states_.find(dns::folded_key(zone.apex()));
  return found != states_.end() && found->second.data_version == zone.data_version() &&
         found->second.faults == 0;
}

}  // namespace pando::manager
