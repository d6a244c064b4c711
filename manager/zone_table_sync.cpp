#include "manager/zone_table_sync.h"

#include "ipc/log.h"
#include "manager/journal_payload.h"
#include "shm/side_table.h"

namespace pando::manager {

namespace {
/// Zones looked at in one step of the commit thread: some 200 µs.
constexpr std::size_t kSlice = 256;
}  // namespace

/// What one step did; counts only when its version was published.
struct ZoneTableSync::Slice {
  Counts counts;
  dns::Name after;
  std::size_t next_zone = 0;
  bool last = false;
  std::vector<JournalEntry> gone;  ///< the notes that zones have left
};

ZoneTableSync::ZoneTableSync(shm::Store& store, Committer& committer, RuntimePtr runtime, Done done)
    : store_(store), committer_(committer), runtime_(std::move(runtime)), done_(std::move(done)) {}

void ZoneTableSync::run(shm::Store& store, Committer& committer, RuntimePtr runtime, Done done) {
  std::shared_ptr<ZoneTableSync> sync(
      new ZoneTableSync(store, committer, std::move(runtime), std::move(done)));
  sync->remove_next();
}

void ZoneTableSync::finish(const Status& status) { done_(status, counts_); }

// First the zones that are there: which entries of the side table they use, and which must go. ----

void ZoneTableSync::remove_next() {
  auto slice = std::make_shared<Slice>();
  CommitRequest request;
  request.stage = [self = shared_from_this(), slice](Stage& stage) -> Status {
    stage.use_reserve(shm::Reserve::kHalf);
    auto removed = self->remove_slice(stage.draft, *slice);
    if (removed && self->noting_)
      stage.journal.insert(stage.journal.end(), slice->gone.begin(), slice->gone.end());
    return removed;
  };
  request.done = [self = shared_from_this(), slice](const Result<std::uint64_t>& version) {
    if (!version) return self->not_removed(*slice, version.error());
    self->after_ = slice->after;
    self->counts_.removed += slice->counts.removed;
    self->counts_.loaded += slice->counts.loaded;
    self->started_ = true;
    if (slice->last)
      self->put_next();
    else
      self->remove_next();
  };
  committer_.submit(std::move(request));
}

/// A journal that cannot be written is no reason to go on serving zones that are to go.
void ZoneTableSync::not_removed(const Slice& slice, const Error& error) {
  if (!noting_ || slice.gone.empty()) return finish(tl::unexpected<Error>(error));
  noting_ = false;
  log::warning("updates_of_removed_zones_kept", "reason", error.text);
  remove_next();
}

Status ZoneTableSync::remove_slice(zone::Draft& draft, Slice& slice) {
  slice = {};
  slice.after = after_;
  {
    const zone::Snapshot snapshot = draft.snapshot();
    zone::ZoneWalk walk(snapshot);
    if (started_) walk.seek_after(after_);
    for (std::size_t i = 0; i < kSlice && !slice.last; ++i) {
      const zone::ZoneView zone = walk.next();
      slice.last = !zone;
      if (slice.last) break;
      slice.after = dns::Name(zone.apex());
      if (!runtime_->settings.zones.find(zone.apex())) {
        slice.gone.push_back({slice.after, zone.serial(), zone.serial(), {}, RecordKind::kGone});
        continue;
      }
      if (used_.size() <= zone.side_index()) used_.resize(zone.side_index() + 1U);
      used_[zone.side_index()] = true;
      if (zone.loaded()) ++slice.counts.loaded;
    }
  }
  for (const JournalEntry& gone : slice.gone)
    if (auto removed = draft.remove_zone(gone.zone); !removed) return removed;
  slice.counts.removed = slice.gone.size();
  return {};
}

// Then the configuration: what is new, and whose settings differ. --------------------------------

void ZoneTableSync::put_next() {
  auto slice = std::make_shared<Slice>();
  CommitRequest request;
  request.stage = [self = shared_from_this(), slice](Stage& stage) -> Status {
    stage.use_reserve(shm::Reserve::kHalf);
    auto put = self->put_slice(stage.draft, *slice);
    if (slice->counts.added > 0) stage.reserve = shm::Reserve::kKept;
    return put;
  };
  request.done = [self = shared_from_this(), slice](const Result<std::uint64_t>& version) {
    if (!version) return self->not_put(tl::unexpected<Error>(version.error()));
    self->next_zone_ = slice->next_zone;
    self->counts_.added += slice->counts.added;
    self->counts_.changed += slice->counts.changed;
    if (slice->last)
      self->finish({});
    else
      self->put_next();
  };
  committer_.submit(std::move(request));
}

/// What fits of the list is served all the same, by the server's own rules.
void ZoneTableSync::not_put(const Status& status) {
  committer_.edit(
      [self = shared_from_this()](zone::Draft& draft) { return self->put_server_settings(draft); },
      [self = shared_from_this(), status](const Status&) { self->finish(status); },
      shm::Reserve::kHalf);
}

Status ZoneTableSync::put_server_settings(zone::Draft& draft) const {
  const config::Settings& settings = runtime_->settings;
  return draft.put_server_settings(config::compile(settings.server, settings.limits));
}

const zone::EncodedSettings& ZoneTableSync::settings_of(const config::ZoneOptions* options) {
  const auto found = compiled_.find(options);
  if (found != compiled_.end()) return found->second;
  const zone::EncodedSettings encoded(config::compile(*options, runtime_->settings));
  return compiled_.emplace(options, encoded).first->second;
}

std::uint32_t ZoneTableSync::free_side_index() {
  while (side_hint_ < used_.size() && used_[side_hint_]) ++side_hint_;
  if (side_hint_ >= used_.size()) used_.resize(side_hint_ + 1U);
  used_[side_hint_] = true;
  return side_hint_;
}

Status ZoneTableSync::put_slice(zone::Draft& draft, Slice& slice) {
  slice = {};
  const config::Settings& settings = runtime_->settings;
  const std::size_t end = std::min(next_zone_ + kSlice, settings.zones.size());
  for (std::size_t i = next_zone_; i < end; ++i) {
    const config::ZoneRef zone = settings.zones[i];
    const zone::ZoneView live = draft.snapshot().zone_at(zone.name);
    const std::uint32_t index = live ? live.side_index() : free_side_index();
    if (index >= shm::Store::kSideEntries)
      return fail(Errc::kFull, "more than {} zones", shm::Store::kSideEntries);
    // What a former secondary's timers say must not stop a primary zone.
    if (!live || !zone.options->is_secondary()) clear_side(index);
    // Whether its file has to do with what it is now is looked at when that is loaded.
    if (live && !zone.options->is_secondary() && was_secondary(live))
      if (auto put = draft.put_zone_source(zone.name, {}); !put) return put;
    const zone::EncodedSettings& encoded = settings_of(zone.options);
    if (live && live.settings_tag() == encoded.tag) continue;
    if (auto put = draft.put_zone_settings(zone.name, encoded, index); !put) return put;
    ++(live ? slice.counts.changed : slice.counts.added);
  }
  slice.next_zone = end;
  slice.last = end == settings.zones.size();
  return slice.last ? put_server_settings(draft) : Status();
}

bool ZoneTableSync::was_secondary(const zone::ZoneView& zone) {
  const auto [known, fresh] = secondary_.try_emplace(zone.settings_tag());
  if (fresh) known->second = is_secondary(zone);
  return known->second;
}

/// A new zone knows nothing of the entry's former owner.
void ZoneTableSync::clear_side(std::uint32_t index) {
  if (shm::known_side(store_.window(), index) == nullptr) return;
  shm::Store::SideEntry* entry = store_.side(index);
  entry->expires_at.store(0, std::memory_order_relaxed);
  entry->next_refresh.store(0, std::memory_order_relaxed);
  entry->last_ok.store(0, std::memory_order_relaxed);
}

}  // namespace pando::manager
