#include "manager/secondary/refresher.h"

#include <algorithm>
#include <utility>

#include "base/steady_time.h"
#include "base/unix_time.h"
#include "ipc/log.h"
#include "manager/secondary/primary_state.h"

namespace pando::manager {

namespace {

/// Zones handled per turn of the event loop: after a start all zones may be due.
constexpr std::size_t kDueSlice = 1000;

/// RFC 1996 §3.11: a NOTIFY's serial is a hint. A serial that is not ahead of ours needs no refresh
/// attempt, unless our zone has expired.
bool is_news(const Committer& committer, const PersistentTimers& timers, const dns::Name& zone,
             dns::Serial serial) {
  const zone::ZoneView view = committer.current().zone_at(zone);
  const auto known = serial_at_primary(view);
  return !known || timers.expired(view, unix_seconds()) || serial.ahead_of(*known);
}

std::chrono::steady_clock::time_point steady_now() { return std::chrono::steady_clock::now(); }

/// Thousands of zones may wait for the primary, so that the log has this instead of their failures.
void log_change(const Endpoint& primary, const std::string& reason) {
  if (reason.empty()) return log::info("primary_answers", "primary", to_text(primary));
  log::warning("primary_silent", "primary", to_text(primary), "reason", reason);
}

/// Whether two verifiers run the same program alike; null: no program.
bool are_alike(const ZoneVerifierPtr& a, const ZoneVerifierPtr& b) {
  return a == b || (a && b && a->is_like(*b));
}

}  // namespace

Refresher::Refresher(asio::io_context& commit_loop, Network& network, shm::Store& store,
                     shm::SlotTable& slots, Committer& committer, ChangeRoad& road, Hooks hooks)
    : committer_(committer),
      hooks_(std::move(hooks)),
      timers_(store, committer),
      schedule_(commit_loop, {.now = unix_seconds,
                              .run = [this] { run_due(); },
                              .tick = [this] { places_.primaries().tick(steady_now()); }}),
      places_(&log_change),
      attempts_(
          {commit_loop, network, store, slots, committer, road, hooks_,
           [this](const zone::ZoneView& zone) { return timers_.expired(zone, unix_seconds()); }},
          {.is_wanted = [this](const RefreshAttempt& attempt) { return wanted(attempt); },
           .verifying = [this](const auto& attempt,
                               const auto& progress) { verifying(attempt, progress); },
           .ended = [this](const auto& attempt,
                           const auto& outcome) { ended(attempt, outcome); }}) {}

Refresher::~Refresher() { stop(); }

void Refresher::stop() {
  attempts_.stop();
  schedule_.stop();
  for (auto& [name, zone] : zones_) zone.verification.reset();
}

void Refresher::configure(const RuntimePtr& runtime) {
  attempts_.configure(runtime);
  const config::Limits& limits = runtime->settings.limits;
  places_.set_limits({limits.transfers_in, limits.transfers_in_per_primary});
  timers_.set_range(limits.refresh);
  for (const auto& attempt : places_.with_program()) {
    if (!wanted(*attempt) || are_alike(attempt->program, hooks_.verifier_of(attempt->zone)))
      continue;
    const auto at = zones_.find(attempt->zone);
    const bool takes_any = at->second.cycle.is_replacing();
    begin_anew(at, at->second.cycle.primaries(), unix_seconds());
    if (takes_any) at->second.cycle.replace_next();
  }
}

/// Results of attempts that run are dropped, and their programs ended.
void Refresher::begin_anew(Zones::iterator at, Primaries primaries, std::uint64_t due) {
  Zone& zone = at->second;
  schedule_.remove(at->first, zone.due);
  zone = {};
  zone.cycle = RefreshCycle(std::move(primaries));
  zone.generation = ++generations_;
  zone.due = due;
  schedule_.add(at->first, due);
}

void Refresher::put(const dns::Name& name, Primaries primaries) {
  const auto [at, fresh] = zones_.try_emplace(name);
  if (!fresh && at->second.cycle.primaries() == primaries) return;
  const std::uint64_t now = unix_seconds();
  begin_anew(at, std::move(primaries), fresh ? timers_.first_refresh(at->first, now) : now);
}

bool Refresher::forget_others(std::optional<dns::Name>& after, std::size_t most,
                              const Stays& stays) {
  auto at = after ? zones_.upper_bound(*after) : zones_.begin();
  for (std::size_t checked = 0; checked < most && at != zones_.end(); ++checked) {
    after = at->first;
    if (stays(at->first, at->second.cycle.primaries())) {
      ++at;
      continue;
    }
    schedule_.remove(at->first, at->second.due);
    at = zones_.erase(at);
  }
  return at == zones_.end();
}

void Refresher::forget_unless(const dns::Name& zone, const Stays& stays) {
  const auto at = zones_.find(zone);
  if (at == zones_.end() || stays(at->first, at->second.cycle.primaries())) return;
  schedule_.remove(at->first, at->second.due);
  zones_.erase(at);
}

void Refresher::resume() {
  places_.recheck_programs();
  run_due();
}

/// Corrects the timers after the clock was put back: each zone waits as long as before. Otherwise
/// refreshes and retries would come late by as much as the clock has changed.
void Refresher::put_timers_back(std::uint64_t before, std::uint64_t now) {
  log::warning("clock_went_back", "seconds", before - now);
  schedule_.clear();
  for (auto& [name, zone] : zones_) {
    zone.due = zone.due <= before ? now : zone.due - (before - now);
    timers_.clock_went_back(name, zone.due, now);
    if (!zone.cycle.running() && !zone.queued.is_waiting) schedule_.add(name, zone.due);
  }
}

void Refresher::schedule(Zones::iterator zone, std::uint64_t due) {
  schedule_.remove(zone->first, zone->second.due);
  zone->second.due = due;
  schedule_.add(zone->first, due);
  arm_timers();
}

void Refresher::arm_timers() {
  if (places_.primaries().needs_ticks()) schedule_.arm_tick(PrimaryShares::kTick);
  schedule_.arm();
}

/// A zone whose primary has no room leaves the schedule, so that run_due() costs only the attempts
/// that it starts, however many zones wait. A primary that is away is asked by a zone now and then;
/// the other zones go on to their other primaries.
void Refresher::start_or_wait(Zones::iterator at) {
  Zone& zone = at->second;
  if (!hooks_.may_change(at->first)) {
    // Begins anew with refresh_now().
    zone.queued.is_waiting = false;
    zone.cycle.begin_anew();
    return;
  }
  if (!places_.has_program_place() && hooks_.verifier_of(at->first))
    return places_.wait_for_program(at->first, zone.queued);
  const auto now = steady_now();
  do {
    const Endpoint& primary = zone.cycle.primary().endpoint;
    if (places_.primaries().may_begin(primary, now)) return start(at);
    if (!places_.primaries().is_away(primary))
      return places_.wait(at->first, zone.queued, primary, zone.is_urgent);
  } while (zone.cycle.ask_next());
  end_cycle(at, zone.cycle.confirmed());
}

/// Starts the zones that waited longest for primaries or programs with free places.
void Refresher::start_waiting() {
  const auto waits = [this](Zones::iterator zone) {
    return zone != zones_.end() && zone->second.queued.is_waiting && !zone->second.cycle.running();
  };
  while (const auto name = places_.next_for_program(
             [&](const dns::Name& zone) { return waits(zones_.find(zone)); })) {
    const auto zone = zones_.find(*name);
    zone->second.queued.is_waiting = false;
    start_or_wait(zone);
  }
  const auto now = steady_now();
  for (std::size_t checked = 0; checked < kDueSlice; ++checked) {
    const auto next = places_.primaries().next(now);
    if (!next) return;
    const auto zone = zones_.find(next->zone);
    if (zone == zones_.end()) continue;
    RefreshPlaces::taken(zone->second.queued, next->primary);
    if (!waits(zone)) continue;
    zone->second.queued.is_waiting = false;
    if (places_.primaries().may_begin(next->primary, now) &&
        places_.primaries().is_away(zone->second.cycle.primary().endpoint))
      zone->second.cycle.begin_with(next->primary);
    start_or_wait(zone);
  }
  run_soon();
}

void Refresher::run_due() {
  const std::uint64_t now = unix_seconds();
  if (const auto before = schedule_.time_before_step(now)) put_timers_back(*before, now);
  start_waiting();
  for (std::size_t checked = 0; checked < kDueSlice; ++checked) {
    const auto due = schedule_.take_due(now);
    if (!due) break;
    const auto zone = zones_.find(*due);
    if (zone == zones_.end() || zone->second.cycle.primaries().empty()) continue;
    start_or_wait(zone);
  }
  arm_timers();
}

void Refresher::start(Zones::iterator at) {
  Zone& zone = at->second;
  schedule_.remove(at->first, zone.due);  // a zone that waited may be due a second time
  zone.queued.is_waiting = zone.is_urgent = false;
  auto attempt = std::make_shared<RefreshAttempt>();
  attempt->zone = at->first;
  attempt->generation = zone.generation;
  attempt->primary = zone.cycle.primary();
  const RefreshCycle::Request request = zone.cycle.begin_attempt();
  places_.begin(*attempt, steady_now());
  zone.attempt = attempt;
  attempts_.run(attempt, request, !zone.damaged);
}

/// The primary is free for other zones while a program verifies this one.
void Refresher::verifying(const RefreshAttemptPtr& attempt,
                          const std::shared_ptr<Progress>& progress) {
  zones_.find(attempt->zone)->second.verification =
      std::shared_ptr<void>(nullptr, [progress](void*) { progress->give_up(); });
  if (!attempt->program) return;
  places_.begin_program(attempt, steady_now());
  run_soon();
}

void Refresher::ended(const RefreshAttemptPtr& attempt, const AttemptOutcome& outcome) {
  if (wanted(*attempt)) zones_.find(attempt->zone)->second.verification.reset();
  switch (outcome.end) {
    case AttemptOutcome::End::kDropped:
      return drop(attempt);
    case AttemptOutcome::End::kUpToDate:
      return up_to_date(attempt, outcome.serial);
    case AttemptOutcome::End::kTransferred:
      return transferred(attempt, outcome.serial);
    case AttemptOutcome::End::kFailed:
      return failed(attempt, outcome.error, outcome.whole_may_succeed);
  }
}

Refresher::Zones::iterator Refresher::release(const RefreshAttemptPtr& attempt) {
  places_.end(attempt, steady_now());
  if (!wanted(*attempt)) return zones_.end();
  const auto zone = zones_.find(attempt->zone);
  zone->second.cycle.end_attempt();
  zone->second.attempt.reset();
  return zone;
}

/// True if the configured zone still has the primaries of the start of the attempt.
bool Refresher::wanted(const RefreshAttempt& attempt) const {
  const auto zone = zones_.find(attempt.zone);
  return zone != zones_.end() && zone->second.generation == attempt.generation;
}

void Refresher::drop(const RefreshAttemptPtr& attempt) {
  release(attempt);
  if (attempt->is_abandoned) return run_due();
  log::info("transfer_dropped", "zone", dns::to_text(attempt->zone), "primary",
            to_text(attempt->primary.endpoint), "reason", "the configuration has changed");
  run_due();
}

/// The asked primary has nothing newer, but another primary may. A different serial confirms
/// nothing, whether behind ours or at the distance 2^31, where neither is ahead (RFC 1982 §3.2).
void Refresher::up_to_date(const RefreshAttemptPtr& attempt, dns::Serial serial) {
  const auto at = release(attempt);
  if (at == zones_.end()) return run_due();
  const auto ours = serial_at_primary(committer_.current().zone_at(attempt->zone));
  if (ours && !(*ours == serial)) {
    const char* where = ours->ahead_of(serial) ? "behind" : "not ahead of";
    ++counters_.failures;
    hooks_.count(attempt->zone, ipc::ZoneCounter::kRefreshesFailed);
    at->second.problem =
        fmt::format("primary {} has serial {}, {} ours ({}): `zone retransfer` takes it",
                    to_text(attempt->primary.endpoint), serial.value, where, ours->value);
    if (at->second.cycle.note_behind(attempt->primary.endpoint, true))
      log::warning("primary_behind", "zone", dns::to_text(attempt->zone), "primary",
                   to_text(attempt->primary.endpoint), "serial", serial.value, "ours",
                   ours->value);
  } else {
    ++counters_.refreshes;
    at->second.cycle.note_behind(attempt->primary.endpoint, false);
    at->second.cycle.confirm();
    timers_.confirm(attempt->zone, attempt->expire, false, unix_seconds());
    log::debug("zone_current", "zone", dns::to_text(attempt->zone), "primary",
               to_text(attempt->primary.endpoint), "serial", serial.value);
  }
  next_primary(at);
}

void Refresher::transferred(const RefreshAttemptPtr& attempt, dns::Serial serial) {
  ++counters_.transfers;
  if (!attempt->is_whole) ++counters_.by_ixfr;
  hooks_.count(attempt->zone, attempt->is_whole ? ipc::ZoneCounter::kTransfersInAxfr
                                                : ipc::ZoneCounter::kTransfersInIxfr);
  const auto at = release(attempt);
  ++counters_.refreshes;
  log::info("zone_refreshed", "zone", dns::to_text(attempt->zone), "primary",
            to_text(attempt->primary.endpoint), "by", attempt->is_whole ? "axfr" : "ixfr", "serial",
            serial.value, "records", attempt->records, "octets", attempt->octets);
  if (at == zones_.end()) return run_due();
  at->second.damaged = false;
  at->second.cycle.forget_behind();
  timers_.confirm(attempt->zone, attempt->expire, true, unix_seconds());
  end_cycle(at, true);
}

void Refresher::failed(const RefreshAttemptPtr& attempt, const Error& error,
                       bool whole_may_succeed) {
  const bool is_probe = places_.primaries().is_away(attempt->primary.endpoint);
  const auto at = release(attempt);
  ++counters_.failures;
  hooks_.count(attempt->zone, ipc::ZoneCounter::kRefreshesFailed);
  if (!is_probe || attempt->silence.empty())
    log::warning("zone_refresh_failed", "zone", dns::to_text(attempt->zone), "primary",
                 to_text(attempt->primary.endpoint), "reason", error.text);
  if (at == zones_.end()) return run_due();
  Zone& zone = at->second;
  zone.problem = fmt::format("{}: {}", to_text(attempt->primary.endpoint), error.text);
  zone.damaged = zone.damaged || error.code == Errc::kCorrupt;
  if (!whole_may_succeed || !zone.cycle.fall_back()) return next_primary(at);
  ++counters_.fallbacks;
  schedule(at, unix_seconds());
  run_due();
}

void Refresher::next_primary(Zones::iterator at) {
  RefreshCycle& cycle = at->second.cycle;
  if (!cycle.ask_next()) return end_cycle(at, cycle.confirmed());
  schedule(at, unix_seconds());
  run_due();
}

/// Ends a refresh cycle. `ok`: a primary has our version, so the zone's timers start anew. A zone
/// whose primaries are all away waits for the first of them that answers. Starts no other zone,
/// because our caller may be doing just that.
void Refresher::end_cycle(Zones::iterator at, bool ok) {
  Zone& zone = at->second;
  if (ok) zone.problem.clear();
  const std::uint64_t due = timers_.next_refresh(at->first, ok, unix_seconds());
  if (!ok && places_.all_away(zone.cycle.primaries())) {
    schedule_.remove(at->first, std::exchange(zone.due, due));
    zone.cycle.end(false);  // an answer of any primary fulfils all wishes
    for (const Primary& primary : zone.cycle.primaries())
      places_.wait(at->first, zone.queued, primary.endpoint, zone.is_urgent);
    return run_soon();
  }
  schedule(at, due);
  const auto notified = zone.cycle.notified_serial();
  const bool is_still_news = notified && is_news(committer_, timers_, at->first, *notified);
  if (auto wish = zone.cycle.end(is_still_news)) {
    // The sender of the NOTIFY may be away without room for an attempt. Its zone must not ask its
    // other primaries again and again meanwhile.
    wish->paced = wish->paced || places_.primaries().is_away(zone.cycle.primary().endpoint);
    refresh_soon(at, *wish);
  }
  run_soon();
}

bool Refresher::refresh_now(const dns::Name& name, Take take) {
  const auto zone = zones_.find(name);
  if (zone == zones_.end()) return false;
  if (take == Take::kAny) zone->second.cycle.replace_next();
  zone->second.is_urgent = true;
  refresh_soon(zone, {.paced = false});
  return true;
}

/// A paced wish keeps to the paces of its zone and of the asked primary, so that NOTIFYs in the
/// name of one primary delay no other one's. A NOTIFY for a zone that is due already takes nothing
/// from either pace; the question at that time finds the newest version.
void Refresher::refresh_soon(Zones::iterator at, RefreshCycle::Wish wish) {
  Zone& zone = at->second;
  if (zone.cycle.put_off(wish)) return;
  const std::uint64_t now = unix_seconds();
  if (!wish.paced) return schedule(at, std::min(zone.due, now));
  // The paces have a steady clock: a host's clock that is put back must not stop NOTIFYs.
  const std::uint64_t steady = coarse_seconds();
  const std::uint64_t now_ms = steady_milliseconds();
  const std::uint64_t pause_ms = std::max(zone.pace.next_ms(), now_ms) - now_ms;
  NotifyPace& pace = notify_paces_[zone.cycle.primary().endpoint];
  const std::uint64_t due = now + std::max(pace.next(steady) - steady, (pause_ms + 999) / 1000);
  if (due >= zone.due) return schedule(at, zone.due);
  zone.pace.take(now_ms + pause_ms);
  pace.take(steady);
  schedule(at, due);
}

bool Refresher::notified(const NotifyRequest& request) {
  ++counters_.notifies;
  const auto at = zones_.find(request.zone);
  if (at == zones_.end()) return false;
  Zone& zone = at->second;
  if (const Primary* sender = zone.cycle.sender(request))
    places_.primaries().call(sender->endpoint);
  NotifyRequest hint = request;
  if (request.serial && !is_news(committer_, timers_, request.zone, *request.serial)) {
    const auto ours = serial_at_primary(committer_.current().zone_at(request.zone));
    if (!zone.cycle.is_doubt(request, *ours)) return true;
    hint.serial.reset();  // the SOA record is asked for
  }
  zone.is_urgent = true;
  abandon_silent_primary(at, request);
  if (const auto wish = zone.cycle.on_notify(hint)) refresh_soon(at, *wish);
  return true;
}

/// The news of one primary need not wait for the timeout of another one.
void Refresher::abandon_silent_primary(Zones::iterator at, const NotifyRequest& request) {
  Zone& zone = at->second;
  const Primary* sender = zone.cycle.sender(request);
  if (!zone.attempt || !zone.attempt->share || sender == nullptr ||
      *sender == zone.attempt->primary ||
      !places_.primaries().is_silent(*zone.attempt->share, steady_now()))
    return;
  zone.attempt->is_abandoned = true;
  zone.attempt.reset();
  zone.generation = ++generations_;
  zone.cycle.give_up();
  schedule(at, timers_.next_refresh(at->first, false, unix_seconds()));
}

std::string Refresher::problem(const dns::Name& name) const {
  const auto at = zones_.find(name);
  if (at == zones_.end()) return {};
  const Zone& zone = at->second;
  if (!zone.queued.is_waiting || !places_.all_away(zone.cycle.primaries())) return zone.problem;
  // The zone may never have asked its primaries itself.
  const Endpoint& primary = zone.cycle.primary().endpoint;
  return fmt::format("{}: {}", to_text(primary), places_.primaries().silence(primary));
}

std::optional<SecondaryStatus> Refresher::status(const dns::Name& name) const {
  const auto zone = zones_.find(name);
  if (zone == zones_.end()) return std::nullopt;
  SecondaryStatus status;
  for (const Primary& primary : zone->second.cycle.primaries())
    status.primaries.push_back(primary.endpoint);
  status.next_refresh = zone->second.due;
  // One of the zones that wait asks then, for all of them.
  if (zone->second.queued.is_waiting && places_.all_away(zone->second.cycle.primaries()))
    status.next_refresh = unix_seconds() + PrimaryShares::kProbePause / std::chrono::seconds(1);
  status.problem = problem(name);
  const PersistentTimers::Stored stored = timers_.stored(name);
  status.expires_at = stored.expires_at;
  status.last_ok = stored.last_ok;
  return status;
}

}  // namespace pando::manager
