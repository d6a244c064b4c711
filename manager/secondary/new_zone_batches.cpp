#include "manager/secondary/new_zone_batches.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "manager/support/withheld_data.h"
#include "zone/draft/built.h"

namespace pando::manager {

namespace {

/// Zones of one version. A failure sends all of them to their primaries again.
constexpr std::size_t kMostNewZones = 64;
/// A zone with more records is worth a version of its own.
constexpr std::uint64_t kMostRecordsOfOne = 1'000;

bool is_loaded(const zone::ZoneView& zone) { return zone && zone.loaded(); }

}  // namespace

struct NewZoneBatches::NewZone {
  dns::Name apex;
  std::shared_ptr<zone::BuiltZone> built;
  shm::Transaction built_in;
  Committer::Finished done;
  enum class State : std::uint8_t {
    kWaits,
    kPlaced,   // `built_in` has become part of the version
    kGone,     // left the configuration
    kHasData,  // from another attempt meanwhile
  } state = State::kWaits;
};

NewZoneBatches::NewZoneBatches(Committer& committer) : committer_(committer) {}

NewZoneBatches::~NewZoneBatches() { *alive_ = false; }

void NewZoneBatches::put(const dns::Name& apex, std::shared_ptr<zone::BuiltZone> built,
                         shm::Transaction&& built_in, Committer::Finished done) {
  NewZone zone{apex, std::move(built), std::move(built_in), std::move(done)};
  const bool is_large = zone.built->record_count > kMostRecordsOfOne;
  if (is_large || is_loaded(committer_.current().zone_at(apex))) return put_alone(std::move(zone));
  if (alone_ > 0) {
    --alone_;
    return put_alone(std::move(zone));
  }
  waiting_.push_back(std::move(zone));
  put_waiting();
}

void NewZoneBatches::put_alone(NewZone&& zone) {
  committer_.put_zone(zone.apex, std::move(zone.built), std::move(zone.built_in), {},
                      std::move(zone.done));
}

/// The batch is taken when the version begins, so zones that come until then join it.
void NewZoneBatches::put_waiting() {
  if (under_way_ || waiting_.empty()) return;
  under_way_ = true;
  auto batch = std::make_shared<Batch>();
  CommitRequest request;
  request.kind = CommitRequest::Kind::kAlone;
  request.stage = [this, batch, alive = alive_](Stage& step) -> Status {
    if (*alive) *batch = take_batch();
    return stage(*batch, step);
  };
  request.done = [this, batch, alive = alive_](const Result<std::uint64_t>& version) {
    if (*alive) ended(*batch, status_of(version));
  };
  committer_.submit(std::move(request));
}

NewZoneBatches::Batch NewZoneBatches::take_batch() {
  const auto count = std::min(waiting_.size(), kMostNewZones);
  const auto end = waiting_.begin() + static_cast<std::ptrdiff_t>(count);
  Batch batch(std::make_move_iterator(waiting_.begin()), std::make_move_iterator(end));
  waiting_.erase(waiting_.begin(), end);
  return batch;
}

Status NewZoneBatches::stage(Batch& batch, Stage& stage) {
  for (NewZone& zone : batch) {
    const zone::ZoneView before = stage.draft.view().zone_at(zone.apex);
    if (!before || before.loaded()) {
      zone.state = before ? NewZone::State::kHasData : NewZone::State::kGone;
      continue;
    }
    zone.state = NewZone::State::kPlaced;
    stage.use_reserve(zone.built_in.reserve_use());
    stage.transaction.absorb(std::move(zone.built_in));
    if (auto placed = stage.draft.put_zone(zone.apex, *zone.built, {}); !placed) return placed;
    if (auto dropped = drop_withheld_data(stage.draft, zone.apex); !dropped) return dropped;
  }
  return {};
}

/// Zones that a failure has left untouched get their own versions, and so do as many new ones: in
/// a full store the next batch would fail as this one did.
void NewZoneBatches::ended(Batch& batch, const Status& status) {
  under_way_ = false;
  if (!status) alone_ += batch.size();
  for (NewZone& zone : batch) {
    if (zone.state == NewZone::State::kPlaced) {
      if (status) committer_.new_zone_put(zone.apex);
      zone.done(status);
    } else if (zone.state == NewZone::State::kGone) {
      zone.done(fail(Errc::kNotFound, "{}: no such zone", dns::to_text(zone.apex)));
    } else {
      put_alone(std::move(zone));
    }
  }
  put_waiting();
}

}  // namespace pando::manager
