#include "manager/start/removed_zones.h"

#include <asio/post.hpp>
#include <utility>

#include "ipc/log.h"
#include "manager/start/created_zones.h"
#include "manager/support/rate_limited_log.h"

namespace pando::manager {

namespace {

/// Records that updates of this server made unlike the zone's file. A primary's records are no
/// updates of ours.
const DynamicChanges& updates_in(const MergeBase& state) {
  return state.own ? *state.own : state.dynamic_changes;
}

/// Whether the zone's file alone makes the same zone, with the same serial.
bool has_nothing(const MergeBase& state) {
  if (!updates_in(state).empty()) return false;
  return state.own || state.serial == state.file_serial;
}

}  // namespace

/// The findings of a pool thread.
struct RemovedZones::Found {
  Zones zones;
  std::vector<JournalEntry> records;  ///< for zones whose leaving the journal does not know, and
                                      ///< for zones without updates or a serial in the journal
  std::string problem;
};

namespace {

std::string updates_text(const RemovedZones::Zone& zone) {
  return zone.updates ? std::to_string(*zone.updates) : "unknown";
}

/// Adds a zone that `history` knows and the configuration does not.
Status add_zone(const JournalHistory& history, const dns::Name& name, std::uint64_t now,
                RemovedZones::Zones& zones, std::vector<JournalEntry>& records) {
  auto state = history.merge_base(name, UINT64_MAX);
  if (!state) return pass(state);
  // Its lost records may have had updates and later serials.
  if (history.may_have_lost(name)) state->lose();
  const auto known = state->serial ? state->serial : history.highest_serial(name);
  const dns::Serial serial = known.value_or(dns::Serial{});
  const DynamicChanges& updates = updates_in(*state);
  if (has_nothing(*state)) {
    records.push_back(purged_entry(name, serial));
    return {};
  }
  const auto removed_at = history.removed_at(name);
  if (!removed_at) records.push_back(removed_entry(name, serial, now));
  RemovedZones::Zone zone{serial, removed_at.value_or(now), {}};
  if (updates.known()) zone.updates = updates.entries().size();
  zones.emplace(name, zone);
  return {};
}

}  // namespace

void RemovedZones::look(RuntimePtr runtime, std::shared_ptr<HistorySource> history,
                        std::function<void(std::uint64_t)> done) {
  asio::post(pool_, [this, runtime = std::move(runtime), source = std::move(history),
                     done = std::move(done), position = committer_.position()]() mutable {
    auto found = std::make_shared<Found>();
    const auto journal = source->any(position);
    const std::uint64_t now = unix_seconds();
    found->problem = journal->problem();
    for (const dns::Name& name : journal->zone_names()) {
      if (!found->problem.empty()) break;
      if (runtime->settings.zones.find(name)) continue;
      if (auto added = add_zone(*journal, name, now, found->zones, found->records); !added)
        found->problem = added.error().text;
    }
    asio::post(io_, [this, found, runtime = std::move(runtime), done = std::move(done)] {
      const std::size_t before = zones_.size();
      take(*found, runtime);
      done(zones_.size() > before ? zones_.size() - before : 0);
    });
  });
}

/// An unreadable journal has no news of its zones, so the list stays as it was.
void RemovedZones::take(Found& found, const RuntimePtr& runtime) {
  if (!found.problem.empty())
    return log::warning("removed_zones_unknown", "reason", found.problem);
  const zone::StoreView view = committer_.current();
  // A zone whose removal lacked space is still served.
  std::erase_if(found.zones, [&](const auto& entry) { return bool(view.zone_at(entry.first)); });
  const Zones before = std::exchange(zones_, std::move(found.zones));
  report(before, runtime);
  looked_ = true;
  if (!found.records.empty()) write_records(std::move(found.records));
}

/// After a start the log has the whole list, later each zone that comes or goes.
void RemovedZones::report(const Zones& before, const RuntimePtr& runtime) const {
  if (!looked_ && !zones_.empty()) log::info("removed_zones_kept", "zones", zones_.size());
  LogLimit limit;
  for (const auto& [name, zone] : zones_) {
    if (before.contains(name) || (!looked_ && zone.removed_at < started_)) continue;
    log::detail::event(limit.level_of_next(log::Level::kWarning), "zone_removed", "zone",
                       to_text(name), "serial", zone.serial.value, "updates_kept",
                       updates_text(zone));
  }
  for (const auto& [name, zone] : before)
    if (runtime->settings.zones.find(name))
      log::detail::event(limit.level_of_next(log::Level::kInfo), "zone_returned", "zone",
                         to_text(name), "updates_kept",
                         updates_text(zone));
}

/// Zones that are in the store by then are configured again, and their records stay as they are.
void RemovedZones::write_records(std::vector<JournalEntry> records) {
  CommitRequest request;
  request.stage = [records = std::move(records)](Stage& stage) -> Status {
    for (const JournalEntry& record : records)
      if (!stage.draft.view().zone_at(record.zone)) stage.journal.push_back(record);
    return {};
  };
  request.done = [](const Result<std::uint64_t>& version) {
    if (!version) log::warning("updates_of_removed_zones_kept", "reason", version.error().text);
  };
  committer_.submit(std::move(request));
}

void RemovedZones::purge(const dns::Name& zone, std::function<void(const Status&)> done) {
  if (committer_.current().zone_at(zone))
    return done(fail(Errc::kExists, "{} is configured: only a removed zone can be purged",
                     to_text(zone)));
  const auto found = zones_.find(zone);
  if (found == zones_.end())
    return done(remove_created_zone(journal_, zone)
                    ? Status()
                    : fail(Errc::kNotFound, "no removed zone {}", to_text(zone)));
  CommitRequest request;
  request.stage = [zone, serial = found->second.serial](Stage& stage) -> Status {
    if (stage.draft.view().zone_at(zone))
      return fail(Errc::kExists, "{} was configured meanwhile", to_text(zone));
    stage.journal.push_back(purged_entry(zone, serial));
    return {};
  };
  request.done = [this, zone, done = std::move(done)](const Result<std::uint64_t>& version) {
    if (!version) return done(pass(version));
    zones_.erase(zone);
    remove_created_zone(journal_, zone);
    log::info("zone_purged", "zone", to_text(zone));
    done({});
  };
  committer_.submit(std::move(request));
}

void RemovedZones::drop_old(Clock::time_point now, std::uint64_t unix_time,
                            std::chrono::milliseconds limit) {
  if (limit.count() == 0 || now < next_drop_) return;
  next_drop_ = now + kDropInterval;
  const auto seconds = static_cast<std::uint64_t>(limit.count() / 1000);
  std::vector<dns::Name> old;
  for (const auto& [name, zone] : zones_)
    if (zone.removed_at + seconds < unix_time) old.push_back(name);
  for (const dns::Name& name : old)
    purge(name, [name](const Status& status) {
      if (!status)
        log::warning("zone_not_purged", "zone", to_text(name), "reason", status.error().text);
    });
}

}  // namespace pando::manager
