#include "manager/zonefile/zone_loader.h"

#include <algorithm>
#include <asio/post.hpp>
#include <utility>

#include "ipc/log.h"
#include "manager/zonefile/load_log.h"

namespace pando::manager {

namespace {

using Kind = LoadOutcome::Kind;

/// False: a later request has taken the job's program away.
bool is_wanted(const LoadTask& task) {
  return !task.request->is_wanted || task.request->is_wanted(task.job);
}

/// Notes the file that is being verified: if the task has the same one, the program goes on.
/// Otherwise a verdict that takes longer than the time between two reloads would never come.
void note_judged_before(const LoadQueue& queue, LoadTask& task) {
  if (!task.job.verifier) return;
  const auto before = queue.judged(task.job.apex);
  task.judging.before = before ? before->judging.file : nullptr;
  task.judging.before_waits = before && before->tries == 0;
  task.handed_over_before = before ? before->handed_over : 0;
}

/// Hands the file of a check over to the task that is being verified, whose program has to see it,
/// because that task's outcome is this one's, too.
void hand_over(const LoadQueue& queue, const LoadTask& check) {
  const auto judged = queue.judged(check.job.apex);
  if (!judged) return;
  judged->handed_hash = check.judging.handed_hash;
  ++judged->handed_over;
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
      pool_(pool),
      store_(store),
      slots_(slots),
      committer_(committer),
      road_(road),
      queue_(threads, [this](dns::NameView zone) { return progress(zone) != nullptr; }),
      steps_(io, store, slots, committer, road, queue_, threads_,
             [this](const Task& task, LoadOutcome outcome) { finish(task, std::move(outcome)); }),
      threads_(io, threads) {
  steps_.set_limits(limits);
}

void ZoneLoader::load(LoadRequest request) {
  queue_.add(std::move(request));
  asio::post(io_, [this] { schedule(); });
}

void ZoneLoader::stop() {
  stopped_ = true;
  steps_.stop();
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
  const bool needs_content_check = first.job.verifier && first.kind != LoadKind::kJudged;
  if (tasks.size() == 1 && !needs_content_check) return steps_.check(tasks.front());
  check_batch(std::make_shared<LoadBatch>(std::move(tasks)));
}

// A batch of zones
// -----------------------------------------------------------------------------------------

void ZoneLoader::check_batch(const Batch& batch) {
  batches_.insert(batch);
  batch->pin(committer_, slots_);
  for (const Task& task : batch->tasks()) note_judged_before(queue_, *task);
  threads_.run(
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
  FileBatch zones = batch->take_new_zones();
  zones.run = [this, batch](auto work, auto then) {
    threads_.run(*batch->tasks().front(), std::move(work), std::move(then));
  };
  road_.submit_file_batch(std::move(zones), [this, batch](const Status& published,
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
    if (task->outcome && task->outcome->kind == Kind::kJudging) hand_over(queue_, *task);
    if (task->outcome && task->outcome->kind == Kind::kUnchanged) withdraw_judged(*task);
    if (!task->outcome) {
      const zone::ZoneView zone = now.zone_at(task->job.apex);
      log_loaded(*task, zone);
      task->outcome = LoadOutcome::of(Kind::kLoaded, zone);
    }
    report(task, *task->outcome);
  }
  queue_.release(kind);
  // Freed in the pool, since freeing built zones takes time.
  if (batch.has_new_zones()) asio::post(pool_, [tasks = std::move(batch.tasks())] {});
  schedule();
}

// Files that programs verify
// -----------------------------------------------------------------------------------------

/// True if the state that a content check relied on has changed since: the task under verification
/// ended, or another version was published. A check that needs a program is outdated if another
/// check has started one meanwhile, because that one must not be superseded for the same file.
bool ZoneLoader::is_outdated(const LoadTask& check) const {
  const Task judged = queue_.judged(check.job.apex);
  if (!check.outcome) return judged && judged->judging.file != check.judging.before;
  if (check.outcome->kind == Kind::kJudging)
    return !judged || judged->judging.file != check.judging.before;
  if (!check.judging.base) return false;
  // A later check has found the file under verification in place again.
  if (judged && judged->judging.file == check.judging.before &&
      judged->handed_over != check.handed_over_before)
    return true;
  if (!judged && progress(check.job.apex)) return true;  // a version is being put
  const zone::ZoneView now = committer_.current().zone_at(check.job.apex);
  return now && now.source().hash != check.judging.base->hash;
}

/// The file equals the served version again, so the version under verification was withdrawn.
void ZoneLoader::withdraw_judged(const LoadTask& unchanged) {
  const Task judged = queue_.judged(unchanged.job.apex);
  if (judged && judged->judging.file == unchanged.judging.before)
    supersede(queue_.take_judged(unchanged.job.apex));
}

/// Content checks may end in another order than their loads began. The outcome belongs to the later
/// load, which was notified of the verification; the earlier load is superseded.
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
  if (is_logged) log_problems(*task, outcome.problems);
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
  schedule();  // a program that has become slow frees its place
  for (const auto& load : steps_.loads().due(now)) manager::log_progress(*load, now);
  for (const auto& request : queue_.due(now))
    log::info("zones_loading", "finished", request->finished, "under_way", request->unfinished);
}

}  // namespace pando::manager
