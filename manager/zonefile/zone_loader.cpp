#include "manager/zonefile/zone_loader.h"

#include <algorithm>
#include <asio/post.hpp>
#include <chrono>

#include "ipc/log.h"

namespace pando::manager {

namespace {

/// Limit of attempts for a zone that changed during the check of its file, in the few cases where
/// the change matters.
constexpr int kMaxTries = 5;

/// Number of zones checked in one batch, by one thread, and put in one version. A task and a
/// version for each zone would cost more than a small zone does.
constexpr std::size_t kTogether = 64;
/// Limits of a batch: time of its check, and file size. A zone with a larger file gets a thread for
/// itself.
constexpr std::chrono::milliseconds kTogetherTime{10};
constexpr std::uint64_t kTogetherBytes = std::uint64_t{256} << 10;

/// Interval of the progress lines of a long batch.
constexpr std::chrono::seconds kTellEvery{10};

std::uint64_t milliseconds_since(std::chrono::steady_clock::time_point start) {
  const auto spent = std::chrono::steady_clock::now() - start;
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(spent).count());
}

}  // namespace

/// One zone being loaded. One thread at a time uses a task: a pool thread during the check, else
/// the commit thread.
struct ZoneLoader::Task : ZoneFileCheck {
  std::shared_ptr<Batch> batch;
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
  int tries = 0;
  shm::SlotTable::OwnPin pin;  // pins the version during the check in the pool
  bool alone = false;          // must be checked alone, not in a batch
  bool notes_later = false;    // the journal failed, so records are added as pending ones

  void look_at(const Committer& committer) {
    version = committer.current();
    position = committer.position();
  }
  [[nodiscard]] bool opens_simply(dns::FileSource& file) const;
  Status examine_among(shm::Transaction& built_in);  // runs in a pool thread
};

/// Opens the file if the file is small and the journal does not know the zone. All other cases, and
/// the reasons of errors, are left to a check alone.
bool ZoneLoader::Task::opens_simply(dns::FileSource& file) const {
  if (job.path.empty() || job.file_optional) return false;
  if (batch->history->any(position)->knows(job.apex)) return false;
  return file.open(job.path) && file.size_hint() <= kTogetherBytes;
}

/// Handles the cheap cases: an unchanged zone, or a small new one. Other zones get `alone`. An
/// error means that the batch's transaction is invalid.
Status ZoneLoader::Task::examine_among(shm::Transaction& built_in) {
  const zone::ZoneView now = live();
  alone = !now;
  if (alone) return {};
  served = now.loaded();
  // A secondary's data comes from its primary; the file is only a copy.
  if (served && job.file_optional) {
    unchanged();
    return {};
  }
  if (served && !job.path.empty() && is_merged(kTogetherBytes)) {
    unchanged();
    return {};
  }
  dns::FileSource file;
  alone = served || !opens_simply(file);
  if (alone) return {};
  ++scanned;
  auto built = build_zone(built_in, job.apex, job.path, file);
  if (!built) return fail(Errc::kInvalid, "{} cannot be read", job.path);
  zone.emplace(std::move(*built));
  return {};
}

ZoneLoader::ZoneLoader(asio::io_context& io, asio::thread_pool& pool, std::size_t threads,
                       shm::Store& store, shm::SlotTable& slots, Committer& committer,
                       LargeChangesets& changes, zone::DataLimits limits)
    : io_(io),
      pool_(pool),
      threads_(std::max<std::size_t>(threads, 1)),
      store_(store),
      slots_(slots),
      committer_(committer),
      changes_(changes),
      limits_(limits) {}

void ZoneLoader::run(Lane lane, Source source, std::shared_ptr<HistorySource> history, Done done,
                     std::function<void()> all_done) {
  auto batch = std::make_shared<Batch>();
  batch->lane = lane;
  batch->source = std::move(source);
  batch->history = std::move(history);
  batch->done = std::move(done);
  batch->all_done = std::move(all_done);
  batches(lane).push_back(std::move(batch));
  asio::post(io_, [this] { fill(); });
}

/// Breaks the cycle of ownership: tasks own their batch, and a batch owns its queued tasks.
ZoneLoader::~ZoneLoader() {
  for (Batches& lane : lanes_)
    for (const std::shared_ptr<Batch>& batch : lane) {
      batch->again.clear();
      batch->waiting.clear();
    }
}

void ZoneLoader::stop() {
  stopped_ = true;
  loads_.give_up();
}

void ZoneLoader::fill() {
  if (stopped_) return;
  const bool copies_first = running(Lane::kCopies) <= running(Lane::kFiles);
  fill(copies_first ? Lane::kCopies : Lane::kFiles);
  fill(copies_first ? Lane::kFiles : Lane::kCopies);
}

/// Each lane may always run one thread, so that large zones in the other lane do not block the
/// lane.
bool ZoneLoader::has_room(Lane lane) {
  return running_[0] + running_[1] < threads_ || running(lane) == 0;
}

/// Starts jobs while threads are free, and ends batches without remaining jobs.
void ZoneLoader::fill(Lane lane) {
  Batches& batches = this->batches(lane);
  for (std::size_t i = 0; i < batches.size() && start_all(batches[i]); ++i) {
  }
  while (!batches.empty() && batches.front()->drained && batches.front()->running == 0) {
    const std::shared_ptr<Batch> batch = batches.front();
    batches.pop_front();
    tell_left_out(*batch);
    if (batch->all_done) batch->all_done();
  }
}

/// True if every available task was started, so a thread may still be free for other batches.
bool ZoneLoader::start_all(const std::shared_ptr<Batch>& batch) {
  while (has_room(batch->lane)) {
    auto tasks = next_tasks(batch);
    if (tasks.empty()) return true;
    start(std::move(tasks));
  }
  return false;
}

/// A second load of the same zone would find the zone changed by the first and would start over.
bool ZoneLoader::must_wait(const Task& task) const {
  return batch_count() > 1 && loads_.find(task.job.apex) != nullptr;
}

/// Tasks for one thread: a task to check alone, or up to kTogether tasks.
std::vector<std::shared_ptr<ZoneLoader::Task>> ZoneLoader::next_tasks(
    const std::shared_ptr<Batch>& batch) const {
  std::vector<std::shared_ptr<Task>> tasks;
  const auto free =
      std::ranges::find_if(batch->waiting, [this](const auto& task) { return !must_wait(*task); });
  if (free != batch->waiting.end()) {
    tasks.push_back(std::move(*free));
    batch->waiting.erase(free);
    return tasks;
  }
  while (!batch->again.empty() && tasks.size() < kTogether) {
    if (batch->again.front()->alone && !tasks.empty()) return tasks;
    tasks.push_back(std::move(batch->again.front()));
    batch->again.pop_front();
    if (tasks.back()->alone) return tasks;
  }
  while (!batch->drained && tasks.size() < kTogether) {
    auto job = batch->source();
    batch->drained = !job;
    if (!job) break;
    ++batch->running;
    auto task = std::make_shared<Task>();
    task->job = std::move(*job);
    task->batch = batch;
    task->history = batch->history;
    (must_wait(*task) ? batch->waiting.emplace_back() : tasks.emplace_back()) = std::move(task);
  }
  return tasks;
}

// Batches of zones
// -----------------------------------------------------------------------------------------

/// A batch of tasks that one pool thread checks one by one. One thread at a time uses a batch.
struct ZoneLoader::Together {
  std::vector<std::shared_ptr<Task>> tasks;
  shm::SlotTable::OwnPin pin;
  std::optional<shm::Transaction> transaction;  // holds the zones of all tasks
  bool invalid = false;  // a build failed, so the whole transaction is unusable

  void examine(shm::Store& store);
  void drop(bool look_alone);
};

void ZoneLoader::start(std::vector<std::shared_ptr<Task>> tasks) {
  ++running(tasks.front()->batch->lane);
  if (tasks.size() == 1) return build(tasks.front());
  auto together = std::make_shared<Together>();
  together->tasks = std::move(tasks);
  look_together(together);
}

void ZoneLoader::Together::examine(shm::Store& store) {
  const auto end = std::chrono::steady_clock::now() + kTogetherTime;
  transaction.emplace(store.begin_private());
  for (const auto& task : tasks) {
    invalid = !task->examine_among(*transaction);
    if (invalid) {
      task->alone = true;
      return;
    }
    if (std::chrono::steady_clock::now() > end) return;
  }
}

/// Discards the built zones, whose tasks are queued again. With `look_alone`, each is checked
/// alone.
void ZoneLoader::Together::drop(bool look_alone) {
  for (const auto& task : tasks) {
    if (!task->zone) continue;
    task->zone.reset();
    task->alone = look_alone;
  }
  transaction.reset();
}

void ZoneLoader::look_together(const std::shared_ptr<Together>& together) {
  for (const auto& task : together->tasks) task->look_at(committer_);
  together->pin = slots_.pin_own(together->tasks.front()->version.version());
  asio::post(pool_, [this, together] {
    together->examine(store_);
    asio::post(io_, [this, together] { looked_together(together); });
  });
}

void ZoneLoader::looked_together(const std::shared_ptr<Together>& together) {
  if (stopped_) return;
  together->pin = {};
  const bool built = std::any_of(together->tasks.begin(), together->tasks.end(),
                                 [](const auto& task) { return task->zone.has_value(); });
  if (built && !together->invalid) return put_together(together);
  together->drop(false);
  finish_together(*together);
}

void ZoneLoader::put_together(const std::shared_ptr<Together>& together) {
  Committer::NewZones zones{{}, std::move(*together->transaction)};
  for (const auto& task : together->tasks)
    if (task->zone) zones.zones.push_back({task->job.apex, task->zone->built, task->zone->source});
  committer_.put_new_zones(std::move(zones), [this, together](const Status& status) {
    // A zone changed, or the store is full: check each zone alone to find out which.
    if (!status) together->drop(true);
    finish_together(*together);
  });
}

/// Reports the decided tasks and queues the others again.
void ZoneLoader::finish_together(Together& together) {
  const zone::StoreView now = committer_.current();
  for (const auto& task : together.tasks) {
    if (!task->zone && !task->outcome) {
      task->batch->again.push_back(task);
      continue;
    }
    if (!task->outcome) {
      const zone::ZoneView live = now.zone_at(task->job.apex);
      log_loaded(*task, live);
      task->outcome = Outcome{Outcome::Kind::kLoaded, live.serial(), live.record_count(), {}};
    }
    report(task, *task->outcome);
  }
  --running(together.tasks.front()->batch->lane);
  // Freed in the pool, since freeing built zones takes time.
  asio::post(pool_, [tasks = std::move(together.tasks)] {});
  fill();
}

// One zone
// -----------------------------------------------------------------------------------------

void ZoneLoader::build(const std::shared_ptr<Task>& task) {
  if (stopped_) return;
  // The zone was dropped (store full or unconfigured; already reported). Finish asynchronously: our
  // caller is iterating the queue.
  if (!committer_.current().zone_at(task->job.apex))
    return asio::post(io_, [this, task] { finish(task, {Outcome::Kind::kAbsent, {}, 0, {}}); });
  ++task->tries;
  if (!task->progress) task->progress = loads_.begin(task->job.apex, LoadProgress::Clock::now());
  task->look_at(committer_);
  task->may_ask_again = task->tries == 1;
  task->pin = slots_.pin_own(task->version.version());
  asio::post(pool_, [this, task] {
    task->examine(store_);
    asio::post(io_, [this, task] { built(task); });
  });
}

void ZoneLoader::built(const std::shared_ptr<Task>& task) {
  if (stopped_) return;
  task->pin = {};
  if (task->moved) return build(task);
  const zone::ZoneView now = committer_.current().zone_at(task->job.apex);
  if (auto outcome = is_stale(*task, now)) return finish(task, std::move(*outcome));
  if (task->outcome) return finish(task, std::move(*task->outcome));
  task->progress->begin(Progress::Phase::kPutting, 0);
  if (task->plan && task->plan->kind == MergePlan::Kind::kMerge)
    merge(task);
  else
    put(task);
}

/// The outcome of a zone that changed its role or got data during the check; nullopt: use the
/// findings.
std::optional<LoadOutcome> ZoneLoader::is_stale(const Task& task, const zone::ZoneView& now) {
  using Kind = Outcome::Kind;
  if (!now) return Outcome{Kind::kAbsent, {}, 0, {}};
  const bool secondary = is_secondary(now);
  // A reload has made the zone primary. The zone's own file decides its data, and has a job of its
  // own.
  if (task.job.file_optional && !secondary) return Outcome{Kind::kAbsent, {}, 0, {}};
  const Outcome unchanged{Kind::kUnchanged, now.serial(), now.record_count(), {}};
  const bool failed = task.outcome && task.outcome->kind == Kind::kFailed;
  // The primary has sent the zone meanwhile, so the unreadable copy does not matter.
  if (task.job.file_optional && now.loaded() && failed) return unchanged;
  // A secondary's data comes from its primary.
  if (!task.job.file_optional && now.loaded() && secondary && !task.outcome) return unchanged;
  return std::nullopt;
}

/// Puts the file's zone whole, unless the zone changed since that decision.
void ZoneLoader::put(const std::shared_ptr<Task>& task) {
  const std::optional<dns::Serial> expected =
      task->plan ? std::optional(task->plan->compared) : std::nullopt;
  const zone::ZoneFileInfo beside = task->plan ? task->plan->beside : zone::ZoneFileInfo{};
  Committer::ZonePut put{
      task->job.apex, task->zone->built, std::move(*task->transaction), task->zone->source, {}, {}};
  auto moved = std::make_shared<bool>(false);
  put.check = [expected, beside, moved,
               copy = task->job.file_optional](const zone::ZoneView& before) -> Status {
    const bool loaded = before && before.loaded();
    *moved = (copy && before && !is_secondary(before)) || loaded != expected.has_value() ||
             (loaded && !(before.serial() == *expected)) ||
             (loaded && !same_source(noted_source(before), beside));
    return *moved ? Status(fail(Errc::kExists, "zone moved")) : Status();
  };
  put.note = [expected, task](std::vector<JournalEntry>& journal, const zone::ZoneView& after) {
    if (!task->notes_later)
      for (JournalEntry& entry : task->zone->journal) journal.push_back(std::move(entry));
    // With equal serials, a replay could not tell the new zone from the old one. A kGone record
    // keeps the old records and images of the zone from being continued.
    const bool same_serial = expected && after.serial() == *expected;
    if (same_serial)
      journal.push_back({task->job.apex, after.serial(), after.serial(), {}, RecordKind::kGone});
    if (!expected || !(task->in_journal || same_serial)) return;
    journal.push_back(base_entry(after));
    journal.push_back(source_entry(task->job.apex, after.serial(), task->zone->source));
  };
  committer_.put_zone(std::move(put), [this, task, expected, moved](const Status& status) {
    if (!status && *moved && task->tries < kMaxTries) return build(task);
    // A zone that could be read is served even if the journal cannot be written.
    if (!status && !*moved && !expected && !task->notes_later && !task->zone->journal.empty()) {
      log::error("zone_not_noted", "zone", to_text(task->job.apex), "reason", status.error().text);
      task->notes_later = true;
      return build(task);
    }
    if (!status) return finish(task, {Outcome::Kind::kFailed, {}, 0, {status.error().text}});
    if (task->notes_later && !task->zone->journal.empty())
      committer_.add_pending(task->job.apex, std::move(task->zone->journal));
    const zone::ZoneView live = committer_.current().zone_at(task->job.apex);
    log_loaded(*task, live);
    // A secondary's copy may be newer than the changesets, so skipped ones are normal.
    if (task->zone->skipped > 0 && !task->job.file_optional)
      log::warning("updates_not_applied", "zone", to_text(task->job.apex), "changesets",
                   task->zone->skipped, "reason",
                   "the journal no longer tells what came by update, and the serials do not fit");
    const auto kind = task->served ? Outcome::Kind::kReplaced : Outcome::Kind::kLoaded;
    finish(task, {kind, live.serial(), live.record_count(), {}});
  });
}

void ZoneLoader::log_loaded(const Task& task, const zone::ZoneView& live) {
  const auto level = task.batch->loaded.level_of_next(log::Level::kInfo);
  if (!log::enabled(level)) return;
  log::detail::event(level, "zone_loaded", "zone", to_text(task.job.apex), "serial",
                     live.serial().value, "records", live.record_count(), "ms",
                     milliseconds_since(task.start), "updated", task.zone->updated, "replayed",
                     task.zone->replayed, "skipped", task.zone->skipped);
}

/// Result of a merge, for log lines and the outcome.
struct ZoneLoader::Merged {
  dns::Serial from;
  dns::Serial to;
  std::size_t added = 0;
  std::size_t removed = 0;
  std::string apart;  // line for the operator about edits that updates overrode
  bool moved = false;
};

namespace {

/// Line for the operator about records that differ from the file.
std::string line_of(const Steps& apart) {
  constexpr std::size_t kMostNamed = 10;
  if (apart.empty()) return {};
  std::string named;
  std::size_t count = 0;
  for (auto at = apart.begin(); at != apart.end() && count < kMostNamed; ++at, ++count)
    named += fmt::format("{}{} {}{}", count == 0 ? "" : ", ", to_text(at->first.owner()),
                         dns::to_text(at->first.type()), at->second.after ? "" : " (removed)");
  return fmt::format(
      "{} records are not served as the file has them, since updates came for them: {}{}",
      apart.size(), named, count < apart.size() ? ", ..." : "");
}

}  // namespace

/// Applies the file's edit and records the file as the merge base in one step.
void ZoneLoader::merge(const std::shared_ptr<Task>& task) {
  auto merged = std::make_shared<Merged>();
  ZoneChange change;
  change.zone = task->job.apex;
  change.records = task->plan->record_count();
  change.stage = [task, merged, limits = limits_](Stage& stage) -> Status {
    auto staged = stage_merge(stage, *task->plan, limits);
    merged->moved = !staged && staged.error().code == Errc::kExists;
    if (!staged) return pass(staged);
    const zone::Applied& applied = staged->applied;
    *merged = {applied.from, applied.to, applied.effective.added.size(),
               applied.effective.removed.size(), line_of(staged->apart)};
    return {};
  };
  change.done = [this, task, merged](const Result<std::uint64_t>& version) {
    if (!version && merged->moved && task->tries < kMaxTries) return build(task);
    if (!version)
      return finish(task, {Outcome::Kind::kFailed,
                           {},
                           0,
                           {fmt::format("{}: {}", task->job.path, version.error().text)}});
    const zone::ZoneView live = committer_.current().zone_at(task->job.apex);
    const bool changed = merged->added + merged->removed > 0;
    if (changed)
      log::info("zone_merged", "zone", to_text(task->job.apex), "from", merged->from.value,
                "serial", merged->to.value, "added", merged->added, "removed", merged->removed,
                "ms", milliseconds_since(task->start));
    if (!merged->apart.empty())
      task->warnings.push_back(fmt::format("{}: {}", task->job.path, merged->apart));
    finish(task, {changed ? Outcome::Kind::kChanged : Outcome::Kind::kUnchanged,
                  live.serial(),
                  live.record_count(),
                  {}});
  };
  changes_.submit(std::move(change));
}

/// Records the new time and stamp of an unchanged file, so that the next check need not read the
/// file. The commit is not awaited: if the store is full, the next check just reads the file again.
void ZoneLoader::renew(const Task& task) {
  committer_.edit(
      [apex = task.job.apex, touched = *task.touched](zone::Draft& draft) -> Status {
        const zone::ZoneView live = draft.snapshot().zone_at(apex);
        if (!live || !live.loaded() || !(noted_source(live) == touched.before)) return {};
        return draft.put_zone_source(apex, touched.now);
      },
      [apex = task.job.apex](const Status& status) {
        if (!status)
          log::warning("file_not_noted", "zone", to_text(apex), "reason", status.error().text);
      },
      shm::Reserve::kHalf);
}

void ZoneLoader::finish(const std::shared_ptr<Task>& task, Outcome outcome) {
  task->progress.reset();
  report(task, outcome);
  // Freed in the pool, since freeing the file's zone and the plan may take a while.
  asio::post(pool_, [zone = std::move(task->zone), plan = std::move(task->plan),
                     built_in = std::move(task->transaction)] {});
  --running(task->batch->lane);
  fill();
}

void ZoneLoader::tell_progress(LoadProgress::Clock::time_point now) {
  using std::chrono::duration_cast;
  using std::chrono::seconds;
  for (const auto& load : loads_.due(now)) {
    const Progress::Seen seen = load->seen();
    const auto spent = duration_cast<seconds>(now - load->start).count();
    if (const auto percent = seen.percent())
      log::info("zone_loading", "zone", to_text(load->zone), "phase", to_text(seen.phase),
                "percent", *percent, "done", seen.done, "total", seen.total, "s", spent);
    else
      log::info("zone_loading", "zone", to_text(load->zone), "phase", to_text(seen.phase), "done",
                seen.done, "s", spent);
  }
  for (const Batches& batches : lanes_)
    for (const auto& batch : batches) {
      if (now - batch->told < kTellEvery) continue;
      batch->told = now;
      log::info("zones_loading", "finished", batch->finished, "under_way", batch->running);
    }
}

void ZoneLoader::report(const std::shared_ptr<Task>& task, const Outcome& outcome) {
  if (stopped_) return;
  Batch& batch = *task->batch;
  const auto warn = [&](const std::vector<std::string>& warnings) {
    for (const std::string& warning : warnings)
      log::detail::event(batch.warnings.level_of_next(log::Level::kWarning), "zone_file", "zone",
                         to_text(task->job.apex), "text", warning);
  };
  warn(task->warnings);
  if (task->zone) warn(task->zone->warnings);
  for (const std::string& line : outcome.problems)
    log::detail::event(batch.problems.level_of_next(log::Level::kError), "zone_not_loaded", "zone",
                       to_text(task->job.apex), "reason", line);
  if (outcome.kind == Outcome::Kind::kFailed) ++batch.failed;
  counters_.hashed += task->hashed;
  counters_.built += task->scanned;
  if (task->touched) {
    ++counters_.renewed;
    renew(*task);
  }
  --batch.running;
  ++batch.finished;
  if (batch.done) batch.done(task->job, outcome);
}

void ZoneLoader::tell_left_out(const Batch& batch) {
  if (batch.problems.left_out() > 0)
    log::error("zones_not_loaded", "zones", batch.failed, "lines_left_out",
               batch.problems.left_out());
  if (batch.warnings.left_out() > 0)
    log::warning("zone_files", "lines_left_out", batch.warnings.left_out());
}

}  // namespace pando::manager
