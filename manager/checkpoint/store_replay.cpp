#include "manager/checkpoint/store_replay.h"

#include <algorithm>
#include <utility>

#include "manager/commit/zone_diff.h"
#include "manager/journal/record/journal_payload.h"
#include "manager/support/soa.h"

namespace pando::manager {

namespace {

/// Makes a changeset from another serial one from the zone's own. False: the zone has no SOA.
bool take_over_soa(const zone::ZoneView& zone, dns::Serial to, zone::Changeset& changes) {
  auto present = soa_record(zone);
  if (!present) return false;
  const auto is_soa = [](const zone::Record& record) {
    return record.type == dns::RRType::kSOA;
  };
  std::erase_if(changes.removed, is_soa);
  if (std::none_of(changes.added.begin(), changes.added.end(), is_soa)) {
    changes.added.push_back(*present);
    set_soa_serial(changes.added.back().rdata, to);
  }
  changes.removed.push_back(std::move(*present));
  return true;
}

}  // namespace

zone::Draft& StoreReplay::draft() {
  if (!next_) next_.emplace(store_, NextVersion::Step::kRecovery);
  return next_->draft();
}

Result<ReplayStep> StoreReplay::take(const JournalRecord& record, bool may_lack, bool lacks) {
  const zone::ZoneView present = zone(record.zone);
  ReplayedZone known{{}, may_lack, lacks};
  if (present && present.loaded()) known.serial = present.serial();
  const ReplayStep step = rules_.step(record, known);
  Status done;
  switch (step) {
    case ReplayStep::kApply:
    case ReplayStep::kApplyBehindGap:
      return apply(record, step, known);
    case ReplayStep::kNameFile:
      done = name_file(record);
      break;
    case ReplayStep::kRemove:
      if (!present) return ReplayStep::kNothing;
      done = draft().remove_zone(record.zone);
      break;
    case ReplayStep::kForget:
      done = forget(present, record.zone);
      break;
    case ReplayStep::kReload:
      done = draft().unload_zone(record.zone);
      break;
    case ReplayStep::kNothing:
    case ReplayStep::kConfirm:
    case ReplayStep::kSkip:
    case ReplayStep::kNeverTookPlace:
      break;
  }
  if (!done) return pass(done);
  return step;
}

Result<ReplayStep> StoreReplay::apply(const JournalRecord& record, ReplayStep step,
                                      const ReplayedZone& zone) {
  auto changes = served_changes(record);
  if (!changes) return pass(changes);
  if (step == ReplayStep::kApplyBehindGap &&
      !take_over_soa(this->zone(record.zone), record.to, *changes))
    return ReplayStep::kSkip;
  auto done = change(*changes);
  if (done) done = follow_primary(record);
  if (done) return step;
  const auto instead =
      done.error().code == Errc::kInvalid ? rules_.unfitting(zone) : std::nullopt;
  if (!instead) return pass(done);
  if (*instead == ReplayStep::kReload)
    if (auto unloaded = draft().unload_zone(record.zone); !unloaded) return pass(unloaded);
  return *instead;
}

Status StoreReplay::change(const zone::Changeset& changes) {
  return status_of(draft().apply(changes, limits_));
}

/// Renewed signatures leave the primary's serial as it is.
Status StoreReplay::follow_primary(const JournalRecord& record) {
  std::optional<dns::Serial> serial;
  if (record.kind == RecordKind::kSigned) {
    const auto inner = decode_signed(record.payload);
    if (!inner) return pass(inner);
    if (!inner->primary_serial) return {};
    serial = inner->primary_serial;
  }
  if (zone::primary_serial(zone(record.zone)) == serial) return {};
  return draft().put_primary_serial(record.zone, serial);
}

Status StoreReplay::name_file(const JournalRecord& record) {
  auto source = decode_source(record.payload);
  if (!source) return pass(source);
  return draft().put_zone_source(record.zone, *source);
}

Status StoreReplay::forget(const zone::ZoneView& zone, const dns::Name& name) {
  if (!zone) return {};
  const bool is_loaded = zone.loaded();
  if (zone.has_snapshots())
    if (auto dropped = draft().drop_snapshots(name); !dropped) return dropped;
  return is_loaded ? draft().unload_zone(name) : Status();
}

Status StoreReplay::publish(std::uint64_t position) {
  static_cast<void>(draft());
  auto version = next_->publish(position);
  if (!version) return pass(version);
  next_.reset();
  return {};
}

}  // namespace pando::manager
