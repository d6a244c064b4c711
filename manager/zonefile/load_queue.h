#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "manager/change/zone_change.h"
#include "manager/commit/committer.h"
#include "manager/support/rate_limited_log.h"
#include "manager/zonefile/zone_file_check.h"
#include "shm/slots.h"

namespace pando::manager {

/// Copies of secondaries, whose primaries are asked after the check, and all other files. Each kind
/// may always use one thread, so that large zones of the other kind do not block it. Requests are
/// never of kJudged: tasks become so when the operator's program has to verify a changed file, and
/// use threads that wait for programs.
enum class LoadKind : std::uint8_t { kCopies, kFiles, kJudged };

/// A request to bring many zones in line with their files.
struct LoadRequest {
  LoadKind kind = LoadKind::kFiles;
  /// Supplies jobs, nullopt at the end. Called only when a thread is free, so a million zones need
  /// no list here.
  std::function<std::optional<LoadJob>()> next_job;
  std::shared_ptr<HistorySource> history;  ///< for zones without data or with a changed file
  /// For each job; may be empty.
  std::function<void(const LoadJob&, const LoadOutcome&)> on_outcome{};
  std::function<void()> on_end{};  ///< after the last outcome without a program; may be empty
  /// The zones waited for the journal; zones that go on waiting are not logged again.
  bool is_retry = false;
  /// For each job whose program has to judge a new version; may be empty. No later request waits
  /// for such a job, and neither does on_end: its outcome may come after it.
  std::function<void(const LoadJob&)> on_judging{};
  /// Whether a verdict on the job still matters, asked before its program judges; empty: it does.
  /// A job that does not matter any more is superseded.
  std::function<bool(const LoadJob&)> is_wanted{};
};

/// A request in the queue.
struct QueuedRequest : LoadRequest {
  std::uint64_t number = 0;    ///< later requests have higher ones
  bool is_drained = false;     ///< `next_job` has no more
  std::size_t unfinished = 0;  ///< jobs taken from `next_job`, unfinished, and not of kJudged
  std::uint64_t finished = 0;
  std::uint64_t failed = 0;
  LogLimit loaded{};
  LogLimit problems{};
  LogLimit warnings{};
  LoadProgress::Clock::time_point logged_at = LoadProgress::Clock::now();  ///< last progress line
};

/// One zone being loaded. One thread at a time uses a task: during the check a thread of
/// LoadThreads, or of the verifiers for kJudged; else the commit thread.
struct LoadTask : ZoneFileCheck {
  std::shared_ptr<QueuedRequest> request;
  LoadKind kind = LoadKind::kFiles;  ///< of the threads that it uses
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
  int tries = 0;
  shm::SlotTable::OwnPin pin;    ///< pins the version during the check
  bool is_alone = false;         ///< must be checked alone, not in a batch
  bool journal_pending = false;  ///< the journal failed, so records are added as pending ones
  bool is_superseded = false;    ///< of kJudged: the verdict does not matter any more
  bool is_first = false;         ///< of kJudged: the zone had no data
  /// Of kJudged: hash of the file that a later check handed over to this task; 0: none.
  std::uint64_t handed_hash = 0;
  std::uint64_t handed_over = 0;  ///< of kJudged: number of checks that handed their file over
  std::uint64_t handed_over_before = 0;  ///< of a content check: that number at its begin

  /// Sets the version and the journal position that the file is compared with.
  void use_current(const Committer& committer) {
    version = committer.current();
    position = committer.position();
  }
};
using LoadTasks = std::vector<std::shared_ptr<LoadTask>>;

/// Tasks that one thread checks one by one, and whose new zones are put in one version. A
/// thread and a version for each zone would cost more than a small zone does.
class LoadBatch {
 public:
  /// Limit of the time of a batch's check: some 100 small new zones, which become one version.
  /// The other tasks are queued again.
  static constexpr std::chrono::milliseconds kMaxTime{4};

  explicit LoadBatch(LoadTasks tasks) : tasks_(std::move(tasks)) {}

  /// Pins the version that all tasks are compared with.
  void pin(const Committer& committer, shm::SlotTable& slots);
  void unpin() { pin_ = {}; }
  /// Checks the tasks for a zone without change or a small new zone, beside the commit thread.
  /// Other zones get LoadTask::is_alone. In a batch of one task a large file of a zone with a
  /// program has its content checked, too.
  void check(shm::Store& store);
  /// Ends such a check soon. By any thread.
  void give_up() noexcept { progress_.give_up(); }
  /// Whether there are zones for take_new_zones().
  [[nodiscard]] bool has_new_zones() const noexcept;
  [[nodiscard]] FileBatch take_new_zones();
  /// Discards the new zones, whose tasks stay without outcome. With `check_alone`, each is checked
  /// alone.
  void discard_new_zones(bool check_alone);
  /// Has these zones, which had no outcome, checked alone.
  void check_alone(const std::vector<dns::Name>& zones);
  [[nodiscard]] LoadTasks& tasks() noexcept { return tasks_; }

 private:
  LoadTasks tasks_;
  shm::SlotTable::OwnPin pin_;
  std::optional<shm::Transaction> transaction_;  // holds the new zones of all tasks
  Progress progress_;
  bool is_invalid_ = false;  // a build failed, so the whole transaction is unusable
};

/// The queue of zones to load, bounded by threads: a job is taken from its request only when a
/// thread is free for the job. Lives on the commit thread.
class LoadQueue {
 public:
  /// Number of tasks in a batch. The commit thread takes a millisecond for the jobs and outcomes of
  /// so many unchanged zones, so it turns to updates in time.
  static constexpr std::size_t kBatchTasks = 512;
  /// Leaves threads to transfers, however many programs of files hang.
  static constexpr std::size_t kMaxJudged = ProgramPlaces::kThreads / 2;
  using IsLoading = std::function<bool(dns::NameView zone)>;

  /// At most `threads` threads are busy at once, and one more if its kind has none busy. Tasks of
  /// kJudged have limits of their own: ProgramPlaces::kAtOnce without slow programs, and
  /// kMaxJudged in all. `is_loading`: whether a task that was taken from the queue loads the zone
  /// alone.
  LoadQueue(std::size_t threads, IsLoading is_loading)
      : threads_(std::max<std::size_t>(threads, 1)), is_loading_(std::move(is_loading)) {}

  /// Requests of a kind are drained, and end, in order.
  void add(LoadRequest request);
  /// The kinds, the one with fewer busy threads first, and kJudged last.
  [[nodiscard]] std::array<LoadKind, 3> kinds() const noexcept;
  /// Work for one free thread, which is busy until release(): a task to check alone, or a batch.
  /// Empty: no thread is free for this kind, or all tasks have begun. A zone that an earlier
  /// request is still loading waits, because a second load would find the zone changed by the first
  /// and would start over.
  [[nodiscard]] LoadTasks next(LoadKind kind);
  /// Queues a task again, before new jobs.
  void check_again(std::shared_ptr<LoadTask> task);
  void release(LoadKind kind) noexcept { --of(kind).busy; }

  /// Makes the task one of kJudged. No other task of its zone may be (take_judged()).
  void judge(const std::shared_ptr<LoadTask>& task);
  /// The zone's task whose program has to verify the file, or does so now; null: none.
  [[nodiscard]] std::shared_ptr<LoadTask> judged(dns::NameView zone) const;
  /// Returns that task and forgets it: it has its verdict, or needs none. Without a thread yet it
  /// gets none.
  std::shared_ptr<LoadTask> take_judged(dns::NameView zone);
  /// A task of kJudged is to be checked once more. False: another one has taken its place.
  [[nodiscard]] bool judge_again(const std::shared_ptr<LoadTask>& task);
  /// The thread of a task of kJudged is free.
  void release_judged(const LoadTask& task);
  /// Calls for each task of judged().
  void for_each_judged(const std::function<void(const LoadTask&)>& visit) const;
  /// Number of zones without data among them.
  [[nodiscard]] std::size_t first_judged() const noexcept { return first_judged_; }
  /// Removes and returns the oldest request of the kind if its last job is finished; else null.
  [[nodiscard]] std::shared_ptr<QueuedRequest> take_ended(LoadKind kind);
  [[nodiscard]] bool is_empty() const noexcept { return request_count() == 0; }
  /// Requests that are due for a progress line: each once in ten seconds.
  [[nodiscard]] std::vector<std::shared_ptr<const QueuedRequest>> due(
      LoadProgress::Clock::time_point now);

 private:
  struct OfKind {
    std::deque<std::shared_ptr<QueuedRequest>> requests;
    std::deque<std::shared_ptr<LoadTask>> again;
    std::deque<std::shared_ptr<LoadTask>> blocked;  // zones that another request is loading
    std::size_t busy = 0;                           // threads
  };
  [[nodiscard]] OfKind& of(LoadKind kind) { return kinds_[static_cast<std::size_t>(kind)]; }
  [[nodiscard]] std::size_t request_count() const noexcept {
    return kinds_[0].requests.size() + kinds_[1].requests.size() + kinds_[2].requests.size();
  }
  [[nodiscard]] bool has_free_thread(LoadKind kind);
  [[nodiscard]] bool is_blocked(const LoadTask& task) const;
  [[nodiscard]] LoadTasks next_tasks(OfKind& queue) const;
  [[nodiscard]] static LoadTasks take_again(std::deque<std::shared_ptr<LoadTask>>& again);
  void take_new(OfKind& queue, const std::shared_ptr<QueuedRequest>& request,
                LoadTasks& tasks) const;
  [[nodiscard]] LoadTasks next_judged();
  void forget_judged(std::map<std::string, std::shared_ptr<LoadTask>>::iterator at);

  std::size_t threads_;
  IsLoading is_loading_;
  std::array<OfKind, 3> kinds_;
  std::map<std::string, std::shared_ptr<LoadTask>> judged_;  // by folded name
  LoadTasks running_;                                        // of kJudged, with a thread
  std::size_t first_judged_ = 0;
  std::uint64_t requests_ = 0;  // in all
};

}  // namespace pando::manager
