#include "manager/zonefile/load_queue.h"

#include <utility>

#include "dns/folded_key.h"

namespace pando::manager {

namespace {

/// Interval of the progress lines of a request.
constexpr std::chrono::seconds kLogEvery{10};

}  // namespace

// A batch
// -----------------------------------------------------------------------------------------

void LoadBatch::pin(const Committer& committer, shm::SlotTable& slots) {
  for (const auto& task : tasks_) task->use_current(committer);
  pin_ = slots.pin_own(tasks_.front()->version.version());
}

void LoadBatch::check(shm::Store& store) {
  const auto end = std::chrono::steady_clock::now() + kMaxTime;
  transaction_.emplace(store.begin_private());
  const Progress::Scope scope(&progress_);
  for (const auto& task : tasks_) {
    const auto found = task->job.verifier ? task->check_content(tasks_.size() == 1)
                                          : task->check_simple(*transaction_);
    task->is_alone = found != ZoneFileCheck::Simple::kFound;
    is_invalid_ = found == ZoneFileCheck::Simple::kFailed;
    if (is_invalid_ || std::chrono::steady_clock::now() > end) return;
  }
}

bool LoadBatch::has_new_zones() const noexcept {
  return !is_invalid_ && std::any_of(tasks_.begin(), tasks_.end(),
                                     [](const auto& task) { return task->zone.has_value(); });
}

FileBatch LoadBatch::take_new_zones() {
  FileBatch zones{{}, std::move(*transaction_)};
  for (const auto& task : tasks_)
    if (task->zone)
      zones.zones.push_back(
          {task->job.apex, task->zone->built, task->zone->source, task->judges().signatures});
  return zones;
}

void LoadBatch::check_alone(const std::vector<dns::Name>& zones) {
  for (const auto& task : tasks_)
    if (std::ranges::find(zones, task->job.apex) != zones.end()) task->is_alone = true;
}

void LoadBatch::discard_new_zones(bool check_alone) {
  for (const auto& task : tasks_) {
    if (!task->zone) continue;
    task->zone.reset();
    task->is_alone = check_alone;
  }
  transaction_.reset();
}

// The queue
// -----------------------------------------------------------------------------------------

void LoadQueue::add(LoadRequest request) {
  const auto queued = std::make_shared<QueuedRequest>(std::move(request));
  queued->number = ++requests_;
  of(queued->kind).requests.push_back(queued);
}

std::array<LoadKind, 3> LoadQueue::kinds() const noexcept {
  if (kinds_[0].busy <= kinds_[1].busy)
    return {LoadKind::kCopies, LoadKind::kFiles, LoadKind::kJudged};
  return {LoadKind::kFiles, LoadKind::kCopies, LoadKind::kJudged};
}

bool LoadQueue::has_free_thread(LoadKind kind) {
  if (kind == LoadKind::kJudged) {
    const auto slow = std::ranges::count_if(running_, [](const auto& task) {
      return task->job.verifier && task->job.verifier->is_slow(task->job.apex);
    });
    const std::size_t busy = running_.size();
    return busy < kMaxJudged && busy - static_cast<std::size_t>(slow) < ProgramPlaces::kAtOnce;
  }
  return kinds_[0].busy + kinds_[1].busy < threads_ || of(kind).busy == 0;
}

LoadTasks LoadQueue::next(LoadKind kind) {
  if (!has_free_thread(kind)) return {};
  if (kind == LoadKind::kJudged) return next_judged();
  LoadTasks tasks = next_tasks(of(kind));
  if (!tasks.empty()) ++of(kind).busy;
  return tasks;
}

/// A single request has each zone only once. A content check publishes nothing, so it may run
/// beside the zone's program. It waits while the program's version is published, because it would
/// compare the file with the version before.
bool LoadQueue::is_blocked(const LoadTask& task) const {
  const bool may_load = request_count() > 1 || !running_.empty();
  if (!may_load || !is_loading_(task.job.apex)) return false;
  const bool is_content_check = task.job.verifier && task.kind != LoadKind::kJudged;
  return !(is_content_check && judged(task.job.apex));
}

LoadTasks LoadQueue::next_tasks(OfKind& queue) const {
  const auto free =
      std::ranges::find_if(queue.blocked, [this](const auto& task) { return !is_blocked(*task); });
  if (free != queue.blocked.end()) {
    LoadTasks tasks{std::move(*free)};
    queue.blocked.erase(free);
    return tasks;
  }
  LoadTasks tasks = take_again(queue.again);
  if (!tasks.empty() && (tasks.front()->is_alone || !queue.again.empty())) return tasks;
  for (const auto& request : queue.requests) {
    take_new(queue, request, tasks);
    if (!tasks.empty()) return tasks;
  }
  return tasks;
}

/// A task to check alone, or the tasks before the next such task.
LoadTasks LoadQueue::take_again(std::deque<std::shared_ptr<LoadTask>>& again) {
  LoadTasks tasks;
  while (!again.empty() && tasks.size() < kBatchTasks) {
    const bool is_alone = again.front()->is_alone;
    if (is_alone && !tasks.empty()) break;
    tasks.push_back(std::move(again.front()));
    again.pop_front();
    if (is_alone) break;
  }
  return tasks;
}

/// Fills `tasks` to a batch with jobs of the request.
void LoadQueue::take_new(OfKind& queue, const std::shared_ptr<QueuedRequest>& request,
                         LoadTasks& tasks) const {
  while (!request->is_drained && tasks.size() < kBatchTasks) {
    auto job = request->next_job();
    request->is_drained = !job;
    if (!job) return;
    ++request->unfinished;
    auto task = std::make_shared<LoadTask>();
    task->job = std::move(*job);
    task->request = request;
    task->kind = request->kind;
    task->history = request->history;
    (is_blocked(*task) ? queue.blocked.emplace_back() : tasks.emplace_back()) = std::move(task);
  }
}

void LoadQueue::check_again(std::shared_ptr<LoadTask> task) {
  OfKind& queue = of(task->kind);
  (is_blocked(*task) ? queue.blocked : queue.again).push_back(std::move(task));
}

// Tasks of kJudged
// -----------------------------------------------------------------------------------------

void LoadQueue::judge(const std::shared_ptr<LoadTask>& task) {
  task->kind = LoadKind::kJudged;
  --task->request->unfinished;
  judged_.insert_or_assign(dns::folded_key(task->job.apex), task);
  if (task->is_first) ++first_judged_;
  of(LoadKind::kJudged).again.push_back(task);
}

/// The first task whose zone is free, because the zone's task before may be about to end.
LoadTasks LoadQueue::next_judged() {
  auto& waiting = of(LoadKind::kJudged).again;
  const auto is_gone = [this](const auto& task) { return judged(task->job.apex) != task; };
  while (!waiting.empty() && is_gone(waiting.front())) waiting.pop_front();
  // Superseded tasks are removed once they are the majority.
  if (waiting.size() > 2 * judged_.size()) std::erase_if(waiting, is_gone);
  const auto free = std::ranges::find_if(
      waiting, [&](const auto& task) { return !is_gone(task) && !is_blocked(*task); });
  if (free == waiting.end()) return {};
  LoadTasks tasks{std::move(*free)};
  waiting.erase(free);
  running_.push_back(tasks.front());
  return tasks;
}

std::shared_ptr<LoadTask> LoadQueue::judged(dns::NameView zone) const {
  if (judged_.empty()) return nullptr;
  const auto found = judged_.find(dns::folded_key(zone));
  return found == judged_.end() ? nullptr : found->second;
}

void LoadQueue::forget_judged(std::map<std::string, std::shared_ptr<LoadTask>>::iterator at) {
  if (at->second->is_first) --first_judged_;
  judged_.erase(at);
}

std::shared_ptr<LoadTask> LoadQueue::take_judged(dns::NameView zone) {
  if (judged_.empty()) return nullptr;
  const auto found = judged_.find(dns::folded_key(zone));
  if (found == judged_.end()) return nullptr;
  std::shared_ptr<LoadTask> task = found->second;
  forget_judged(found);
  return task;
}

bool LoadQueue::judge_again(const std::shared_ptr<LoadTask>& task) {
  const auto [at, is_new] = judged_.try_emplace(dns::folded_key(task->job.apex), task);
  if (is_new && task->is_first) ++first_judged_;
  return at->second == task;
}

void LoadQueue::release_judged(const LoadTask& task) {
  std::erase_if(running_, [&](const auto& one) { return one.get() == &task; });
}

void LoadQueue::for_each_judged(const std::function<void(const LoadTask&)>& visit) const {
  for (const auto& [key, task] : judged_) visit(*task);
}

std::shared_ptr<QueuedRequest> LoadQueue::take_ended(LoadKind kind) {
  auto& requests = of(kind).requests;
  if (requests.empty() || !requests.front()->is_drained || requests.front()->unfinished > 0)
    return nullptr;
  auto ended = std::move(requests.front());
  requests.pop_front();
  return ended;
}

std::vector<std::shared_ptr<const QueuedRequest>> LoadQueue::due(
    LoadProgress::Clock::time_point now) {
  std::vector<std::shared_ptr<const QueuedRequest>> found;
  for (const OfKind& queue : kinds_)
    for (const auto& request : queue.requests) {
      if (now - request->logged_at < kLogEvery) continue;
      request->logged_at = now;
      found.push_back(request);
    }
  return found;
}

}  // namespace pando::manager
