#include "manager/zone_loader.h"

#include <asio/post.hpp>
#include <chrono>

#include "ipc/log.h"
#include "manager/soa.h"
#include "manager/zone_diff.h"

namespace pando::manager {

namespace {

/// How often a zone that moved while its file was read is compared again, before the difference is
/// applied to whatever the zone has become.
constexpr int kMaxComparisons = 3;

/// A batch says this much about single zones; behind that each gets a line at debug level only.
constexpr std::uint64_t kMaxZoneLines = 1000;

std::uint64_t milliseconds_since(std::chrono::steady_clock::time_point start) {
  const auto spent = std::chrono::steady_clock::now() - start;
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(spent).count());
}

}  // namespace

/// One zone on its way. Touched by one thread at a time.
struct ZoneLoader::Task {
  Job job;
  std::shared_ptr<Batch> batch;
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
  int comparisons = 0;
  // The version it is compared with, held while a pool thread reads it.
  zone::Snapshot version;
  shm::SlotTable::OwnPin pin;
  // What the pool thread found.
  std::optional<BuiltZone> zone;
  std::optional<zone::Record> soa;  // of the file
  std::optional<zone::Changes> changes;
  bool differs = false;
  std::optional<Outcome> outcome;  // decided already: nothing to put

  // In a pool thread.
  void examine(shm::Store& store);
  void build_and_compare(shm::Store& store, const JournalHistory* journal);
  void compare(const zone::ZoneView& fresh);
  [[nodiscard]] zone::ZoneView live() const { return version.zone_at(job.apex); }
  void fail_with(std::vector<std::string> lines) {
    outcome = Outcome{Outcome::Kind::kFailed, {}, 0, std::move(lines)};
  }
};

void ZoneLoader::Task::examine(shm::Store& store) {
  const auto source = job.path.empty() ? std::nullopt : stat_source(job.path);
  const bool served = live() && live().loaded();
  const auto history = served ? nullptr : batch->history->get();
  const bool same_file = served && source && source->file_mtime_ns == live().source_mtime_ns() &&
                         source->file_octets == live().source_octets();
  if (same_file)
    outcome = Outcome{Outcome::Kind::kUnchanged, live().serial(), live().record_count(), {}};
  else if (!source && job.file_optional && (served || !history || !history->has_whole(job.apex)))
    outcome = Outcome{Outcome::Kind::kAbsent, {}, 0, {}};
  else
    build_and_compare(store, history.get());
}

void ZoneLoader::Task::build_and_compare(shm::Store& store, const JournalHistory* journal) {
  auto built = build_zone(store, job.apex, job.path, journal);
  if (!built) return fail_with(std::move(built.error().lines));
  zone.emplace(std::move(*built));
  if (!live() || !live().loaded()) return;
  // A look at the built zone through a draft of its own that nobody else will see.
  shm::Transaction scratch = store.begin_private();
  zone::Draft draft(scratch, {}, 0);
  auto put = draft.put_zone_settings(job.apex, {}, 0);
  if (put) put = draft.put_zone(job.apex, *zone->built, {});
  if (!put) return fail_with({put.error().text});
  compare(draft.snapshot().zone_at(job.apex));
}

namespace {

/// True when two SOA records say the same but for a serial that is not ahead.
bool same_soa(const zone::Record& live, const zone::Record& file) {
  Bytes rdata = file.rdata;
  set_soa_serial(rdata, soa_serial(live.rdata));
  return rdata == live.rdata && live.ttl == file.ttl &&
         !soa_serial(file.rdata).ahead_of(soa_serial(live.rdata));
}

}  // namespace

void ZoneLoader::Task::compare(const zone::ZoneView& fresh) {
  soa = soa_record(fresh);
  const auto live_soa = soa_record(live());
  // A file whose serial is not ahead cannot replace the zone as it is: the serial must move on.
  const bool may_replace = soa_serial(soa->rdata).ahead_of(live().serial());
  changes = diff_zones(live(), fresh, may_replace ? fresh.record_count() / 2 + 100 : UINT64_MAX);
  differs = !changes || !changes->empty() || !live_soa || !same_soa(*live_soa, *soa);
}

ZoneLoader::ZoneLoader(asio::io_context& io, asio::thread_pool& pool, std::size_t threads,
                       shm::Store& store, shm::SlotTable& slots, Committer& committer,
                       zone::DataLimits limits)
    : io_(io),
      pool_(pool),
      threads_(std::max<std::size_t>(threads, 1)),
      store_(store),
      slots_(slots),
      committer_(committer),
      limits_(limits) {}

void ZoneLoader::run(Source source, std::shared_ptr<HistorySource> history, Done done,
                     std::function<void()> all_done) {
  batches_.push_back(std::make_shared<Batch>(Batch{
      std::move(source), std::move(history), std::move(done), std::move(all_done), false, 0, 0}));
  asio::post(io_, [this] { fill(); });
}

/// Starts jobs while threads are free; ends batches that have nothing left.
void ZoneLoader::fill() {
  while (!batches_.empty()) {
    const std::shared_ptr<Batch> batch = batches_.front();
    while (!batch->drained && running_ < threads_) {
      auto job = batch->source();
      batch->drained = !job;
      if (job) start(std::move(*job), batch);
    }
    if (!batch->drained || batch->running > 0) return;
    batches_.pop_front();
    if (batch->all_done) batch->all_done();
  }
}

void ZoneLoader::start(Job job, const std::shared_ptr<Batch>& batch) {
  ++running_;
  ++batch->running;
  auto task = std::make_shared<Task>();
  task->job = std::move(job);
  task->batch = batch;
  build(task);
}

void ZoneLoader::build(const std::shared_ptr<Task>& task) {
  task->version = committer_.current();
  task->pin = slots_.pin_own(task->version.version());
  asio::post(pool_, [this, task] {
    task->examine(store_);
    asio::post(io_, [this, task] { built(task); });
  });
}

void ZoneLoader::built(const std::shared_ptr<Task>& task) {
  const zone::ZoneView live = committer_.current().zone_at(task->job.apex);
  task->pin = {};
  if (task->outcome) return finish(task, std::move(*task->outcome));
  if (!live) return finish(task, {Outcome::Kind::kFailed, {}, 0, {"zone is no longer configured"}});
  if (!live.loaded() || !task->soa) return put(task);
  if (task->changes) return merge(task);
  if (soa_serial(task->soa->rdata).ahead_of(live.serial())) return put(task);
  build(task);  // it moved past the file's serial meanwhile: now a whole comparison is needed
}

void ZoneLoader::put(const std::shared_ptr<Task>& task) {
  BuiltZone zone = std::move(*task->zone);
  const auto built = zone.built;
  const zone::ZoneView before = committer_.current().zone_at(task->job.apex);
  const auto kind = before.loaded() ? Outcome::Kind::kReplaced : Outcome::Kind::kLoaded;
  auto done = [this, task, kind, records = zone.records, replayed = zone.replayed,
               skipped = zone.skipped](const Status& status) {
    if (!status) return finish(task, {Outcome::Kind::kFailed, {}, 0, {status.error().text}});
    const zone::ZoneView live = committer_.current().zone_at(task->job.apex);
    const auto level =
        task->batch->finished < kMaxZoneLines ? log::Level::kInfo : log::Level::kDebug;
    log::detail::event(level, "zone_loaded", "zone", to_text(task->job.apex), "serial",
                       live.serial().value, "records", records, "ms",
                       milliseconds_since(task->start), "replayed", replayed, "skipped", skipped);
    finish(task, {kind, live.serial(), live.record_count(), {}});
  };
  committer_.put_zone(task->job.apex, built, std::move(zone.transaction), zone.source,
                      std::move(done));
}

/// Applies the difference and notes the file as merged, as one step.
void ZoneLoader::merge(const std::shared_ptr<Task>& task) {
  const dns::Serial compared = task->version.zone_at(task->job.apex).serial();
  const bool last_try = ++task->comparisons >= kMaxComparisons;
  auto moved = std::make_shared<bool>(false);
  auto result = std::make_shared<zone::Applied>();
  CommitRequest request;
  request.stage = [this, task, compared, last_try, moved, result](Stage& stage) -> Status {
    const zone::ZoneView live = stage.draft.snapshot().zone_at(task->job.apex);
    const auto soa = soa_record(live);
    if (!soa) return fail(Errc::kNotFound, "zone is no longer there");
    *moved = !(live.serial() == compared);
    if (*moved && !last_try) return fail(Errc::kExists, "zone moved");
    if (task->differs) {
      zone::Changes changes = *task->changes;
      zone::Record next = *task->soa;
      if (!soa_serial(next.rdata).ahead_of(live.serial()))
        set_soa_serial(next.rdata, live.serial().next());
      changes.removed.push_back(*soa);
      changes.added.push_back(std::move(next));
      auto applied = stage.draft.apply(changes, limits_);
      if (!applied) return pass(applied);
      stage.journal.push_back(
          {task->job.apex, applied->from, applied->to, zone::encode(applied->effective)});
      *result = std::move(*applied);
    }
    return stage.draft.put_zone_source(task->job.apex, task->zone->source);
  };
  request.done = [this, task, moved, result](const Result<std::uint64_t>& version) {
    if (!version && *moved && task->comparisons < kMaxComparisons) return build(task);
    if (!version) return finish(task, {Outcome::Kind::kFailed, {}, 0, {version.error().text}});
    const zone::ZoneView live = committer_.current().zone_at(task->job.apex);
    if (task->differs)
      log::info("zone_merged", "zone", to_text(task->job.apex), "from", result->from.value,
                "serial", result->to.value, "added", result->effective.added.size(), "removed",
                result->effective.removed.size(), "ms", milliseconds_since(task->start));
    finish(task, {task->differs ? Outcome::Kind::kChanged : Outcome::Kind::kUnchanged,
                  live.serial(),
                  live.record_count(),
                  {}});
  };
  committer_.submit(std::move(request));
}

void ZoneLoader::finish(const std::shared_ptr<Task>& task, Outcome outcome) {
  if (task->zone)
    for (const std::string& warning : task->zone->warnings)
      log::warning("zone_file", "zone", to_text(task->job.apex), "text", warning);
  for (const std::string& line : outcome.problems)
    log::error("zone_not_loaded", "zone", to_text(task->job.apex), "reason", line);
  --running_;
  --task->batch->running;
  ++task->batch->finished;
  if (task->batch->done) task->batch->done(task->job, outcome);
  fill();
}

}  // namespace pando::manager
