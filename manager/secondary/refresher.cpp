#include "manager/secondary/refresher.h"

#include <algorithm>
#include <asio/co_spawn.hpp>
#include <asio/post.hpp>
#include <asio/use_awaitable.hpp>

#include "base/steady_time.h"
#include "base/unix_time.h"
#include "ipc/log.h"

namespace pando::manager {

namespace {

using Due = std::pair<std::uint64_t, dns::Name>;
bool due_before(const Due& a, const Due& b) {
  return a.first != b.first ? a.first < b.first : dns::compare_canonical(a.second, b.second) < 0;
}

/// Limits of an IXFR, whose changesets stay in memory until complete. An IXFR may have kFewRecords
/// records or twice the zone's, but at most kMostRecords records and kMaxChangesetBytes bytes.
/// Above a limit, the whole zone is requested instead.
constexpr std::uint64_t kFewRecords = 100'000;
constexpr std::uint64_t kMostRecords = 1'000'000;
constexpr std::uint64_t kMaxChangesetBytes = std::uint64_t{256} << 20;

/// Zones handled per turn of the event loop: after a start all zones may be due.
constexpr std::size_t kDueSlice = 1000;

/// RFC 1996 §3.11: a NOTIFY's serial is a hint. A serial that is not ahead of ours needs no refresh
/// attempt, unless our zone has expired.
bool is_news(const Committer& committer, const PersistentTimers& timers, const dns::Name& zone,
             dns::Serial serial) {
  const zone::ZoneView view = committer.current().zone_at(zone);
  return !view || !view.loaded() || timers.expired(view, unix_seconds()) ||
         serial.ahead_of(view.serial());
}

std::chrono::steady_clock::time_point steady_now() { return std::chrono::steady_clock::now(); }

/// Thousands of zones may wait for the primary, so that the log has this instead of their failures.
void log_change(const Endpoint& primary, const std::string& reason) {
  if (reason.empty()) return log::info("primary_answers", "primary", to_text(primary));
  log::warning("primary_silent", "primary", to_text(primary), "reason", reason);
}

/// The served zone that an incoming whole zone is compared with, on the commit loop. A nearly equal
/// zone is applied as a changeset: equal data stays in place, and our own secondaries get an IXFR.
asio::awaitable<std::optional<ServedZone>> served(const Committer& committer,
                                                  const PersistentTimers& timers,
                                                  shm::SlotTable& slots, dns::Name name,
                                                  std::shared_ptr<bool> alive) {
  if (!*alive) co_return std::nullopt;
  const zone::StoreView version = committer.current();
  const zone::ZoneView zone = version.zone_at(name);
  if (!zone || !zone.loaded() || timers.expired(zone, unix_seconds())) co_return std::nullopt;
  co_return ServedZone{zone, slots.pin_own(version.version())};
}

bool all_away(const PrimaryShares& shares, const Primaries& primaries) {
  return std::all_of(primaries.begin(), primaries.end(),
                     [&](const Primary& primary) { return shares.is_away(primary.endpoint); });
}

/// The job of an attempt, but for its key and what it calls.
TransferJob make_job(const dns::Name& zone, const Primary& primary, const Runtime& runtime,
                     const RefreshCycle::Request& request) {
  const config::Settings& settings = runtime.settings;
  TransferJob job;
  job.zone = zone;
  job.primary = primary.endpoint;
  job.source = settings.server.transfer_source;
  job.whole_zone = request.whole_zone;
  job.limits.data = runtime.limits;
  job.limits.octets = settings.limits.transfer_size.of(settings.store.size_limit);
  job.limits.changesets.bytes = kMaxChangesetBytes;
  job.longest = settings.limits.transfer_time;
  return job;
}

/// Adds what follows from the served version.
void compare_with_served(TransferJob& job, const Committer& committer,
                         const PersistentTimers& timers, const RefreshCycle::Request& request) {
  const zone::ZoneView view = committer.current().zone_at(job.zone);
  if (view)
    job.limits.changesets.records = std::clamp(2 * view.record_count(), kFewRecords, kMostRecords);
  // An expired zone counts as absent (RFC 1034 §4.3.5), so any version of the primary is accepted.
  if (view && view.loaded() && !request.any_serial && !timers.expired(view, unix_seconds()))
    job.current = view.serial();
  job.notified = request.notified && job.current && request.notified->ahead_of(*job.current);
}

/// All programs share one limit.
constexpr Endpoint kPrograms{};
/// Leaves threads to files, however many programs of transfers hang.
constexpr std::uint32_t kMaxPrograms = ProgramPlaces::kThreads / 2;

/// Null: no program.
bool are_alike(const ZoneVerifierPtr& a, const ZoneVerifierPtr& b) {
  return a == b || (a && b && a->is_like(*b));
}

/// Whether data of the zone are served only if their signatures are right (`verify: refuse`).
bool refuses_faults(const Runtime& runtime, const dns::Name& zone) {
  const auto* options = runtime.settings.zones.options_of(zone);
  return options != nullptr && options->verify == config::SignaturePolicy::kRefuse;
}

}  // namespace

struct Refresher::Attempt {
  dns::Name zone;
  std::uint64_t generation = 0;
  Primary primary;
  RuntimePtr runtime;  // keeps the key alive
  std::uint64_t records = 0;
  std::uint64_t octets = 0;
  std::optional<std::uint32_t> expire;  // the primary's EXPIRE option, in seconds (RFC 7314)
  bool is_whole = false;                // the transfer brought the whole zone
  ZoneVerifierPtr program;              // judges the received data; null: none
  PrimaryShares::SharePtr share;        // null: given back
  std::string silence;                  // see PrimaryShares::end()
  bool is_left = false;                 // for another primary, which sent a NOTIFY
};

Refresher::Refresher(asio::io_context& commit_loop, Network& network, shm::Store& store,
                     shm::SlotTable& slots, Committer& committer, ChangeRoad& road,
                     Hooks hooks)
    : commit_loop_(commit_loop),
      network_(network),
      store_(store),
      slots_(slots),
      committer_(committer),
      road_(road),
      hooks_(std::move(hooks)),
      timers_(store, committer),
      due_(&due_before),
      places_{PrimaryShares(&log_change), {}, {}},
      look_{asio::steady_timer(commit_loop), unix_seconds(), asio::steady_timer(commit_loop)} {}

Refresher::~Refresher() { stop(); }

void Refresher::stop() {
  *alive_ = false;
  look_.timer.cancel();
  look_.ticks.cancel();
  for (auto& [name, zone] : zones_) zone.verification.reset();
}

void Refresher::configure(const RuntimePtr& runtime) {
  runtime_ = runtime;
  const config::Limits& limits = runtime->settings.limits;
  places_.primaries.set_limits({limits.transfers_in, limits.transfers_in_per_primary});
  const std::uint32_t programs = std::min(limits.transfers_in, kMaxPrograms);
  places_.programs.set_limits({programs, programs});
  timers_.set_range(limits.refresh);
  for (const auto& attempt : places_.judged) {
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
  due_.erase({zone.due, at->first});
  zone = {};
  zone.cycle = RefreshCycle(std::move(primaries));
  zone.generation = ++generations_;
  zone.due = due;
  due_.emplace(due, at->first);
}

void Refresher::put(const dns::Name& name, Primaries primaries) {
  const auto [at, fresh] = zones_.try_emplace(name);
  if (!fresh && at->second.cycle.primaries() == primaries) return;
  const std::uint64_t now = unix_seconds();
  begin_anew(at, std::move(primaries), fresh ? timers_.first_look(at->first, now) : now);
}

bool Refresher::forget_others(std::optional<dns::Name>& after, std::size_t most,
                              const Stays& stays) {
  auto at = after ? zones_.upper_bound(*after) : zones_.begin();
  for (std::size_t looked_at = 0; looked_at < most && at != zones_.end(); ++looked_at) {
    after = at->first;
    if (stays(at->first, at->second.cycle.primaries())) {
      ++at;
      continue;
    }
    due_.erase({at->second.due, at->first});
    at = zones_.erase(at);
  }
  return at == zones_.end();
}

void Refresher::forget_unless(const dns::Name& zone, const Stays& stays) {
  const auto at = zones_.find(zone);
  if (at == zones_.end() || stays(at->first, at->second.cycle.primaries())) return;
  due_.erase({at->second.due, at->first});
  zones_.erase(at);
}

void Refresher::resume() {
  places_.programs.look_at_all();
  run_due();
}

/// Corrects the timers after the clock was put back: each zone waits as long as before. Otherwise
/// refreshes and retries would come late by as much as the clock has changed.
void Refresher::put_timers_back(std::uint64_t before, std::uint64_t now) {
  log::warning("clock_went_back", "seconds", before - now);
  due_.clear();
  for (auto& [name, zone] : zones_) {
    zone.due = zone.due <= before ? now : zone.due - (before - now);
    timers_.clock_went_back(name, zone.due, now);
    if (!zone.cycle.running() && !zone.waiting) due_.emplace(zone.due, name);
  }
}

void Refresher::schedule(Zones::iterator zone, std::uint64_t due) {
  due_.erase({zone->second.due, zone->first});
  zone->second.due = due;
  due_.emplace(due, zone->first);
  arm_timer();
}

/// The timer is only ever moved to an earlier time: run_due() checks all due zones when the timer
/// ends.
void Refresher::arm_timer() {
  if (*alive_ && places_.primaries.needs_ticks() && !std::exchange(look_.ticks_set, true)) {
    look_.ticks.expires_after(PrimaryShares::kTick);
    look_.ticks.async_wait([this, alive = alive_](asio::error_code error) {
      if (error || !*alive) return;
      look_.ticks_set = false;
      places_.primaries.tick(steady_now());
      run_due();
    });
  }
  if (due_.empty() || !*alive_) {
    look_.timer.cancel();
    look_.timer_set = false;
    return;
  }
  const std::uint64_t now = unix_seconds();
  const std::uint64_t due = due_.begin()->first;
  if (due <= now) return look_soon();
  // The wall clock may jump, so due zones are checked at least once a minute. The timer itself runs
  // on the steady clock.
  const auto at = std::chrono::steady_clock::now() +
                  std::chrono::seconds(std::min<std::uint64_t>(due - now, 60));
  if (look_.timer_set && look_.timer.expiry() <= at) return;
  look_.timer_set = true;
  look_.timer.expires_at(at);
  look_.timer.async_wait([this, alive = alive_](asio::error_code error) {
    if (error || !*alive) return;
    look_.timer_set = false;
    run_due();
  });
}

void Refresher::look_soon() {
  if (std::exchange(look_.is_posted, true)) return;
  asio::post(commit_loop_, [this, alive = alive_] {
    if (!*alive) return;
    look_.is_posted = false;
    run_due();
  });
}

/// A zone whose primary has no room leaves `due_`, so that run_due() costs only the attempts that
/// it starts, however many zones wait. A primary that is away is asked by a zone now and then; the
/// other zones go on to their other primaries.
void Refresher::start_or_wait(Zones::iterator at) {
  Zone& zone = at->second;
  if (!hooks_.may_change(at->first)) {
    // Begins anew with refresh_now().
    zone.waiting = false;
    zone.cycle.begin_anew();
    return;
  }
  if (!places_.programs.has_room(kPrograms) && hooks_.verifier_of(at->first)) {
    if (!std::exchange(zone.waiting, true)) places_.programs.wait(kPrograms, at->first);
    return;
  }
  const auto now = steady_now();
  do {
    const Endpoint& primary = zone.cycle.primary().endpoint;
    if (places_.primaries.may_begin(primary, now)) return start(at);
    if (!places_.primaries.is_away(primary)) return wait_for(at, primary);
  } while (zone.cycle.ask_next());
  end_cycle(at, zone.cycle.confirmed());
}

/// Queues the zone, once for each primary. An urgent zone goes to the front, and leaves its earlier
/// entry in the queue. More entries than these two would fill the memory, as anybody can send
/// NOTIFYs in the name of a primary that does not answer.
void Refresher::wait_for(Zones::iterator at, const Endpoint& primary) {
  Zone& zone = at->second;
  zone.waiting = true;
  std::uint32_t& entries = zone.queues[primary];
  if (entries == 0 || (entries == 1 && zone.is_urgent && !zone.is_first)) {
    ++entries;
    places_.primaries.wait(primary, at->first, zone.is_urgent);
  }
  zone.is_first = zone.is_urgent;
}

/// Starts the zones that waited longest for primaries or programs with free places.
void Refresher::start_waiting() {
  const auto waits = [this](Zones::iterator zone) {
    return zone != zones_.end() && zone->second.waiting && !zone->second.cycle.running();
  };
  const auto program_of = [&](const dns::Name& name) -> const Endpoint* {
    return waits(zones_.find(name)) ? &kPrograms : nullptr;
  };
  while (const auto name = places_.programs.next(program_of)) {
    const auto zone = zones_.find(*name);
    zone->second.waiting = false;
    start_or_wait(zone);
  }
  const auto now = steady_now();
  for (std::size_t looked_at = 0; looked_at < kDueSlice; ++looked_at) {
    const auto next = places_.primaries.next(now);
    if (!next) return;
    const auto zone = zones_.find(next->zone);
    if (zone == zones_.end()) continue;
    const auto entries = zone->second.queues.find(next->primary);
    if (entries != zone->second.queues.end() && --entries->second == 0)
      zone->second.queues.erase(entries);
    zone->second.is_first = false;
    if (!waits(zone)) continue;
    zone->second.waiting = false;
    if (places_.primaries.may_begin(next->primary, now) &&
        places_.primaries.is_away(zone->second.cycle.primary().endpoint))
      zone->second.cycle.begin_with(next->primary);
    start_or_wait(zone);
  }
  look_soon();
}

void Refresher::run_due() {
  const std::uint64_t now = unix_seconds();
  const std::uint64_t before = std::exchange(look_.last, now);
  if (went_back(before, now)) put_timers_back(before, now);
  start_waiting();
  std::size_t looked_at = 0;
  while (!due_.empty() && due_.begin()->first <= now && looked_at++ < kDueSlice) {
    const auto zone = zones_.find(due_.begin()->second);
    due_.erase(due_.begin());
    if (zone == zones_.end() || zone->second.cycle.primaries().empty()) continue;
    start_or_wait(zone);
  }
  arm_timer();
}

void Refresher::start(Zones::iterator at) {
  Zone& zone = at->second;
  due_.erase({zone.due, at->first});  // a zone that waited may be due a second time
  zone.waiting = zone.is_urgent = false;
  auto attempt = std::make_shared<Attempt>();
  attempt->zone = at->first;
  attempt->generation = zone.generation;
  attempt->primary = zone.cycle.primary();
  attempt->runtime = runtime_;
  const RefreshCycle::Request request = zone.cycle.begin_attempt();
  TransferJob job = make_job(attempt->zone, attempt->primary, *runtime_, request);
  compare_with_served(job, committer_, timers_, request);
  if (!zone.damaged && !request.any_serial)
    job.served = [this, &loop = commit_loop_, name = at->first, alive = alive_] {
      return asio::co_spawn(loop, served(committer_, timers_, slots_, name, alive),
                            asio::use_awaitable);
    };
  attempt->share = places_.primaries.begin(job.primary, steady_now());
  job.progress = std::shared_ptr<TransferProgress>(attempt->share, &attempt->share->progress);
  zone.attempt = attempt;
  if (attempt->primary.key) {
    job.key = runtime_->keys.find(*attempt->primary.key);
    if (job.key == nullptr) {
      // Posted, because failed() starts other zones, and the caller may be that very loop.
      asio::post(commit_loop_, [this, attempt, alive = alive_] {
        if (*alive) failed(attempt, Error{Errc::kNotFound, "no such key"}, false);
      });
      return;
    }
  }
  asio::co_spawn(network_.loop(),
                 transfer_in(std::move(job), network_.connections(), store_, network_.builders()),
                 [this, attempt, alive = alive_](const std::exception_ptr& thrown,
                                                 Result<TransferResult, TransferFailure> result) {
                   if (thrown)
                     result = tl::unexpected<TransferFailure>(
                         {{Errc::kIo, "transfer ended by an exception"}, false});
                   auto handed =
                       std::make_shared<Result<TransferResult, TransferFailure>>(std::move(result));
                   asio::post(commit_loop_, [this, attempt, alive, handed] {
                     if (*alive) finished(attempt, std::move(*handed));
                   });
                 });
}

void Refresher::finished(const std::shared_ptr<Attempt>& attempt,
                         Result<TransferResult, TransferFailure> result) {
  if (!result && result.error().silent) attempt->silence = result.error().error.text;
  if (!wanted(*attempt)) return drop(attempt);
  if (!result) return failed(attempt, result.error().error, result.error().ixfr_asked);
  attempt->records = result->records;
  attempt->octets = result->octets;
  attempt->expire = result->expire;
  if (result->foreign_records > 0)
    log::warning("transfer_foreign_records", "zone", dns::to_text(attempt->zone), "primary",
                 to_text(attempt->primary.endpoint), "left_out", result->foreign_records);
  attempt->is_whole = result->content == TransferParser::Content::kZone;
  if (result->content == TransferParser::Content::kUpToDate)
    return nothing_new(attempt, result->serial);
  hand_in(attempt, std::move(*result));
}

/// The change of what was received, without its judges. Data sent whole may come as a changeset, from
/// the serial `compared`.
ZoneChange Refresher::change_of(const std::shared_ptr<Attempt>& attempt, TransferResult&& result) {
  ZoneChange change;
  change.zone = attempt->zone;
  change.source = ChangeSource::kTransfer;
  change.limits = attempt->runtime->limits;
  change.is_whole = attempt->is_whole;
  change.check = [this, attempt, compared = result.compared,
                  alive = alive_](const zone::StoreView& version) -> Status {
    if (!*alive || !wanted(*attempt)) return fail(Errc::kNotFound, "zone has other primaries now");
    if (auto may = hooks_.may_change(attempt->zone); !may) return may;
    if (!compared) return {};
    const zone::ZoneView now = version.zone_at(attempt->zone);
    return now && now.loaded() && now.serial() == *compared ? Status() : fail(Errc::kExists, "zone changed during the transfer");
  };
  if (result.zone) {
    change.content = WholeZone{result.zone, std::move(*result.transaction)};
    return change;
  }
  for (const zone::Changeset& changes : result.changesets)
    change.records += changes.removed.size() + changes.added.size();
  change.content =
      std::make_shared<const std::vector<zone::Changeset>>(std::move(result.changesets));
  return change;
}

/// Hands what was received to the road of changes. The primary is free for other zones while a
/// program judges this one.
void Refresher::hand_in(const std::shared_ptr<Attempt>& attempt, TransferResult&& result) {
  const dns::Serial serial = result.serial;
  ZoneChange change = change_of(attempt, std::move(result));
  change.judges = {refuses_faults(*runtime_, attempt->zone), hooks_.verifier_of(attempt->zone),
                   hooks_.is_verified};
  if (change.judges) begin_judgement(attempt, change);
  change.done = [this, attempt, serial, alive = alive_](const Result<ChangeOutcome>& outcome) {
    if (*alive) handed_in(attempt, serial, outcome);
  };
  road_.submit(std::move(change));
}

void Refresher::begin_judgement(const std::shared_ptr<Attempt>& attempt, ZoneChange& change) {
  change.progress = std::make_shared<Progress>();
  zones_.find(attempt->zone)->second.verification = std::shared_ptr<void>(
      nullptr, [progress = change.progress](void*) { progress->give_up(); });
  attempt->program = change.judges.program;
  if (!attempt->program) return;
  places_.judged.insert(attempt);
  places_.programs.begin(kPrograms);
  places_.primaries.end(std::exchange(attempt->share, nullptr), {}, steady_now());
  look_soon();
}

/// An IXFR that does not fit, or that a judge refuses, may be the fault of our version: then the
/// whole zone has none. After a failure of disk or memory the IXFR is retried later: an AXFR would
/// need more memory, and would bypass the journal.
void Refresher::handed_in(const std::shared_ptr<Attempt>& attempt, dns::Serial serial,
                          const Result<ChangeOutcome>& outcome) {
  if (wanted(*attempt)) zones_.find(attempt->zone)->second.verification.reset();
  if (!outcome) {
    if (!wanted(*attempt)) return drop(attempt);
    const Errc code = outcome.error().code;
    const bool is_unfit =
        code == Errc::kInvalid || code == Errc::kCorrupt || code == Errc::kNotFound;
    return failed(attempt, outcome.error(), !attempt->is_whole && is_unfit);
  }
  ++counters_.transfers;
  if (!attempt->is_whole) ++counters_.by_ixfr;
  hooks_.count(attempt->zone, attempt->is_whole ? ipc::ZoneCounter::kTransfersInAxfr
                                                : ipc::ZoneCounter::kTransfersInIxfr);
  transferred(attempt, attempt->is_whole ? "axfr" : "ixfr", serial);
}

Refresher::Zones::iterator Refresher::release(const std::shared_ptr<Attempt>& attempt) {
  if (places_.judged.erase(attempt) > 0)
    places_.programs.end(kPrograms);
  else
    places_.primaries.end(std::exchange(attempt->share, nullptr), attempt->silence, steady_now());
  if (!wanted(*attempt)) return zones_.end();
  const auto zone = zones_.find(attempt->zone);
  zone->second.cycle.end_attempt();
  zone->second.attempt.reset();
  return zone;
}

/// True if the configured zone still has the primaries of the start of the attempt.
bool Refresher::wanted(const Attempt& attempt) const {
  const auto zone = zones_.find(attempt.zone);
  return zone != zones_.end() && zone->second.generation == attempt.generation;
}

void Refresher::drop(const std::shared_ptr<Attempt>& attempt) {
  release(attempt);
  if (attempt->is_left) return run_due();
  log::info("transfer_dropped", "zone", dns::to_text(attempt->zone), "primary",
            to_text(attempt->primary.endpoint), "reason", "the configuration has changed");
  run_due();
}

/// The asked primary has nothing newer, but another primary may. A different serial confirms
/// nothing, whether behind ours or at the distance 2^31, where neither is ahead (RFC 1982 §3.2).
void Refresher::nothing_new(const std::shared_ptr<Attempt>& attempt, dns::Serial serial) {
  const auto at = release(attempt);
  if (at == zones_.end()) return run_due();
  const zone::ZoneView view = committer_.current().zone_at(attempt->zone);
  if (view && view.loaded() && !(view.serial() == serial)) {
    const char* where = view.serial().ahead_of(serial) ? "behind" : "not ahead of";
    ++counters_.failures;
    hooks_.count(attempt->zone, ipc::ZoneCounter::kRefreshesFailed);
    at->second.problem =
        fmt::format("primary {} has serial {}, {} ours ({}): `zone retransfer` takes it",
                    to_text(attempt->primary.endpoint), serial.value, where, view.serial().value);
    if (at->second.cycle.note_behind(attempt->primary.endpoint, true))
      log::warning("primary_behind", "zone", dns::to_text(attempt->zone), "primary",
                   to_text(attempt->primary.endpoint), "serial", serial.value, "ours",
                   view.serial().value);
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

void Refresher::transferred(const std::shared_ptr<Attempt>& attempt, const char* how,
                            dns::Serial serial) {
  const auto at = release(attempt);
  ++counters_.refreshes;
  log::info("zone_refreshed", "zone", dns::to_text(attempt->zone), "primary",
            to_text(attempt->primary.endpoint), "by", how, "serial", serial.value, "records",
            attempt->records, "octets", attempt->octets);
  if (at == zones_.end()) return run_due();
  at->second.damaged = false;
  at->second.cycle.forget_behind();
  timers_.confirm(attempt->zone, attempt->expire, true, unix_seconds());
  end_cycle(at, true);
}

void Refresher::failed(const std::shared_ptr<Attempt>& attempt, const Error& error,
                       bool broken_ixfr) {
  const bool is_probe = places_.primaries.is_away(attempt->primary.endpoint);
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
  if (!broken_ixfr || !zone.cycle.fall_back()) return next_primary(at);
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
  const std::uint64_t due = timers_.next_look(at->first, ok, unix_seconds());
  if (!ok && all_away(places_.primaries, zone.cycle.primaries())) {
    due_.erase({std::exchange(zone.due, due), at->first});
    zone.cycle.end(false);  // an answer of any primary fulfils all wishes
    for (const Primary& primary : zone.cycle.primaries()) wait_for(at, primary.endpoint);
    return look_soon();
  }
  schedule(at, due);
  const auto notified = zone.cycle.notified_serial();
  const bool is_still_news = notified && is_news(committer_, timers_, at->first, *notified);
  if (auto wish = zone.cycle.end(is_still_news)) {
    // The sender of the NOTIFY may be away without room for an attempt. Its zone must not ask its
    // other primaries again and again meanwhile.
    wish->paced = wish->paced || places_.primaries.is_away(zone.cycle.primary().endpoint);
    refresh_soon(at, *wish);
  }
  look_soon();
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
  if (const Primary* sender = zone.cycle.sender(request)) places_.primaries.call(sender->endpoint);
  NotifyRequest hint = request;
  if (request.serial && !is_news(committer_, timers_, request.zone, *request.serial)) {
    const dns::Serial ours = committer_.current().zone_at(request.zone).serial();
    if (!zone.cycle.is_doubt(request, ours)) return true;
    hint.serial.reset();  // the SOA record is asked for
  }
  zone.is_urgent = true;
  leave_silent_primary(at, request);
  if (const auto wish = zone.cycle.on_notify(hint)) refresh_soon(at, *wish);
  return true;
}

/// The news of one primary need not wait for the timeout of another one.
void Refresher::leave_silent_primary(Zones::iterator at, const NotifyRequest& request) {
  Zone& zone = at->second;
  const Primary* sender = zone.cycle.sender(request);
  if (!zone.attempt || !zone.attempt->share || sender == nullptr ||
      *sender == zone.attempt->primary ||
      !places_.primaries.is_silent(*zone.attempt->share, steady_now()))
    return;
  zone.attempt->is_left = true;
  zone.attempt.reset();
  zone.generation = ++generations_;
  zone.cycle.give_up();
  schedule(at, timers_.next_look(at->first, false, unix_seconds()));
}

std::string Refresher::problem(const dns::Name& name) const {
  const auto at = zones_.find(name);
  if (at == zones_.end()) return {};
  const Zone& zone = at->second;
  if (!zone.waiting || !all_away(places_.primaries, zone.cycle.primaries())) return zone.problem;
  // The zone may never have asked its primaries itself.
  const Endpoint& primary = zone.cycle.primary().endpoint;
  return fmt::format("{}: {}", to_text(primary), places_.primaries.silence(primary));
}

std::optional<SecondaryStatus> Refresher::status(const dns::Name& name) const {
  const auto zone = zones_.find(name);
  if (zone == zones_.end()) return std::nullopt;
  SecondaryStatus status;
  for (const Primary& primary : zone->second.cycle.primaries())
    status.primaries.push_back(primary.endpoint);
  status.next_refresh = zone->second.due;
  // One of the zones that wait asks then, for all of them.
  if (zone->second.waiting && all_away(places_.primaries, zone->second.cycle.primaries()))
    status.next_refresh = unix_seconds() + PrimaryShares::kProbePause / std::chrono::seconds(1);
  status.problem = problem(name);
  const PersistentTimers::Stored stored = timers_.stored(name);
  status.expires_at = stored.expires_at;
  status.last_ok = stored.last_ok;
  return status;
}

}  // namespace pando::manager
