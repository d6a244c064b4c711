#include "manager/change/first_transfers.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "manager/change/change_staging.h"

namespace pando::manager {

namespace {

/// Zones of one version. A failure sends all of them to their primaries again.
constexpr std::size_t kMaxNewZones = 64;
/// A zone with more records is worth a version of its own.
constexpr std::uint64_t kMaxRecordsOfOne = 1'000;

bool is_loaded(const zone::ZoneView& zone) { return zone && zone.loaded(); }

}  // namespace

bool FirstTransfers::may_share_version(const ZoneChange& change) const {
  if (change.source != ChangeSource::kTransfer) return false;
  const bool is_large = std::get<WholeZone>(change.content).built->record_count > kMaxRecordsOfOne;
  return !is_large && !is_loaded(committer_.current().zone_at(change.zone));
}

void FirstTransfers::publish(ZonePtr zone) {
  if (alone_ > 0) {
    --alone_;
    return zone->put_alone();
  }
  waiting_.push_back({std::move(zone)});
  put_waiting();
}

/// The batch is taken when the version begins, so zones that come until then join it.
void FirstTransfers::put_waiting() {
  if (under_way_ || waiting_.empty()) return;
  under_way_ = true;
  auto batch = std::make_shared<Batch>();
  CommitRequest request;
  request.kind = CommitRequest::Kind::kAlone;
  request.stage = [this, batch, alive = alive_](Stage& step) -> Status {
    if (!*alive) return {};
    *batch = take_batch();
    return stage(*batch, step, committer_.zone_records());
  };
  request.done = [this, batch, alive = alive_](const Result<std::uint64_t>& version) {
    if (*alive) ended(*batch, version);
  };
  committer_.submit(std::move(request));
}

FirstTransfers::Batch FirstTransfers::take_batch() {
  const auto count = std::min(waiting_.size(), kMaxNewZones);
  const auto end = waiting_.begin() + static_cast<std::ptrdiff_t>(count);
  Batch batch(std::make_move_iterator(waiting_.begin()), std::make_move_iterator(end));
  waiting_.erase(waiting_.begin(), end);
  return batch;
}

Status FirstTransfers::stage(Batch& batch, Stage& stage, const ZoneRecords& records) {
  for (Member& member : batch) {
    ZoneChange& change = member.zone->change();
    const zone::ZoneView before = stage.draft.view().zone_at(change.zone);
    if (!before)
      member.refusal = fail(Errc::kNotFound, "{}: no such zone", dns::to_text(change.zone));
    else if (change.check)
      member.refusal = change.check(stage.draft.view());
    if (!member.refusal || before.loaded()) {
      member.state = member.refusal ? State::kHasData : State::kRefused;
      continue;
    }
    member.state = State::kPlaced;
    if (auto put = stage_whole_zone(stage, change, records); !put) return put;
    member.zone->staged(stage.changed.back());
  }
  return {};
}

/// Zones that a failed version did not touch get versions of their own, and so do as many later
/// ones.
void FirstTransfers::ended(Batch& batch, const Result<std::uint64_t>& version) {
  under_way_ = false;
  if (!version) alone_ += batch.size();
  for (Member& member : batch) {
    if (member.state == State::kPlaced)
      member.zone->done(version);
    else if (member.state == State::kRefused)
      member.zone->done(pass(member.refusal));
    else
      member.zone->put_alone();
  }
  put_waiting();
}

}  // namespace pando::manager
