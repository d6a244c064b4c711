#include "manager/zonefile/zone_file_loads.h"

#include <asio/steady_timer.hpp>
#include <set>

#include "base/crash_point.h"
#include "dns/folded_key.h"
#include "ipc/log.h"
#include "manager/journal/record/journal_payload.h"

namespace pando::manager {

namespace {

constexpr std::chrono::seconds kRetryInterval{10};

using ZoneIndexes = std::function<std::optional<std::size_t>()>;

ZoneIndexes secondaries_of(const RuntimePtr& runtime) {
  return [runtime, next = std::size_t{0}]() mutable -> std::optional<std::size_t> {
    if (next == runtime->secondaries.size()) return std::nullopt;
    return runtime->secondaries[next++];
  };
}

ZoneIndexes others_of(const RuntimePtr& runtime) {
  return [runtime, next = std::size_t{0},
          passed = std::size_t{0}]() mutable -> std::optional<std::size_t> {
    const std::vector<std::uint32_t>& secondaries = runtime->secondaries;
    for (; passed < secondaries.size() && secondaries[passed] == next; ++passed) ++next;
    if (next == runtime->settings.zones.size()) return std::nullopt;
    return next++;
  };
}

ZoneIndexes list_of(std::vector<std::size_t> zones) {
  return [zones = std::move(zones), next = std::size_t{0}]() mutable -> std::optional<std::size_t> {
    if (next == zones.size()) return std::nullopt;
    return zones[next++];
  };
}

}  // namespace

/// The load of one configuration.
struct ZoneFileLoads::Load {
  Counts counts;
  int requests_left = 2;
  Done done;
  bool is_partial = false;
  ZoneBits counted;
  std::set<std::string> judging;  // zones whose programs have no verdict yet, by folded name
  std::optional<asio::steady_timer> verdict_timer;
  bool is_ready = false;  // to end, after loads that began earlier

  void add_judged(dns::NameView zone) {
    ++counts.being_judged;
    if (is_partial) counts.judged_zones.emplace_back(zone);
  }
  void add_failure(const LoadJob& job, const LoadOutcome& outcome) {
    ++counts.failed;
    if (is_partial)
      counts.failures.emplace_back(job.apex,
                                   outcome.problems.empty() ? "" : outcome.problems.front());
    if (counts.problems.size() < kMaxProblems && !outcome.problems.empty())
      counts.problems.push_back(fmt::format("{}: {}", to_text(job.apex), outcome.problems.front()));
  }
};

ZoneFileLoads::ZoneFileLoads(ZoneLoader& loader, ZoneCopies& copies, const Committer& committer,
                             CopyChecked copy_checked)
    : loader_(loader),
      copies_(copies),
      committer_(committer),
      copy_checked_(std::move(copy_checked)) {}

void ZoneFileLoads::load(const RuntimePtr& runtime, const std::shared_ptr<HistorySource>& history,
                         Done done, ZoneBits counted) {
  const LoadPtr load = loads_.emplace_back(std::make_shared<Load>());
  load->done = std::move(done);
  load->counted = std::move(counted);
  newest_ = runtime;
  waiting_.clear();  // each zone is checked anew
  loader_.supersede_unless([this](const LoadJob& job) { return is_wanted(job); });
  const auto ended = [this, load] {
    --load->requests_left;
    end_unless_judging(load);
  };
  run_copies(runtime, secondaries_of(runtime), history, load, ended);
  run_files(runtime, others_of(runtime), history, load, ended);
}

void ZoneFileLoads::load_some(const RuntimePtr& runtime, const std::vector<dns::Name>& zones,
                              const std::shared_ptr<HistorySource>& history, Done done) {
  const LoadPtr load = loads_.emplace_back(std::make_shared<Load>());
  load->done = std::move(done);
  load->is_partial = true;
  newest_ = runtime;
  std::vector<std::size_t> copies;
  std::vector<std::size_t> files;
  const config::ZoneTable& table = runtime->settings.zones;
  for (const dns::Name& zone : zones) {
    waiting_.erase(dns::folded_key(zone));
    loader_.supersede_unless(zone, [](const LoadJob&) { return false; });
    const auto index = table.find(zone);
    if (!index) continue;
    (table[*index].options->is_secondary() ? copies : files).push_back(*index);
  }
  const auto ended = [this, load] {
    --load->requests_left;
    end_unless_judging(load);
  };
  run_copies(runtime, list_of(std::move(copies)), history, load, ended);
  run_files(runtime, list_of(std::move(files)), history, load, ended);
}

void ZoneFileLoads::load_copies(const RuntimePtr& runtime,
                                const std::shared_ptr<HistorySource>& history) {
  run_copies(runtime, secondaries_of(runtime), history, std::make_shared<Load>(), nullptr);
}

/// Loads the secondaries' copies. The primaries of a secondary are asked as soon as its copy was
/// checked.
void ZoneFileLoads::run_copies(const RuntimePtr& runtime, NextZone next,
                               const std::shared_ptr<HistorySource>& history, const LoadPtr& load,
                               std::function<void()> on_end) {
  auto next_job = [this, runtime, next = std::move(next)]() -> std::optional<LoadJob> {
    const auto index = next();
    if (!index) return std::nullopt;
    const config::ZoneTable& zones = runtime->settings.zones;
    LoadJob job{dns::Name(zones[*index].name), copies_.path_of(zones, *index), true,
                zones[*index].options->serial_policy};
    job.is_signed_here = zones[*index].options->is_signed_here();
    return job;
  };
  auto on_outcome = [this, load](const LoadJob& job, const LoadOutcome& outcome) {
    if (outcome.kind == LoadOutcome::Kind::kUnchanged) copy_again(job);
    count(*load, job, outcome);
    // A zone that did not fit into the store would be transferred in vain.
    if (committer_.current().zone_at(job.apex)) copy_checked_(job.apex);
  };
  loader_.load(
      {LoadKind::kCopies, std::move(next_job), history, std::move(on_outcome), std::move(on_end)});
}

LoadJob ZoneFileLoads::file_job(const RuntimePtr& runtime, std::size_t index) const {
  const config::ZoneTable& zones = runtime->settings.zones;
  const config::ZoneOptions& options = *zones[index].options;
  return LoadJob{dns::Name(zones[index].name),
                 zones.path(index),
                 false,
                 options.serial_policy,
                 options.verify,
                 verifier_of_ ? verifier_of_(options) : nullptr,
                 options.is_signed_here()};
}

/// Whether a verdict on this job still matters with the newest configuration.
bool ZoneFileLoads::is_wanted(const LoadJob& job) const {
  const config::Settings& settings = newest_->settings;
  const auto index = settings.zones.find(job.apex);
  if (!index) return false;
  const config::ZoneOptions& options = *settings.zones[*index].options;
  if (options.is_secondary() || settings.zones.path(*index) != job.path) return false;
  const ZoneVerifierPtr verifier = verifier_of_(options);
  return verifier && verifier->is_like(*job.verifier) && options.verify == job.verify &&
         options.serial_policy == job.serial_policy;
}

void ZoneFileLoads::run_files(const RuntimePtr& runtime, NextZone next,
                              const std::shared_ptr<HistorySource>& history, const LoadPtr& load,
                              std::function<void()> on_end) {
  LoadRequest request;
  request.next_job = [this, runtime, next = std::move(next)]() -> std::optional<LoadJob> {
    const auto index = next();
    return index ? std::optional(file_job(runtime, *index)) : std::nullopt;
  };
  request.history = history;
  request.on_outcome = [this, load](const LoadJob& job, const LoadOutcome& outcome) {
    count(*load, job, outcome);
    if (load->judging.erase(dns::folded_key(job.apex)) > 0) end_unless_judging(load);
  };
  request.on_judging = [load](const LoadJob& job) {
    load->judging.insert(dns::folded_key(job.apex));
  };
  request.is_wanted = [this](const LoadJob& job) { return is_wanted(job); };
  request.on_end = std::move(on_end);
  loader_.load(std::move(request));
}

/// Ends the load after its last zone. Programs without a verdict have some more time.
void ZoneFileLoads::end_unless_judging(const LoadPtr& load) {
  if (load->requests_left > 0 || load->is_ready) return;
  if (load->judging.empty()) return set_ready(*load);
  if (load->verdict_timer) return;
  load->verdict_timer.emplace(loader_.io(), verdict_time_);
  load->verdict_timer->async_wait([this, load](const asio::error_code& error) {
    if (!error && !loader_.is_stopped()) set_ready(*load);
  });
}

void ZoneFileLoads::set_ready(Load& load) {
  load.is_ready = true;
  if (load.verdict_timer) load.verdict_timer->cancel();
  while (!loads_.empty() && loads_.front()->is_ready) {
    const LoadPtr next = std::move(loads_.front());
    loads_.pop_front();
    end(*next);
  }
}

void ZoneFileLoads::end(Load& load) {
  for (const std::string& key : std::exchange(load.judging, {}))
    load.add_judged(dns::name_of_key(key));
  if (!load.is_partial) load.counts.is_first = !std::exchange(settled_, true);
  load.done(load.counts);
}

bool ZoneFileLoads::is_counted(const Load& load, const dns::Name& zone) const {
  if (!load.counted || load.counted->empty()) return false;
  const zone::ZoneView view = committer_.current().zone_at(zone);
  const std::uint32_t side = view ? view.side_index() : 0;
  return view && side < load.counted->size() && (*load.counted)[side];
}

void ZoneFileLoads::count(Load& load, const LoadJob& job, const LoadOutcome& outcome) {
  using Kind = LoadOutcome::Kind;
  if (outcome.kind == Kind::kJudging) load.add_judged(job.apex);
  if (!outcome.is_final()) return;
  if (outcome.kind == Kind::kChanged || outcome.kind == Kind::kLoaded ||
      outcome.kind == Kind::kReplaced) {
    if (!is_counted(load, job.apex)) ++load.counts.changed;
    if (load.is_partial) load.counts.changed_zones.push_back(job.apex);
  }
  if (outcome.kind == Kind::kFailed) load.add_failure(job, outcome);
  zone_loaded(job, outcome);
}

void ZoneFileLoads::set_waiting(const LoadJob& job, const LoadOutcome& outcome) {
  const std::string key = dns::folded_key(job.apex);
  if (!outcome.waits_for_journal) {
    if (!waiting_.empty()) waiting_.erase(key);
    return;
  }
  waiting_why_ = outcome.problems.front();
  if (waiting_.empty()) next_retry_ = std::chrono::steady_clock::now() + kRetryInterval;
  waiting_.insert_or_assign(key, job);
}

std::string ZoneFileLoads::waiting() const {
  if (waiting_.empty()) return {};
  return fmt::format("{} zones: {}", waiting_.size(), waiting_why_);
}

void ZoneFileLoads::retry_waiting(
    std::chrono::steady_clock::time_point now,
    const std::function<std::shared_ptr<HistorySource>()>& make_history) {
  if (waiting_.empty() || now < next_retry_ || !loader_.idle()) return;
  next_retry_ = now + kRetryInterval;
  auto jobs = std::make_shared<std::vector<LoadJob>>();
  for (const auto& [key, job] : waiting_) jobs->push_back(job);
  auto next_job = [jobs, next = std::size_t{0}]() mutable -> std::optional<LoadJob> {
    return next == jobs->size() ? std::nullopt : std::optional((*jobs)[next++]);
  };
  loader_.load({LoadKind::kFiles,
                std::move(next_job),
                make_history(),
                [this](const LoadJob& job, const LoadOutcome& outcome) {
                  if (outcome.is_final()) zone_loaded(job, outcome);
                },
                [this, before = jobs->size()] {
                  if (waiting_.size() < before)
                    log::info("journal_readable_again", "zones", before - waiting_.size(),
                              "waiting", waiting_.size());
                },
                true,
                {},
                [this](const LoadJob& job) { return is_wanted(job); }});
}

void ZoneFileLoads::zone_loaded(const LoadJob& job, const LoadOutcome& outcome) {
  crash_point("zone-loaded");
  set_waiting(job, outcome);
  // The copy no longer matters for a zone that a reload has made primary meanwhile.
  if (job.file_optional)
    if (const zone::ZoneView zone = committer_.current().zone_at(job.apex))
      if (!is_secondary(zone)) return;
  if (outcome.kind == LoadOutcome::Kind::kFailed) {
    if (const zone::ZoneView zone = committer_.current().zone_at(job.apex))
      problems_.put(job.apex, zone.side_index(),
                    outcome.problems.empty() ? "" : outcome.problems.front());
    return;
  }
  forget_problem(job.apex);
  if (outcome.kind == LoadOutcome::Kind::kLoaded) ++loaded_;
  if (on_served_) on_served_(job.apex);
}

void ZoneFileLoads::transferred(const dns::Name& zone, bool had_data) {
  if (!had_data) ++loaded_;
  forget_problem(zone);
}

void ZoneFileLoads::forget_problem(const dns::Name& name) {
  if (problems_.empty()) return;
  if (const zone::ZoneView zone = committer_.current().zone_at(name))
    problems_.remove(name, zone.side_index());
}

/// Writes the copy of a secondary that has no recorded copy: the process was killed, or the disk
/// was full, before the copy was recorded.
void ZoneFileLoads::copy_again(const LoadJob& secondary) {
  const zone::ZoneView zone = committer_.current().zone_at(secondary.apex);
  if (!zone || !zone.loaded() || zone.source().file_mtime_ns != 0) return;
  if (!is_secondary(zone)) return;  // a reload has made the zone primary, so its file is no copy
  if (holds_copies_)
    held_copies_.push_back(secondary);
  else
    copies_.write(secondary.apex, secondary.path, true);
}

void ZoneFileLoads::release_copies() {
  holds_copies_ = false;
  for (const LoadJob& secondary : std::exchange(held_copies_, {})) copy_again(secondary);
}

}  // namespace pando::manager
