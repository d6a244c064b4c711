#include "manager/zonefile/zone_load_steps.h"

#include <asio/post.hpp>
#include <utility>

#include "base/steady_time.h"
#include "dns/dnssec/nsec3_hash.h"
#include "ipc/log.h"
#include "manager/zonefile/load_log.h"

namespace pando::manager {

namespace {

using Kind = LoadOutcome::Kind;

/// Limit of attempts for a zone that changed during the check of its file, in the few cases where
/// the change matters.
constexpr int kMaxTries = 5;

LoadOutcome failed(std::string problem) { return {Kind::kFailed, {}, 0, {std::move(problem)}}; }

/// Warns of an NSEC3 chain with iterations, which RFC 9276 §3.1 advises against.
void doubt_iterations(LoadTask& task, const zone::ZoneView& live) {
  if (live.denial() != zone::Denial::kNsec3) return;
  auto doubt = dns::doubt_about_iterations(live.nsec3_parameters().iterations);
  if (!doubt.empty()) task.warnings.push_back(std::move(doubt));
}

/// True if a later check handed its file to this task, and the program has not seen that file: the
/// file was changed and put back, or touched while it was read.
bool has_to_read_again(LoadTask& judged) {
  const std::uint64_t handed = std::exchange(judged.handed_hash, 0);
  return handed != 0 && handed != judged.judging.shown && judged.tries < kMaxTries;
}

}  // namespace

ZoneLoadSteps::ZoneLoadSteps(asio::io_context& io, shm::Store& store, shm::SlotTable& slots,
                             Committer& committer, ChangeRoad& road, LoadQueue& queue,
                             LoadTaskThreads& threads, Finished finished)
    : io_(io),
      store_(store),
      slots_(slots),
      committer_(committer),
      road_(road),
      queue_(queue),
      threads_(threads),
      finished_(std::move(finished)) {}

void ZoneLoadSteps::stop() {
  stopped_ = true;
  loads_.give_up();
}

void ZoneLoadSteps::check(const Task& task) {
  if (stopped_) return;
  // The zone was dropped (store full or unconfigured; already reported). Finish asynchronously: our
  // caller is iterating the queue.
  if (!committer_.current().zone_at(task->job.apex))
    return asio::post(io_, [this, task] { finished_(task, {Kind::kAbsent, {}, 0, {}}); });
  if (task->kind == LoadKind::kJudged && !queue_.judge_again(task))
    return asio::post(io_, [this, task] { finished_(task, {Kind::kSuperseded, {}, 0, {}}); });
  ++task->tries;
  if (!task->progress) task->progress = loads_.begin(task->job.apex, LoadProgress::Clock::now());
  task->use_current(committer_);
  task->may_ask_again = task->tries == 1;
  task->pin = slots_.pin_own(task->version.version());
  threads_.run(*task, [this, task] { task->run(store_); }, [this, task] { commit(task); });
}

/// Hands the findings of a check to the road of changes, if there is anything to put.
void ZoneLoadSteps::commit(const Task& task) {
  if (stopped_) return;
  task->pin = {};
  const bool has_data = !task->is_superseded && !task->check_again && !task->outcome;
  const bool is_judged_next = has_data && task->judges();
  if (!is_judged_next && !may_put(*task)) return finish_or_check_again(task);
  if (task->plan && task->plan->kind == MergePlan::Kind::kMerge)
    merge(task);
  else
    replace(task);
}

/// After the verdicts, or without judges: whether the findings are still to be published. Else the
/// task has an outcome, or is to be checked again.
bool ZoneLoadSteps::may_put(LoadTask& task) {
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

void ZoneLoadSteps::finish_or_check_again(const Task& task) {
  if (task->check_again) return check(task);
  finished_(task, std::move(*task->outcome));
}

/// Submits a change with the judges of its file.
void ZoneLoadSteps::submit(const Task& task, ZoneChange change) {
  change.judges = task->judges();
  if (change.judges) {
    change.progress = task->progress;
    change.judges.run = [this, task](auto work, auto then) {
      threads_.run(*task, std::move(work), std::move(then));
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
    if (task->check_again || task->outcome) return finish_or_check_again(task);
    done(outcome);
  };
  road_.submit(std::move(change));
}

void ZoneLoadSteps::replace(const Task& task) {
  auto replacement = std::make_shared<ZoneReplacement>(task, task->journal_pending);
  ZoneChange change = ZoneReplacement::change(replacement);
  change.done = [this, task, replacement](const Result<ChangeOutcome>& outcome) {
    const Status committed = status_of(outcome);
    replaced(task, replacement->after(committed), committed);
  };
  submit(task, std::move(change));
}

void ZoneLoadSteps::replaced(const Task& task, ZoneReplacement::Next next,
                             const Status& committed) {
  using Next = ZoneReplacement::Next;
  if (next == Next::kServe) return serve(task);
  if (next == Next::kCheckAgain && task->tries < kMaxTries) return check(task);
  if (next != Next::kPutWithoutJournal) return finished_(task, failed(committed.error().text));
  log::error("zone_not_journaled", "zone", to_text(task->job.apex), "reason",
             committed.error().text);
  task->journal_pending = true;
  check(task);
}

/// Reports a zone that was put whole.
void ZoneLoadSteps::serve(const Task& task) {
  const zone::ZoneView live = committer_.current().zone_at(task->job.apex);
  doubt_iterations(*task, live);
  log_loaded(*task, live);
  // A secondary's copy may be newer than the changesets, so skipped ones are normal.
  if (task->zone->skipped > 0 && !task->job.file_optional)
    log::warning("updates_not_applied", "zone", to_text(task->job.apex), "changesets",
                 task->zone->skipped, "reason",
                 "the journal no longer tells what came by update, and the serials do not fit");
  finished_(task, LoadOutcome::of(task->served ? Kind::kReplaced : Kind::kLoaded, live));
}

/// Applies the file's edit and records the file as the merge base in one step.
void ZoneLoadSteps::merge(const Task& task) {
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
      return finished_(task, failed(fmt::format("{}: {}", task->job.path, outcome.error().text)));
    merged(task, outcome->applied, *overridden);
  };
  if (task->zone) change.judged_data = task->zone->built;
  submit(task, std::move(change));
}

void ZoneLoadSteps::merged(const Task& task, const zone::Applied& applied,
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
  finished_(task, LoadOutcome::of(has_changes ? Kind::kChanged : Kind::kUnchanged, live));
}

}  // namespace pando::manager
