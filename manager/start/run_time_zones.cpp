#include "manager/start/run_time_zones.h"

#include <algorithm>
#include <asio/post.hpp>
#include <set>
#include <string>
#include <utility>

#include "base/crash_point.h"
#include "base/pause_point.h"
#include "base/secret.h"
#include "dns/folded_key.h"
#include "ipc/log.h"
#include "manager/signing/keys/signed_zone_list.h"

namespace pando::manager {

namespace {

/// Changes that may wait: as many as all control connections may have under way.
constexpr std::size_t kMaxWaitingChanges = 4096;
/// A reload that is under way takes a second for a million zones.
constexpr std::chrono::milliseconds kTryAgain{20};

}  // namespace

/// Changes that are made together.
struct RunTimeZones::Batch {
  std::vector<Pending> changes;
  RuntimePtr base;
  RuntimePtr runtime;  ///< `base`: only files are read
  ZoneNames zones;     ///< of the changes that are not wrong

  /// To sort ten thousand names takes 8 ms.
  void name_zones() {
    std::vector<dns::Name> names;
    for (const Pending& change : changes)
      if (change.status) names.insert(names.end(), change.zones.begin(), change.zones.end());
    zones = make_zone_names(std::move(names));
  }
};

RunTimeZones::RunTimeZones(asio::io_context& io, asio::thread_pool& pool,
                           const CurrentConfiguration& configuration, Reloader& reloader)
    : io_(io),
      pool_(pool),
      configuration_(configuration),
      reloader_(reloader),
      list_(native_files(), configuration.runtime->settings.store.journal),
      timer_(io) {}

void RunTimeZones::submit(RunTimeChange change, Done done) {
  if (stopping_) return done(fail(Errc::kExists, "the process ends"));
  if (queue_.size() >= kMaxWaitingChanges)
    return done(fail(Errc::kFull, "{} changes of zones wait", queue_.size()));
  queue_.push_back({std::move(change), std::move(done)});
  if (!busy_) begin_next();
}

bool RunTimeZones::creates(const dns::Name& zone) const {
  const auto is_it = [&](const CreatedZone& created) { return created.zone == zone; };
  return std::ranges::find(creating_, zone) != creating_.end() ||
         std::ranges::any_of(queue_, [&](const Pending& pending) {
           return std::ranges::any_of(pending.change.create, is_it);
         });
}

void RunTimeZones::stop() {
  stopping_ = true;
  timer_.cancel();
  for (Pending& pending : std::exchange(queue_, {}))
    pending.done(fail(Errc::kExists, "the process ends"));
}

void RunTimeZones::begin_next() {
  creating_.clear();
  busy_ = !queue_.empty();
  if (!busy_ || stopping_) return;
  if (!reloader_.hold()) {
    timer_.expires_after(kTryAgain);
    timer_.async_wait([this](const asio::error_code& error) {
      if (!error) begin_next();
    });
    return;
  }
  auto batch = std::make_shared<Batch>();
  for (Pending& pending : std::exchange(queue_, {})) batch->changes.push_back(std::move(pending));
  for (const Pending& pending : batch->changes)
    for (const CreatedZone& created : pending.change.create) creating_.push_back(created.zone);
  batch->base = configuration_.runtime;
  asio::post(pool_, [this, batch] {
    work_out(*batch);
    batch->name_zones();
    asio::post(io_, [this, batch] { worked_out(batch); });
  });
}

/// In a pool thread.
void RunTimeZones::work_out(Batch& batch) {
  batch.runtime = batch.base;
  std::vector<Pending*> of_list;
  for (Pending& pending : batch.changes) {
    if (pending.change.reread.empty())
      of_list.push_back(&pending);
    else
      pending.status = find_files(batch.base->settings, pending);
  }
  if (of_list.empty()) return;
  const Status changed = change_list(batch, of_list);
  for (Pending* pending : of_list)
    if (!changed && pending->status) pending->status = changed;
}

Status RunTimeZones::find_files(const config::Settings& settings, Pending& pending) {
  for (const dns::Name& zone : pending.change.reread) {
    const auto* options = settings.zones.options_of(zone);
    if (options == nullptr) return fail(Errc::kNotFound, "no zone {}", to_text(zone));
    if (options->is_secondary())
      return fail(Errc::kInvalid, "{} is a secondary zone: see pandoctl zone refresh",
                  to_text(zone));
  }
  pending.zones = pending.change.reread;
  return {};
}

/// A change that is wrong leaves no trace. An error concerns all changes that are not wrong.
Status RunTimeZones::change_list(Batch& batch, const std::vector<Pending*>& changes) {
  const WipeFreed wipe_freed;  // the copy of the settings has their secrets
  if (auto loaded = list_.load(batch.base->settings.has_added_list); !loaded) return loaded;
  config::Settings settings = batch.base->settings;
  bool any = false;
  for (Pending* pending : changes) {
    pending->status = apply(*pending, settings);
    any = any || (pending->status && !pending->zones.empty());
  }
  if (!any) return {};
  settings.has_added_list = true;
  const Status stays = check_signed_zones(native_files(), settings);
  auto runtime =
      stays ? make_runtime(std::move(settings)) : Result<RuntimePtr>(pass(stays));
  if (!runtime) list_.forget();
  Status saved = runtime ? list_.save() : Status(pass(runtime));
  if (!saved) {
    for (Pending* pending : changes) remove_files(*pending, batch.base->settings);
    return saved;
  }
  crash_point("added-zones-kept");
  pause_point("added-zones-kept");
  batch.runtime = std::move(*runtime);
  return {};
}

/// The files of new zones are there before the zones.
Status RunTimeZones::apply(Pending& pending, config::Settings& settings) {
  auto written = write_created_zones(pending.change.create, settings);
  if (!written) return pass(written);
  pending.created = std::move(*written);
  Status applied = list_.apply(pending.change, settings, pending.zones);
  if (!applied) remove_files(pending, settings);
  return applied;
}

void RunTimeZones::remove_files(Pending& pending, const config::Settings& settings) {
  for (const dns::Name& zone : std::exchange(pending.created, {}))
    remove_created_zone(settings.store.journal, zone);
}

void RunTimeZones::worked_out(const BatchPtr& batch) {
  std::vector<Pending> accepted;
  for (Pending& pending : batch->changes) {
    if (pending.status)
      accepted.push_back(std::move(pending));
    else
      pending.done(pass(pending.status));
  }
  batch->changes = std::move(accepted);
  if (batch->changes.empty()) {
    reloader_.release();
    return begin_next();
  }
  reloader_.adopt(batch->runtime, batch->zones,
                  [this, batch](const Result<ipc::ReloadResult>& result, const Files& files) {
                    if (result || batch->runtime == batch->base)
                      finish(*batch, result, files);
                    else
                      take_back(batch, result.error());
                  });
}

/// The store could not take all zones, so neither a restart nor a reload must find any of them.
void RunTimeZones::take_back(const BatchPtr& batch, const Error& error) {
  asio::post(pool_, [this, batch, error] {
    const Status undone = list_.undo();
    if (undone)
      for (Pending& pending : batch->changes) remove_files(pending, batch->base->settings);
    asio::post(io_, [this, batch, error, undone] {
      if (!undone)
        log::error("added_zones_not_taken_back", "reason", undone.error().text, "effect",
                   "a restart may find zones that were refused");
      set_back(batch, error);
    });
  });
}

/// Some zones may be in the store: the configuration before is put in force again.
void RunTimeZones::set_back(const BatchPtr& batch, const Error& error) {
  const Result<ipc::ReloadResult> refused = pass(error);
  reloader_.adopt(batch->base, batch->zones,
                  [this, batch, refused](const Result<ipc::ReloadResult>& before, const Files&) {
                    if (!before)
                      log::error("added_zones_not_taken_back", "reason", before.error().text,
                                 "effect", "the store differs from the list until a reload");
                    finish(*batch, refused, {});
                  });
}

void RunTimeZones::finish(Batch& batch, const Result<ipc::ReloadResult>& result,
                          const Files& files) {
  reloader_.release();
  for (Pending& pending : batch.changes) {
    const Done done = std::exchange(pending.done, nullptr);
    if (!result) {
      done(pass(result));
      continue;
    }
    const RunTimeChange& change = pending.change;
    if (!change.add.empty() || !change.remove.empty()) ++commands_;
    if (change.reread.empty() && !change.catalog)
      log::info("zones_changed_by_command", "added", change.add.size(), "removed",
                change.remove.size(), "configured", change.set ? 1 : 0);
    done(own_result(pending, *result, files));
  }
  // The end of a million zones takes some 10 ms, and that of ten thousand that were added one.
  asio::post(pool_, [base = std::move(batch.base), changes = std::move(batch.changes)] {});
  begin_next();
}

/// Each change gets the result of its own zones.
ipc::ReloadResult RunTimeZones::own_result(const Pending& pending, const ipc::ReloadResult& all,
                                           const Files& files) {
  ipc::ReloadResult own;
  own.zones_added = pending.change.add.size();
  own.zones_removed = pending.change.remove.size();
  own.zones_changed = pending.change.set ? 1 : 0;
  if (own.zones_removed > 0) own.zones_kept = std::min(all.zones_kept, own.zones_removed);
  const bool rereads = !pending.change.reread.empty();
  if (files.failures.empty() && files.judged_zones.empty() && !rereads) return own;
  std::set<std::string> keys;
  for (const dns::Name& zone : pending.zones) keys.insert(dns::folded_key(zone));
  for (const auto& [zone, reason] : files.failures) {
    if (!keys.contains(dns::folded_key(zone))) continue;
    ++own.zones_failed;
    if (own.problems.size() < ZoneFileLoads::kMaxProblems)
      own.problems.push_back(fmt::format("{}: {}", to_text(zone), reason));
  }
  const auto count_own = [&](const std::vector<dns::Name>& zones) {
    return static_cast<std::uint64_t>(std::ranges::count_if(
        zones, [&](const dns::Name& zone) { return keys.contains(dns::folded_key(zone)); }));
  };
  if (rereads) own.zones_changed = count_own(files.changed_zones);
  own.zones_being_judged = count_own(files.judged_zones);
  return own;
}

}  // namespace pando::manager
