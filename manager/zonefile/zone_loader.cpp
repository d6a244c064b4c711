#include "manager/zonefile/zone_loader.h"

#include <algorithm>
#include <asio/post.hpp>
#include <chrono>
#include <utility>

#include "base/steady_time.h"
#include "dns/dnssec/nsec3_hash.h"
#include "ipc/log.h"

namespace pando::manager {

namespace {

using Kind = LoadOutcome::Kind;

/// Limit of attempts for a zone that changed during the check of its file, in the few cases where
/// the change matters.
constexpr int kMaxTries = 5;

LoadOutcome failed(std::string problem) { return {Kind::kFailed, {}, 0, {std::move(problem)}}; }

LoadOutcome outcome_of(Kind kind, const zone::ZoneView& zone) {
  return {kind, zone.serial(), zone.record_count(), {}};
}

void log_loaded(const LoadTask& task, const zone::ZoneView& zone) {
  const auto level = task.request->loaded.level_of_next(log::Level::kInfo);
  if (!log::enabled(level)) return;
  log::detail::event(level, "zone_loaded", "zone", to_text(task.job.apex), "serial",
                     zone.serial().value, "records", zone.record_count(), "ms",
                     milliseconds_since(task.start), "updated", task.zone->updated, "replayed",
                     task.zone->replayed, "skipped", task.zone->skipped);
}

void log_warnings(const LoadTask& task, const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings)
    log::detail::event(task.request->warnings.level_of_next(log::Level::kWarning), "zone_file",
                       "zone", to_text(task.job.apex), "text", warning);
}

/// Warns of an NSEC3 chain with iterations, which RFC 9276 §3.1 advises against.
void doubt_iterations(LoadTask& task, const zone::ZoneView& live) {
  if (live.denial() != zone::Denial::kNsec3) return;
  auto doubt = dns::doubt_about_iterations(live.nsec3_parameters().iterations);
  if (!doubt.empty()) task.warnings.push_back(std::move(doubt));
}

/// False: a later request has taken the job's program away.
bool is_wanted(const LoadTask& task) {
  return !task.request->is_wanted || task.request->is_wanted(task.job);
}

void log_left_out(const QueuedRequest& request) {
  if (request.problems.left_out() > 0)
    log::error("zones_not_loaded", "zones", request.failed, "lines_left_out",
               request.problems.left_out());
  if (request.warnings.left_out() > 0)
    log::warning("zone_files", "lines_left_out", request.warnings.left_out());
}

void log_load(const LoadProgress& load, LoadProgress::Clock::time_point now) {
  const Progress::Seen seen = load.seen();
  const auto spent = std::chrono::duration_cast<std::chrono::seconds>(now - load.start).count();
  if (const auto percent = seen.percent())
    log::info("zone_loading", "zone", to_text(load.zone), "phase", to_text(seen.phase), "percent",
              *percent, "done", seen.done, "total", seen.total, "s", spent);
  else
    log::info("zone_loading", "zone", to_text(load.zone), "phase", to_text(seen.phase), "done",
              seen.done, "s", spent);
}

/// True when a later look has left its file to this task, which has shown its program another one,
/// or none. The file was changed and put back, or touched while it was read.
bool has_to_read_again(LoadTask& judged) {
  const std::uint64_t asked = std::exchange(judged.asked, 0);
  return asked != 0 && asked != judged.judging.shown && judged.tries < kMaxTries;
}

/// A program that judges this very file goes on: a verdict that takes longer than the time from one
/// reload to the next would never come.
void look_for_judgement(const LoadQueue& queue, LoadTask& task) {
  if (!task.job.verifier) return;
  const auto before = queue.judged(task.job.apex);
  task.judging.before = before ? before->judging.file : nullptr;
  task.judging.before_waits = before && before->tries == 0;
  task.looks_before = before ? before->looks : 0;
}

/// The outcome of the load of this look comes from the judged task, so that task has to show its
/// program this file.
void leave_to_judged(const LoadQueue& queue, const LoadTask& look) {
  const auto judged = queue.judged(look.job.apex);
  if (!judged) return;
  judged->asked = look.judging.left;
  ++judged->looks;
}

/// Records the new time and stamp of an unchanged file, so that the next check need not read the
/// file. The commit is not awaited: if the store is full, the next check just reads the file again.
void record_merge_base(Committer& committer, const LoadTask& task) {
  committer.edit(
      [apex = task.job.apex, touched = *task.touched](zone::Draft& draft) -> Status {
        const zone::ZoneView live = draft.view().zone_at(apex);
        if (!live || !live.loaded() || !(live.source() == touched.before)) return {};
        return draft.put_zone_source(apex, touched.now);
      },
      [apex = task.job.apex](const Status& status) {
        if (!status)
          log::warning("merge_base_not_recorded", "zone", to_text(apex), "reason",
                       status.error().text);
      },
      shm::Reserve::kHalf);
}

}  // namespace

ZoneLoader::ZoneLoader(asio::io_context& io, asio::thread_pool& pool, std::size_t threads,
                       shm::Store& store, shm::SlotTable& slots, Committer& committer,
                       ChangeRoad& road, zone::DataLimits limits)
    : io_(io),
      mailbox_(LoopMailbox::of(io)),
      pool_(pool),
      store_(store),
      slots_(slots),
      committer_(committer),
      road_(road),
      limits_(limits),
      queue_(threads, [this](dns::NameView zone) { return loads_.find(zone) != nullptr; }),
      threads_(mailbox_, std::max<std::size_t>(threads, 1) + 1) {}

void ZoneLoader::load(LoadRequest request) {
  queue_.add(std::move(request));
  asio::post(io_, [this] { schedule(); });
}

void ZoneLoader::stop() {
  stopped_ = true;
  loads_.give_up();
  for (const Batch& batch : batches_) batch->give_up();
}

/// Starts tasks while threads are free, and ends requests whose jobs are all finished.
void ZoneLoader::schedule() {
  if (stopped_) return;
  for (const LoadKind kind : queue_.kinds()) {
    for (LoadTasks tasks = queue_.next(kind); !tasks.empty(); tasks = queue_.next(kind))
      start(std::move(tasks));
    while (const auto ended = queue_.take_ended(kind)) {
      log_left_out(*ended);
      if (ended->on_end) ended->on_end();
    }
  }
}

void ZoneLoader::start(LoadTasks tasks) {
  const LoadTask& first = *tasks.front();
  const bool needs_look = first.job.verifier && first.kind != LoadKind::kJudged;
  if (tasks.size() == 1 && !needs_look) return check(tasks.front());
  check_batch(std::make_shared<LoadBatch>(std::move(tasks)));
}

/// Runs `work` for `task` beside the commit thread, and then `then` in it.
template <class Work, class Then>
void ZoneLoader::run(const LoadTask& task, Work work, Then then) {
  if (task.kind != LoadKind::kJudged) return threads_.run(std::move(work), std::move(then));
  // Programs of the operator may take their time; no other work waits for them.
  asio::post(task.job.verifier->pool(), [this, work = std::move(work), then = std::move(then)] {
    work();
    mailbox_.post(then);
  });
}

// A batch of zones
// -----------------------------------------------------------------------------------------

void ZoneLoader::check_batch(const Batch& batch) {
  batches_.insert(batch);
  batch->pin(committer_, slots_);
  for (const Task& task : batch->tasks()) look_for_judgement(queue_, *task);
  run(
      *batch->tasks().front(), [this, batch] { batch->check(store_); },
      [this, batch] { commit_batch(batch); });
}

void ZoneLoader::commit_batch(const Batch& batch) {
  batches_.erase(batch);
  if (stopped_) return;
  batch->unpin();
  if (!batch->has_new_zones()) {
    batch->discard_new_zones(false);
    return finish_batch(*batch);
  }
  NewZones zones = batch->take_new_zones();
  zones.run = [this, batch](auto work, auto then) {
    run(*batch->tasks().front(), std::move(work), std::move(then));
  };
  road_.submit_new_zones(std::move(zones), [this, batch](const Status& published,
                                                         const std::vector<dns::Name>& refused) {
    // Unless zones are refused, a zone changed, or the store is full: check each zone alone to find
    // out which.
    if (!published) batch->discard_new_zones(refused.empty());
    batch->check_alone(refused);
    finish_batch(*batch);
  });
}

/// Reports the finished tasks and queues the others again.
void ZoneLoader::finish_batch(LoadBatch& batch) {
  const zone::StoreView now = committer_.current();
  const LoadKind kind = batch.tasks().front()->kind;
  for (const Task& task : batch.tasks()) {
    const bool is_found = task->zone || task->outcome;
    if (!is_found && !task->judging.file) {
      queue_.check_again(task);
      continue;
    }
    if (!is_found && is_wanted(*task) && !is_outdated(*task)) {
      judge(task);
      continue;
    }
    if (!is_found && !is_wanted(*task)) task->outcome = LoadOutcome{Kind::kSuperseded, {}, 0, {}};
    if (task->job.verifier && is_outdated(*task)) {
      task->reset_findings();
      queue_.check_again(task);
      continue;
    }
    if (task->outcome && task->outcome->kind == Kind::kJudging) leave_to_judged(queue_, *task);
    if (task->outcome && task->outcome->kind == Kind::kUnchanged) withdraw_judged(*task);
    if (!task->outcome) {
      const zone::ZoneView zone = now.zone_at(task->job.apex);
      log_loaded(*task, zone);
      task->outcome = outcome_of(Kind::kLoaded, zone);
    }
    report(task, *task->outcome);
  }
  queue_.release(kind);
  // Freed in the pool, since freeing built zones takes time.
  if (batch.has_new_zones()) asio::post(pool_, [tasks = std::move(batch.tasks())] {});
  schedule();
}

// Zones whose programs judge
// -----------------------------------------------------------------------------------------

/// True when the check that a look relied on has ended, or when another version was put, between
/// the look and its end. A look that asks for a program is outdated when another look, maybe of a
/// later load, has had one begin: the later one must not be superseded for the same file.
bool ZoneLoader::is_outdated(const LoadTask& look) const {
  const Task judged = queue_.judged(look.job.apex);
  if (!look.outcome) return judged && judged->judging.file != look.judging.before;
  if (look.outcome->kind == Kind::kJudging)
    return !judged || judged->judging.file != look.judging.before;
  if (!look.judging.base) return false;
  // A later look has found the judged file in its place again.
  if (judged && judged->judging.file == look.judging.before && judged->looks != look.looks_before)
    return true;
  if (!judged && loads_.find(look.job.apex)) return true;  // a version is being put
  const zone::ZoneView now = committer_.current().zone_at(look.job.apex);
  return now && now.source().hash != look.judging.base->hash;
}

/// The file is the one that is served again, so the version that was judged at the time of the look
/// was withdrawn.
void ZoneLoader::withdraw_judged(const LoadTask& unchanged) {
  const Task judged = queue_.judged(unchanged.job.apex);
  if (judged && judged->judging.file == unchanged.judging.before)
    supersede(queue_.take_judged(unchanged.job.apex));
}

/// The look of an earlier load may be the last one. The outcome then is that of the later load,
/// which was told that the program judges; the earlier one is only told that it was superseded.
void ZoneLoader::judge(const Task& task) {
  const Task before = queue_.take_judged(task->job.apex);
  task->is_first = !task->served;
  queue_.judge(task);
  if (before && before->request->number > task->request->number)
    std::swap(before->request, task->request);
  else if (task->request->on_judging)
    task->request->on_judging(task->job);
  supersede(before);
}

std::string ZoneLoader::judge_of(dns::NameView zone) const {
  const Task task = queue_.judged(zone);
  return task ? task->job.verifier->program() : std::string();
}

/// Ends a task that a newer one replaces. `task` is a result of LoadQueue::take_judged(), or null.
void ZoneLoader::supersede(const Task& task) {
  if (!task) return;
  task->is_superseded = true;
  if (task->progress) return task->progress->give_up();  // its thread ends the task
  report(task, {Kind::kSuperseded, {}, 0, {}});
}

void ZoneLoader::supersede_unless(dns::NameView zone,
                                  const std::function<bool(const LoadJob& job)>& stays) {
  const Task task = queue_.judged(zone);
  if (task && !stays(task->job)) supersede(queue_.take_judged(zone));
}

void ZoneLoader::supersede_unless(const std::function<bool(const LoadJob& job)>& stays) {
  std::vector<dns::Name> others;
  queue_.for_each_judged([&](const LoadTask& task) {
    if (!stays(task.job)) others.push_back(task.job.apex);
  });
  for (const dns::Name& zone : others) supersede(queue_.take_judged(zone));
}

// One zone
// -----------------------------------------------------------------------------------------

void ZoneLoader::check(const Task& task) {
  if (stopped_) return;
  // The zone was dropped (store full or unconfigured; already reported). Finish asynchronously: our
  // caller is iterating the queue.
  if (!committer_.current().zone_at(task->job.apex))
    return asio::post(io_, [this, task] { finish(task, {Kind::kAbsent, {}, 0, {}}); });
  if (task->kind == LoadKind::kJudged && !queue_.judge_again(task))
    return asio::post(io_, [this, task] { finish(task, {Kind::kSuperseded, {}, 0, {}}); });
  ++task->tries;
  if (!task->progress) task->progress = loads_.begin(task->job.apex, LoadProgress::Clock::now());
  task->use_current(committer_);
  task->may_ask_again = task->tries == 1;
  task->pin = slots_.pin_own(task->version.version());
  run(*task, [this, task] { task->run(store_); }, [this, task] { commit(task); });
}

/// Hands the findings of a check to the road of changes, if there is anything to put.
void ZoneLoader::commit(const Task& task) {
  if (stopped_) return;
  task->pin = {};
  const bool has_data = !task->is_superseded && !task->check_again && !task->outcome;
  const bool is_judged_next = has_data && task->judges();
  if (!is_judged_next && !may_put(*task)) return end_unless_again(task);
  if (task->plan && task->plan->kind == MergePlan::Kind::kMerge)
    merge(task);
  else
    replace(task);
}

/// After the verdicts, or without judges: whether the findings are to be put. Else the task has an
/// outcome, or is to be checked again.
bool ZoneLoader::may_put(LoadTask& task) {
  if (task.is_superseded) {
    task.check_again = false;
    task.outcome = LoadOutcome{Kind::kSuperseded, {}, 0, {}};
    return false;
  }
  if (has_to_read_again(task)) {
    task.check_again = true;
    task.older.refusal.clear();
  }
  if (task.check_again) return false;
  // From here on a later job waits for this one.
  if (task.kind == LoadKind::kJudged) queue_.take_judged(task.job.apex);
  const zone::ZoneView now = committer_.current().zone_at(task.job.apex);
  if (auto outcome = task.stale_outcome(now)) task.outcome = std::move(*outcome);
  if (task.outcome) return false;
  task.progress->begin(Progress::Phase::kPutting, 0);
  return true;
}

void ZoneLoader::end_unless_again(const Task& task) {
  if (task->check_again) return check(task);
  finish(task, std::move(*task->outcome));
}

/// Submits a change with the judges of its file.
void ZoneLoader::put(const Task& task, ZoneChange change) {
  change.judges = task->judges();
  if (change.judges) {
    change.progress = task->progress;
    change.judges.run = [this, task](auto work, auto then) {
      run(*task, std::move(work), std::move(then));
    };
    change.judged = [this, task](const Judgement& judgement) -> Status {
      if (stopped_) return fail(Errc::kExists, "the process ends");
      task->take(judgement);
      if (may_put(*task)) return {};
      return fail(Errc::kExists, "the file is not put");
    };
  }
  change.done = [this, task, done = std::move(change.done)](const Result<ChangeOutcome>& outcome) {
    if (stopped_) return;
    if (task->check_again || task->outcome) return end_unless_again(task);
    done(outcome);
  };
  road_.submit(std::move(change));
}

void ZoneLoader::replace(const Task& task) {
  auto replacement = std::make_shared<ZoneReplacement>(task, task->journal_pending);
  ZoneChange change = ZoneReplacement::change(replacement);
  change.done = [this, task, replacement](const Result<ChangeOutcome>& outcome) {
    const Status committed = status_of(outcome);
    replaced(task, replacement->after(committed), committed);
  };
  put(task, std::move(change));
}

void ZoneLoader::replaced(const Task& task, ZoneReplacement::Next next, const Status& committed) {
  using Next = ZoneReplacement::Next;
  if (next == Next::kServe) return serve(task);
  if (next == Next::kCheckAgain && task->tries < kMaxTries) return check(task);
  if (next != Next::kPutWithoutJournal) return finish(task, failed(committed.error().text));
  log::error("zone_not_journaled", "zone", to_text(task->job.apex), "reason",
             committed.error().text);
  task->journal_pending = true;
  check(task);
}

/// Reports a zone that was put whole.
void ZoneLoader::serve(const Task& task) {
  const zone::ZoneView live = committer_.current().zone_at(task->job.apex);
  doubt_iterations(*task, live);
  log_loaded(*task, live);
  // A secondary's copy may be newer than the changesets, so skipped ones are normal.
  if (task->zone->skipped > 0 && !task->job.file_optional)
    log::warning("updates_not_applied", "zone", to_text(task->job.apex), "changesets",
                 task->zone->skipped, "reason",
                 "the journal no longer tells what came by update, and the serials do not fit");
  finish(task, outcome_of(task->served ? Kind::kReplaced : Kind::kLoaded, live));
}

/// Applies the file's edit and records the file as the merge base in one step.
void ZoneLoader::merge(const Task& task) {
  auto overridden = std::make_shared<RecordChanges>();
  auto zone_changed = std::make_shared<bool>(false);
  ZoneChange change;
  change.zone = task->job.apex;
  change.source = ChangeSource::kFile;
  change.records = task->plan->record_count();
  change.limits = limits_.of_history();
  change.content = [task, overridden,
                    zone_changed](const zone::StoreView& version) -> Result<ComputedChange> {
    auto computed = compute_merge(version, *task->plan, overridden);
    *zone_changed = !computed && computed.error().code == Errc::kExists;
    return computed;
  };
  change.done = [this, task, overridden, zone_changed](const Result<ChangeOutcome>& outcome) {
    if (!outcome && *zone_changed && task->tries < kMaxTries) return check(task);
    if (!outcome)
      return finish(task, failed(fmt::format("{}: {}", task->job.path, outcome.error().text)));
    merged(task, outcome->applied, *overridden);
  };
  if (task->zone) change.judged_data = task->zone->built;
  put(task, std::move(change));
}

void ZoneLoader::merged(const Task& task, const zone::Applied& applied,
                        const RecordChanges& overridden) {
  const bool has_changes = !applied.effective.empty();
  if (has_changes)
    log::info("zone_merged", "zone", to_text(task->job.apex), "from", applied.from.value, "serial",
              applied.to.value, "added", applied.effective.added.size(), "removed",
              applied.effective.removed.size(), "ms", milliseconds_since(task->start));
  if (const std::string text = overridden_text(overridden); !text.empty())
    task->warnings.push_back(fmt::format("{}: {}", task->job.path, text));
  const zone::ZoneView live = committer_.current().zone_at(task->job.apex);
  if (has_changes) doubt_iterations(*task, live);
  finish(task, outcome_of(has_changes ? Kind::kChanged : Kind::kUnchanged, live));
}

void ZoneLoader::finish(const Task& task, LoadOutcome outcome) {
  task->progress.reset();
  const bool is_judged = task->kind == LoadKind::kJudged;
  if (is_judged && queue_.judged(task->job.apex) == task) queue_.take_judged(task->job.apex);
  report(task, outcome);
  // Freed in the pool, since freeing the file's zone and the plan may take a while.
  asio::post(pool_, [zone = std::move(task->zone), plan = std::move(task->plan),
                     built_in = std::move(task->transaction)] {});
  if (is_judged)
    queue_.release_judged(*task);
  else
    queue_.release(task->kind);
  schedule();
}

void ZoneLoader::report(const Task& task, const LoadOutcome& outcome) {
  if (stopped_) return;
  QueuedRequest& request = *task->request;
  if (outcome.is_final()) log_warnings(*task, task->warnings);
  if (outcome.is_final() && task->zone) log_warnings(*task, task->zone->warnings);
  const bool is_logged = !request.is_retry || !outcome.waits_for_journal;
  for (const std::string& line : is_logged ? outcome.problems : std::vector<std::string>{})
    log::detail::event(request.problems.level_of_next(log::Level::kError), "zone_not_loaded",
                       "zone", to_text(task->job.apex), "reason", line);
  if (outcome.kind == Kind::kFailed) ++request.failed;
  counters_.hashed += task->hashed;
  counters_.built += task->scanned;
  if (task->touched && outcome.is_final()) {
    ++counters_.renewed;
    record_merge_base(committer_, *task);
  }
  if (task->kind != LoadKind::kJudged) --request.unfinished;
  ++request.finished;
  if (request.on_outcome) request.on_outcome(task->job, outcome);
}

void ZoneLoader::log_progress(LoadProgress::Clock::time_point now) {
  schedule();  // a program that has become slow leaves its place to another one
  for (const auto& load : loads_.due(now)) log_load(*load, now);
  for (const auto& request : queue_.due(now))
    log::info("zones_loading", "finished", request->finished, "under_way", request->unfinished);
}

}  // namespace pando::manager
