#include "manager/zonefile/zone_exports.h"

#include <algorithm>
#include <asio/post.hpp>
#include <mutex>
#include <utility>

#include "base/crash_point.h"
#include "base/steady_time.h"
#include "dns/folded_key.h"
#include "ipc/log.h"
#include "manager/journal/record/journal_payload.h"
#include "manager/merge/merge_base.h"
#include "manager/zonefile/export_file.h"

namespace pando::manager {

namespace {

/// Limit of remembered problems; further zones get one log line per failure.
constexpr std::size_t kMaxProblems = 10'000;

/// Export interval of a zone in `runtime`; zero = never.
std::chrono::milliseconds interval_in(const RuntimePtr& runtime, dns::NameView zone) {
  const auto* options = runtime ? runtime->settings.zones.options_of(zone) : nullptr;
  if (options == nullptr || options->is_secondary()) return {};
  return options->export_interval.value_or(std::chrono::milliseconds(0));
}

/// True if the record makes the zone differ from its file. A merged edit is in the file already,
/// unless the serials differ or part of the edit was held back.
bool leaves_file_behind(const JournalEntry& entry) {
  RecordKind kind = entry.kind;
  ByteView payload = entry.payload;
  if (kind == RecordKind::kSigned) {
    const auto inner = decode_signed(payload);
    if (!inner) return true;
    if (!inner->kind) return false;
    kind = *inner->kind;
    payload = inner->payload;
  }
  if (kind == RecordKind::kChangeset) return true;
  if (kind != RecordKind::kFileEdit) return false;
  const auto edit = decode_file_edit(payload);
  return !edit || !(edit->file_serial == entry.to) || !edit->held.empty();
}

/// Adds a journal entry of a zone that is being exported to the changes since the exported version.
void follow(const JournalEntry& entry, DynamicChanges& since, dns::Serial& reached) {
  const JournalRecord record{0, 0, entry.kind, entry.zone, entry.from, entry.to, entry.payload};
  if (!changes_zone(record)) return;
  const auto changes = source_changes(record);
  if (changes && entry.from == reached)
    since.updated(*changes);
  else
    since.lose();
  reached = entry.to;
}

bool is_as_file(const MergeBase& state) {
  if (!state.serial) return state.dynamic_changes.empty();
  return state.dynamic_changes.empty() && state.file_serial == state.serial;
}

}  // namespace

/// Files shared by several zones of a configuration. No zone may be exported to a shared file.
struct ZoneExports::SharedFiles {
  explicit SharedFiles(RuntimePtr from) : runtime(std::move(from)) {}
  [[nodiscard]] bool has(std::string_view file);

  RuntimePtr runtime;
  std::once_flag once;
  std::set<std::string, std::less<>> files;
};

bool ZoneExports::SharedFiles::has(std::string_view file) {
  std::call_once(once, [this] {
    const config::ZoneTable& zones = runtime->settings.zones;
    std::vector<std::string_view> all;
    all.reserve(zones.size());
    for (std::size_t i = 0; i < zones.size(); ++i)
      if (!zones[i].file.empty()) all.push_back(zones[i].file);
    std::sort(all.begin(), all.end());
    for (std::size_t i = 1; i < all.size(); ++i)
      if (all[i] == all[i - 1]) files.emplace(all[i]);
  });
  return files.contains(file);
}

/// One running export. Used by one thread at a time, except `since` and `reached`, which belong to
/// the commit thread.
struct ZoneExports::Run {
  std::string key;
  dns::Name zone;
  std::string file;  // as configured
  std::string path;
  std::shared_ptr<SharedFiles> shared_files;
  std::vector<Done> done;   // callers waiting for this export; empty = by interval
  std::vector<Done> later;  // callers that asked during this export
  Clock::time_point start = Clock::now();
  // The exported version, and the changes since.
  zone::StoreView version;
  shm::SlotTable::OwnPin pin;
  std::uint64_t position = 0;
  dns::Serial serial;
  std::uint64_t records = 0;
  zone::ZoneFileInfo before;
  DynamicChanges since;
  dns::Serial reached;
  // The result.
  bool is_current = false;  // the file was already up to date
  zone::ZoneFileInfo written;
  bool may_be_recorded = false;  // the new merge base may be in the journal, even after an error

  Status stage_merge_base(Stage& stage);
};

ZoneExports::ZoneExports(asio::io_context& io, asio::thread_pool& pool, Files& files,
                         Committer& committer, shm::SlotTable& slots, HistoryMaker history,
                         Options options)
    : io_(io),
      pool_(pool),
      files_(files),
      committer_(committer),
      slots_(slots),
      history_(std::move(history)),
      options_(options),
      timer_(io) {}

ZoneExports::~ZoneExports() = default;

void ZoneExports::stop() {
  stopped_ = true;
  timer_.cancel();
}

void ZoneExports::configure(const RuntimePtr& runtime, bool may_differ) {
  const RuntimePtr before = std::exchange(runtime_, runtime);
  shared_files_ = std::make_shared<SharedFiles>(runtime);
  any_interval_ = runtime && runtime->uses.has_exports;
  if (any_interval_ && may_differ) find_changed(before);
}

/// Runs in the pool, since the journal is read. Unchanged zones have no journal records.
void ZoneExports::find_changed(const RuntimePtr& before) {
  asio::post(pool_, [this, before, runtime = runtime_, source = history_(),
                     position = committer_.position()] {
    const auto is_new = [&](dns::NameView zone) {
      return interval_in(runtime, zone).count() != 0 && interval_in(before, zone).count() == 0;
    };
    const config::ZoneTable& zones = runtime->settings.zones;
    bool any = false;
    for (std::size_t i = 0; i < zones.size() && !any; ++i) any = is_new(zones[i].name);
    if (!any) return;
    const auto history = source->get(position);
    auto keys = std::make_shared<std::vector<std::string>>();
    for (const dns::Name& name : history->zone_names()) {
      if (!is_new(name)) continue;
      const auto state = history->merge_base(name, position);
      if (!state || !is_as_file(*state)) keys->push_back(dns::folded_key(name));
    }
    if (!keys->empty()) asio::post(io_, [this, keys] { mark_slice(keys, 0); });
  });
}

void ZoneExports::mark_slice(const std::shared_ptr<std::vector<std::string>>& keys,
                             std::size_t from) {
  const std::size_t end = std::min(from + options_.slice, keys->size());
  for (std::size_t i = from; i < end; ++i) mark((*keys)[i]);
  if (end < keys->size()) asio::post(io_, [this, keys, end] { mark_slice(keys, end); });
}

std::chrono::milliseconds ZoneExports::interval_of(dns::NameView zone) const {
  return interval_in(runtime_, zone);
}

void ZoneExports::journalled(const JournalEntry& entry) {
  if (!any_interval_ && running_.empty()) return;
  const std::string key = dns::folded_key(entry.zone);
  if (const auto run = running_.find(key); run != running_.end())
    follow(entry, run->second->since, run->second->reached);
  if (any_interval_ && leaves_file_behind(entry)) mark(key);
  if (entry.kind != RecordKind::kBase) return;
  unmark(key);
  problems_.erase(key);
}

/// An export is due one interval after the first change that the file lacks.
void ZoneExports::mark(const std::string& key) {
  if (changed_.contains(key)) return;
  const auto interval = interval_of(dns::name_of_key(key));
  if (interval.count() == 0) return;
  const auto due = Clock::now() + interval;
  changed_.emplace(key, due);
  due_.emplace(due, key);
  if (due_.begin()->second == key) arm_timer();
}

void ZoneExports::unmark(const std::string& key) {
  const auto found = changed_.find(key);
  if (found == changed_.end()) return;
  due_.erase({found->second, key});
  changed_.erase(found);
}

void ZoneExports::arm_timer() {
  if (stopped_ || due_.empty()) return;
  timer_.expires_at(due_.begin()->first);
  timer_.async_wait([this](const asio::error_code& error) {
    if (!error) run_due();
  });
}

/// If `at_once` exports are running, the end of one calls this function again.
void ZoneExports::run_due() {
  if (stopped_) return;
  const auto now = Clock::now();
  while (!due_.empty() && due_.begin()->first <= now && running_.size() < options_.at_once) {
    const std::string key = due_.begin()->second;
    if (!running_.contains(key)) {
      begin(key, {});
      continue;
    }
    unmark(key);  // an export on request is running: due again one interval later
    mark(key);
  }
  if (running_.size() < options_.at_once) arm_timer();
}

void ZoneExports::write_own(const dns::Name& zone, Done done) {
  const std::string key = dns::folded_key(zone);
  const auto running = running_.find(key);
  if (running != running_.end()) return running->second->later.push_back(std::move(done));
  begin(key, {std::move(done)});
}

void ZoneExports::begin(const std::string& key, std::vector<Done> done) {
  auto run = std::make_shared<Run>();
  run->key = key;
  run->zone = dns::Name(dns::name_of_key(run->key));
  run->done = std::move(done);
  unmark(run->key);
  running_.emplace(run->key, run);
  if (auto ready = prepare(run); !ready)
    return asio::post(io_, [this, run, ready] { end(run, ready); });
  if (unconfirmed_.contains(run->key)) return confirm_merge_base(run);
  write(run);
}

Status ZoneExports::prepare(const RunPtr& run) const {
  const auto index = runtime_ ? runtime_->settings.zones.find(run->zone) : std::nullopt;
  const zone::ZoneView live = committer_.current().zone_at(run->zone);
  if (!index || !live) return fail(Errc::kNotFound, "no zone {}", to_text(run->zone));
  run->zone = dns::Name(live.apex());
  run->file = runtime_->settings.zones[*index].file;
  run->path = runtime_->settings.zones.path(*index);
  run->shared_files = shared_files_;
  if (is_secondary(live))
    return fail(Errc::kUnsupported,
                "{} is secondary, its file is kept by itself; name another file to write it to",
                to_text(run->zone));
  if (!live.loaded()) return fail(Errc::kNotFound, "{} has no data", to_text(run->zone));
  if (run->path.empty()) return fail(Errc::kNotFound, "{} has no file", to_text(run->zone));
  return {};
}

/// Appends and syncs a new journal record, which removes the failed merge base record for good.
/// Until then, a restart could take `FILE.export` for the merge base, so the file must stay.
void ZoneExports::confirm_merge_base(const RunPtr& run) {
  CommitRequest request;
  request.stage = [run](Stage& stage) -> Status {
    const zone::ZoneView live = stage.draft.view().zone_at(run->zone);
    if (!live || !live.loaded()) return fail(Errc::kNotFound, "the zone has gone");
    stage.journal.push_back(source_entry(run->zone, live.serial(), live.source()));
    return {};
  };
  request.done = [this, run](const Result<std::uint64_t>& version) {
    if (!version) return end(run, pass(version));
    unconfirmed_.erase(run->key);
    write(run);
  };
  committer_.submit(std::move(request));
}

void ZoneExports::write(const RunPtr& run) {
  run->version = committer_.current();
  const zone::ZoneView live = run->version.zone_at(run->zone);
  if (!live || !live.loaded()) return end(run, fail(Errc::kNotFound, "the zone has gone"));
  run->position = committer_.position();
  run->pin = slots_.pin_own(run->version.version());
  run->serial = run->reached = live.serial();
  run->records = live.record_count();
  run->before = live.source();
  run->since = {};
  asio::post(pool_, [this, run] {
    Status written = write_in_pool(*run);
    asio::post(io_, [this, run, written] {
      run->pin = {};
      if (!written || run->is_current) return end(run, written);
      record_merge_base(run);
    });
  });
}

Status ZoneExports::write_in_pool(Run& run) const {
  if (run.shared_files->has(run.file))
    return fail(Errc::kUnsupported, "{} is the file of several zones", run.path);
  if (auto finished = finish_export(files_, run.path, run.before); !finished) return pass(finished);
  if (auto same = check_file(run); !same) return same;
  run.is_current = !run.done.empty() && is_current(run);
  if (run.is_current) return {};
  auto written = write_export(files_, run.version.zone_at(run.zone), run.path);
  if (!written) return pass(written);
  run.written = *written;
  auto same = check_file(run);  // checked again, since writing a large zone takes a while
  if (!same) drop_export(files_, run.path);
  return same;
}

/// kExists if the file was edited: an export must not overwrite the operator's edit. A missing file
/// is written again.
Status ZoneExports::check_file(const Run& run) const {
  if (manager::check_file(run.path, run.before).kind != FileCheck::Kind::kOther) return {};
  return fail(Errc::kExists,
              "{} was changed since it was loaded; reload to merge that, then export again",
              run.path);
}

/// True if the file already holds the served zone, according to the journal. Exports by interval do
/// not ask: their zones have changed.
bool ZoneExports::is_current(const Run& run) const {
  if (!stat_source(run.path)) return false;
  const auto history = history_()->get(run.position);
  const auto state = history->merge_base(run.zone, run.position);
  if (!history->problem().empty() || !state) return false;
  return is_as_file(*state) && state->serial.value_or(run.serial) == run.serial;
}

/// Records the export as merge base. If the zone moved on meanwhile, the merge base has `serial`,
/// and the later changes become the dynamic changes.
Status ZoneExports::Run::stage_merge_base(Stage& stage) {
  const zone::ZoneView live = stage.draft.view().zone_at(zone);
  if (!live || !live.loaded() || is_secondary(live) || !same_source(live.source(), before))
    return fail(Errc::kExists, "the zone was loaded anew while it was exported");
  DynamicChanges changes = since;
  dns::Serial at = reached;
  for (const JournalEntry& entry : stage.journal)
    if (entry.zone == zone) follow(entry, changes, at);
  if (!changes.known() || !(at == live.serial()))
    return fail(Errc::kExists, "too much of the zone was changed while it was exported");
  stage.journal.push_back(at == serial ? base_entry(live)
                                       : dynamic_changes_entry(zone, serial, at, changes));
  stage.journal.push_back(source_entry(zone, at, written));
  return stage.draft.put_zone_source(zone, written);
}

void ZoneExports::record_merge_base(const RunPtr& run) {
  CommitRequest request;
  request.stage = [run](Stage& stage) {
    stage.use_reserve(shm::Reserve::kHalf);
    Status staged = run->stage_merge_base(stage);
    run->may_be_recorded = staged.has_value();
    return staged;
  };
  request.done = [this, run](const Result<std::uint64_t>& version) {
    crash_point("export-recorded");
    if (version) return take_name(run);
    if (run->may_be_recorded)
      unconfirmed_.insert(run->key);
    else
      drop_export(files_, run->path);
    end(run, pass(version));
  };
  committer_.submit(std::move(request));
}

void ZoneExports::take_name(const RunPtr& run) {
  asio::post(pool_, [this, run] {
    auto finished = finish_export(files_, run->path, run->written);
    const Status status = status_of(finished);
    asio::post(io_, [this, run, status] { end(run, status); });
  });
}

void ZoneExports::end(const RunPtr& run, const Status& status) {
  running_.erase(run->key);
  if (!status) mark(run->key);  // no effect if the zone is no longer configured
  report(*run, status);
  for (const Done& done : run->done)
    done(status ? Result<Exported>(Exported{run->serial, run->records, run->path, !run->is_current})
                : Result<Exported>(pass(status)));
  if (!run->later.empty() && !stopped_) begin(run->key, std::move(run->later));
  run_due();
}

/// Logs the result; a repeated problem of a zone is logged only once.
void ZoneExports::report(const Run& run, const Status& status) {
  if (status) {
    problems_.erase(run.key);
    if (run.is_current) return;
    ++counters_.exports;
    log::info("zone_exported", "zone", to_text(run.zone), "serial", run.serial.value, "records",
              run.records, "path", run.path, "ms", milliseconds_since(run.start));
    return;
  }
  ++counters_.failures;
  // Without an interval, no problem is stored: the caller gets the error, or the zone has left the
  // configuration.
  if (interval_of(run.zone).count() == 0) {
    problems_.erase(run.key);
    return;
  }
  const std::string& text = status.error().text;
  if (const auto known = problems_.find(run.key); known != problems_.end() && known->second == text)
    return;
  if (problems_.size() < kMaxProblems || problems_.contains(run.key)) problems_[run.key] = text;
  log::error("zone_not_exported", "zone", to_text(run.zone), "path", run.path, "reason", text);
}

std::string ZoneExports::problem(dns::NameView zone) const {
  if (problems_.empty()) return {};
  const auto found = problems_.find(dns::folded_key(zone));
  return found == problems_.end() ? "" : found->second;
}

void ZoneExports::write_to(const dns::Name& zone, std::string path, Done done) {
  if (!path.starts_with('/')) return done(fail(Errc::kInvalid, "{} is not an absolute path", path));
  write_apart(
      zone, path,
      [this, path](const zone::ZoneView& view) { return write_zone_to(files_, view, path); },
      std::move(done));
}

void ZoneExports::write_into(const dns::Name& zone, std::string path,
                             std::shared_ptr<StoreFile> file, Done done) {
  write_apart(
      zone, path,
      [path, file = std::move(file)](const zone::ZoneView& view) -> Status {
        auto written = write_zone_into(*file, view);
        if (written) return written;
        return fail(written.error().code, "{}: {}", path, written.error().text);
      },
      std::move(done));
}

/// Has `write` write the present version in the pool; nothing of the zone's own file changes.
void ZoneExports::write_apart(const dns::Name& zone, const std::string& path,
                              std::function<Status(const zone::ZoneView&)> write, Done done) {
  auto version = std::make_shared<zone::StoreView>(committer_.current());
  const zone::ZoneView live = version->zone_at(zone);
  if (!live) return done(fail(Errc::kNotFound, "no zone {}", to_text(zone)));
  if (!live.loaded()) return done(fail(Errc::kNotFound, "{} has no data", to_text(zone)));
  auto pin = std::make_shared<shm::SlotTable::OwnPin>(slots_.pin_own(version->version()));
  asio::post(pool_, [this, zone, path, write = std::move(write), version, pin,
                     done = std::move(done)] {
    const zone::ZoneView view = version->zone_at(zone);
    auto written = write(view);
    auto result = std::make_shared<Result<Exported>>(
        written ? Result<Exported>(Exported{view.serial(), view.record_count(), path, true})
                : Result<Exported>(pass(written)));
    asio::post(io_, [version, pin, done, result] { done(*result); });
  });
}

}  // namespace pando::manager
