#include "manager/commit/zone_table_sync.h"

#include <algorithm>

#include "base/unix_time.h"
#include "ipc/log.h"
#include "manager/journal/record/journal_payload.h"
#include "shm/side_table.h"

namespace pando::manager {

namespace {

void set_all(std::vector<bool>& bits, const std::vector<std::uint32_t>& indexes) {
  for (const std::uint32_t index : indexes) {
    if (bits.size() <= index) bits.resize(index + 1U);
    bits[index] = true;
  }
}

/// Limit of walks over all zones, when some removals lack space.
constexpr unsigned kMaxWalks = 8;
/// Limit of settings that are kept encoded. Templates are few, and settings of one zone alone are
/// not needed again.
constexpr std::size_t kMaxKept = 1024;
/// Limit of zones whose settings are found not to fit, one by one.
constexpr std::uint64_t kMaxUnfit = 32;
}  // namespace

// The results of a slice count only after its version was published.

struct ZoneTableSync::Removal {
  std::vector<JournalEntry> gone;  ///< the records of removed zones
  RefusedZones not_removed;        ///< zones whose removal lacks space
  dns::Name after;                 ///< the last zone done
  std::uint64_t loaded = 0;
  std::uint64_t unloaded = 0;
  std::vector<std::uint32_t> freed;  ///< side table entries of removed zones
  bool cut = false;  ///< the slice ended before a zone to remove, left for the next step
  bool last = false;
};

struct ZoneTableSync::Putting {
  std::uint64_t added = 0;  ///< zones tried, counted even when the step fails
  std::uint64_t changed = 0;
  std::uint32_t next_side = 0;
  std::vector<std::uint32_t> taken;  ///< side table entries of new zones
  std::vector<std::uint32_t> other;  ///< side table entries of zones with other settings
  RefusedZones passed;               ///< new zones that were not tried
  std::size_t first_passed = 0;      ///< index of the first of them
  bool last = false;
};

ZoneNames make_zone_names(std::vector<dns::Name> names) {
  std::sort(names.begin(), names.end(), dns::CanonicalLess());
  const auto same = [](const dns::Name& a, const dns::Name& b) { return a.view() == b.view(); };
  names.erase(std::unique(names.begin(), names.end(), same), names.end());
  return std::make_shared<const std::vector<dns::Name>>(std::move(names));
}

/// Zones of the store that may have to be removed, in canonical order: all, or those named.
class ZoneTableSync::Candidates {
 public:
  /// `after`: null for the first zone.
  Candidates(const zone::StoreView& view, const ZoneNames& only, const dns::Name* after)
      : view_(view), only_(only), walk_(view) {
    if (only_) {
      next_ = after == nullptr
                  ? only_->begin()
                  : std::upper_bound(only_->begin(), only_->end(), *after, dns::CanonicalLess());
    } else if (after != nullptr) {
      walk_.seek_after(*after);
    }
  }

  /// Null after the last zone.
  zone::ZoneView next() {
    if (!only_) return walk_.next();
    while (next_ != only_->end())
      if (const zone::ZoneView zone = view_.zone_at(*next_++)) return zone;
    return {};
  }

 private:
  const zone::StoreView& view_;
  const ZoneNames& only_;
  zone::ZoneWalk walk_;
  std::vector<dns::Name>::const_iterator next_;
};

ZoneTableSync::ZoneTableSync(shm::Store& store, Committer& committer, RuntimePtr runtime, Done done)
    : store_(store), committer_(committer), runtime_(std::move(runtime)), done_(std::move(done)) {}

void ZoneTableSync::run(shm::Store& store, Committer& committer, RuntimePtr runtime, Done done) {
  std::shared_ptr<ZoneTableSync> sync(
      new ZoneTableSync(store, committer, std::move(runtime), std::move(done)));
  sync->remove_next();
}

void ZoneTableSync::run_for(shm::Store& store, Committer& committer, RuntimePtr runtime,
                            ZoneNames only, SideIndexes sides, Done done) {
  std::shared_ptr<ZoneTableSync> sync(
      new ZoneTableSync(store, committer, std::move(runtime), std::move(done)));
  for (const dns::Name& name : *only)
    if (const auto place = sync->runtime_->settings.zones.find(name))
      sync->places_.push_back(static_cast<std::uint32_t>(*place));
  sync->only_ = std::move(only);
  sync->counts_.sides = std::move(sides);
  sync->remove_next();
}

std::size_t ZoneTableSync::zone_count() const noexcept {
  return only_ ? places_.size() : runtime_->settings.zones.size();
}

config::ZoneRef ZoneTableSync::zone_at(std::size_t number) const noexcept {
  return runtime_->settings.zones[only_ ? places_[number] : number];
}

void ZoneTableSync::submit(std::function<Status(Stage&)> stage,
                           std::function<void(const Status&)> done) {
  CommitRequest request;
  if (alone_) request.kind = CommitRequest::Kind::kAlone;
  request.stage = [stage = std::move(stage)](Stage& step) {
    step.use_reserve(shm::Reserve::kHalf);
    return stage(step);
  };
  request.done = [done = std::move(done)](const Result<std::uint64_t>& version) {
    done(status_of(version));
  };
  committer_.submit(std::move(request));
}

/// Whether a failed request is tried again in a version of its own. Records of other requests may
/// have failed the journal, which a request without records does not need. Other requests may also
/// have taken the space.
bool ZoneTableSync::try_alone(const Error& error) {
  return (error.code == Errc::kIo || error.code == Errc::kFull) && !std::exchange(alone_, true);
}

void ZoneTableSync::finish(const Status& status) {
  const std::string text = refused_.report();
  if (!status || text.empty()) return done_(status, std::move(counts_));
  counts_.but_for_some = true;
  done_(fail(Errc::kFull, "{}", text), std::move(counts_));
}

// First the zones of the store: their side table entries, and the zones to remove. ----------------

void ZoneTableSync::remove_next() {
  auto slice = std::make_shared<Removal>();
  submit(
      [self = shared_from_this(), slice](Stage& stage) -> Status {
        auto removed = self->remove_slice(stage.draft, *slice);
        if (removed && self->noting_)
          stage.journal.insert(stage.journal.end(), slice->gone.begin(), slice->gone.end());
        return removed;
      },
      [self = shared_from_this(), slice](const Status& status) {
        status ? self->removed(*slice) : self->not_removed(*slice, status.error());
      });
}

void ZoneTableSync::removed(const Removal& slice) {
  alone_ = false;
  after_ = slice.after;
  started_ = true;
  counts_.removed += slice.gone.size();
  counts_.loaded += slice.loaded;
  counts_.unloaded += slice.unloaded;
  SideIndexes& sides = counts_.sides;
  for (const std::uint32_t side : slice.freed) {
    if (side < sides.used.size()) sides.used[side] = false;
    sides.first = std::min(sides.first, side);
  }
  refused_.not_removed.add(slice.not_removed);
  room_.taken(slice.gone.size());
  if (!slice.cut) room_.next();
  if (!slice.last || walks_again()) return remove_next();
  begin_slice();
  put_next();
}

/// Removed zones make space for further removals, once compaction has followed.
bool ZoneTableSync::walks_again() {
  room_ = {};
  const bool gained = std::exchange(removed_, counts_.removed) < counts_.removed;
  if (refused_.not_removed.zones() == 0 || !gained || ++walks_ == kMaxWalks) return false;
  refused_.not_removed = {};
  if (!only_) counts_.sides = {};
  counts_.loaded = 0;
  started_ = false;
  return true;
}

/// A removal needs space before the removal frees any (shm/map/reserve.h), so fewer removals at
/// once need less. Removed zones must not stay in service because the journal cannot be written.
void ZoneTableSync::not_removed(const Removal& slice, const Error& error) {
  const bool removes = !slice.gone.empty();
  if (error.code == Errc::kFull && removes) {
    refused_.last_text = error.text;
    room_.refused(slice.gone.size());
    return remove_next();
  }
  if (try_alone(error)) return remove_next();
  if (error.code != Errc::kIo || !removes || !noting_) return finish(pass(error));
  noting_ = false;
  log::warning("updates_of_removed_zones_kept", "reason", error.text);
  remove_next();
}

Status ZoneTableSync::remove_slice(zone::Draft& draft, Removal& slice) {
  slice = {};
  slice.after = after_;
  {
    const zone::StoreView view = draft.view();
    Candidates candidates(view, only_, started_ ? &after_ : nullptr);
    bool goes_on = true;
    for (std::size_t i = 0; i < kSlice && goes_on; ++i) {
      const zone::ZoneView zone = candidates.next();
      slice.last = !zone;
      goes_on = !slice.last && add_to_slice(zone, slice);
    }
  }
  for (const JournalEntry& gone : slice.gone)
    if (auto removed = draft.remove_zone(gone.zone); !removed) return removed;
  return {};
}

/// False ends the slice.
bool ZoneTableSync::add_to_slice(const zone::ZoneView& zone, Removal& slice) {
  const dns::Name apex(zone.apex());
  const std::size_t most = room_.most();
  const bool goes = !runtime_->settings.zones.find(zone.apex());
  slice.cut = goes && most > 0 && slice.gone.size() >= most;
  if (slice.cut) return false;
  slice.after = apex;
  if (goes && most > 0) {
    slice.freed.push_back(zone.side_index());
    if (zone.loaded()) ++slice.unloaded;
    // A secondary's data can be sent again, and its copy goes.
    slice.gone.push_back(is_secondary(zone) ? purged_entry(apex, zone.serial())
                                            : removed_entry(apex, zone.serial(), unix_seconds()));
    return true;
  }
  keep(zone, slice);
  if (goes) slice.not_removed.add(apex, refused_.last_text);
  return !goes || room_.gives_up();
}

void ZoneTableSync::keep(const zone::ZoneView& zone, Removal& slice) {
  std::vector<bool>& used = counts_.sides.used;
  if (used.size() <= zone.side_index()) used.resize(zone.side_index() + 1U);
  used[zone.side_index()] = true;
  if (zone.loaded()) ++slice.loaded;
}

// Then the configuration: new zones, and zones with other settings. -------------------------------

void ZoneTableSync::begin_slice() {
  slice_end_ = std::min(next_zone_ + kSlice, zone_count());
  room_.next();
}

void ZoneTableSync::put_next() {
  auto slice = std::make_shared<Putting>();
  submit(
      [self = shared_from_this(), slice](Stage& stage) -> Status {
        auto put = self->put_slice(stage.draft, *slice);
        if (slice->added > 0) stage.reserve = shm::Reserve::kKept;
        return put;
      },
      [self = shared_from_this(), slice](const Status& status) {
        status ? self->put(*slice) : self->not_put(*slice, status.error());
      });
}

void ZoneTableSync::put(const Putting& slice) {
  alone_ = false;
  counts_.added += slice.added;
  counts_.changed += slice.changed;
  counts_.sides.first = slice.next_side;
  set_all(counts_.sides.used, slice.taken);
  set_all(counts_.counted, slice.taken);
  set_all(counts_.counted, slice.other);
  if (slice.last) return finish({});
  go_on_behind(slice);
  put_next();
}

/// Chooses the next zones after a published slice. Zones that were passed over are tried next, or
/// left out. The first zone without space is left out alone; after many failures all passed ones
/// are.
void ZoneTableSync::go_on_behind(const Putting& slice) {
  const bool tried = room_.most() > 0;
  room_.taken(slice.added);
  next_zone_ = slice_end_;
  if (slice.passed.zones() > 0 && tried) {
    next_zone_ = slice.first_passed;
  } else if (slice.passed.zones() > 0 && room_.gives_up()) {
    refused_.left_out.add(slice.passed);
  } else if (slice.passed.zones() > 0) {
    refused_.left_out.add(slice.passed.first(), refused_.last_text);
    next_zone_ = slice.first_passed + 1;
    room_.next();
  }
  if (next_zone_ == slice_end_) begin_slice();
}

/// After an error the zones that fit are served all the same, under the server's new settings.
void ZoneTableSync::not_put(const Putting& slice, const Error& error) {
  const bool full = error.code == Errc::kFull;
  if (full && slice.added > 0) {
    refused_.last_text = error.text;
    room_.refused(slice.added);
    return put_next();
  }
  if (try_alone(error)) return put_next();
  const std::size_t zones = slice_end_ - next_zone_;
  if (!full || zones == 0 || refused_.unfit.zones() == kMaxUnfit)
    return put_server_settings_and_finish(error);
  put_fewer(zones, error);
}

/// Settings may not fit into half of the reserve. The slice is halved until one zone remains, and
/// that zone keeps its old settings.
void ZoneTableSync::put_fewer(std::size_t zones, const Error& error) {
  if (zones > 1) {
    slice_end_ = next_zone_ + zones / 2;
    return put_next();
  }
  refused_.unfit.add(zone_at(next_zone_).name, error.text);
  next_zone_ = slice_end_;
  begin_slice();
  put_next();
}

void ZoneTableSync::put_server_settings_and_finish(const Error& error) {
  committer_.edit(
      [self = shared_from_this()](zone::Draft& draft) { return self->put_server_settings(draft); },
      [self = shared_from_this(), error](const Status&) { self->finish(pass(error)); },
      shm::Reserve::kHalf);
}

Status ZoneTableSync::put_server_settings(zone::Draft& draft) const {
  const config::Settings& settings = runtime_->settings;
  return draft.put_server_settings(config::compile(settings.server, settings.limits));
}

const zone::EncodedSettings& ZoneTableSync::settings_of(const config::ZoneOptions* options) {
  const auto found = compiled_.find(options);
  if (found != compiled_.end()) return found->second;
  if (compiled_.size() >= kMaxKept) compiled_.clear();
  return compiled_.try_emplace(options, config::compile(*options, runtime_->settings))
      .first->second;
}

Status ZoneTableSync::put_slice(zone::Draft& draft, Putting& slice) {
  slice = {};
  slice.next_side = counts_.sides.first;
  for (std::size_t i = next_zone_; i < slice_end_; ++i) {
    const config::ZoneRef zone = zone_at(i);
    const zone::ZoneView live = draft.view().zone_at(zone.name);
    Status put;
    if (live) {
      put = put_known(draft, slice, zone, live);
    } else if (slice.added < room_.most()) {
      put = put_new(draft, slice, zone);
    } else {
      if (slice.passed.zones() == 0) slice.first_passed = i;
      slice.passed.add(zone.name, refused_.last_text);
    }
    if (!put) return put;
  }
  slice.last = slice_end_ == zone_count() && slice.passed.zones() == 0;
  return slice.last ? put_server_settings(draft) : Status();
}

Status ZoneTableSync::put_known(zone::Draft& draft, Putting& slice, const config::ZoneRef& zone,
                                const zone::ZoneView& live) {
  const std::uint32_t side = live.side_index();
  const zone::EncodedSettings& encoded = settings_of(zone.options);
  const bool is_same = live.settings_tag() == encoded.tag;
  if (!zone.options->is_secondary()) {
    // The expiry time of a former secondary must not stop a primary zone. The end of signatures is
    // that of the data, which stay.
    clear_times(side);
    // The next load of the zone file decides whether the file matches the zone.
    if (!is_same && was_secondary(live))
      if (auto put = draft.put_zone_source(zone.name, {}); !put) return put;
    // Its updates are in no version of the former primary.
    if (zone::primary_serial(live))
      if (auto put = draft.put_primary_serial(zone.name, std::nullopt); !put) return put;
  }
  if (is_same) return {};
  ++slice.changed;
  slice.other.push_back(side);
  return draft.put_zone_settings(zone.name, encoded, side);
}

Status ZoneTableSync::put_new(zone::Draft& draft, Putting& slice, const config::ZoneRef& zone) {
  ++slice.added;
  std::uint32_t side = slice.next_side;
  const std::vector<bool>& used = counts_.sides.used;
  while (side < used.size() && used[side]) ++side;
  if (side >= shm::Store::kSideEntries)
    return fail(Errc::kFull, "more than {} zones", shm::Store::kSideEntries);
  slice.next_side = side + 1;
  slice.taken.push_back(side);
  clear_side(side);
  return draft.put_zone_settings(zone.name, settings_of(zone.options), side);
}

bool ZoneTableSync::was_secondary(const zone::ZoneView& zone) {
  if (secondary_.size() >= kMaxKept) secondary_.clear();
  const auto [known, fresh] = secondary_.try_emplace(zone.settings_tag());
  if (fresh) known->second = is_secondary(zone);
  return known->second;
}

/// Clears what the entry's former owner left.
void ZoneTableSync::clear_side(std::uint32_t index) {
  clear_times(index);
  shm::set_signatures_end(store_, index, 0);
}

/// Clears the times of a secondary zone.
void ZoneTableSync::clear_times(std::uint32_t index) {
  if (shm::known_side(store_.window(), index) == nullptr) return;
  shm::Store::SideEntry* entry = store_.side(index);
  entry->expires_at.store(0, std::memory_order_relaxed);
  entry->next_refresh.store(0, std::memory_order_relaxed);
  entry->last_ok.store(0, std::memory_order_relaxed);
}

}  // namespace pando::manager
