#include "manager/secondary/transfer/received_zone.h"

#include <utility>

namespace pando::manager {

Status ReceivedZone::add(zone::Record&& record) {
  if (limits_.zone_records != 0 && records_ >= limits_.zone_records)
    return fail(Errc::kFull, "more than {} records (limits.zone-records)", limits_.zone_records);
  if (!record.owner.view().is_at_or_below(zone_)) {
    ++foreign_;
    return {};
  }
  ++records_;
  if (!waits_) return put(record);
  waiting_.push_back(std::move(record));
  return {};
}

Status ReceivedZone::put(const zone::Record& record) {
  return comparison_ ? comparison_->add(record.owner, record.type, record.ttl, record.rdata)
                     : builder_.add(record.owner, record.type, record.ttl, record.rdata);
}

Status ReceivedZone::resume(const zone::ZoneView* live) {
  waits_ = false;
  if (live != nullptr) comparison_.emplace(*live, limits_);
  for (const zone::Record& record : std::exchange(waiting_, {}))
    if (auto added = put(record); !added) return added;
  return {};
}

Status ReceivedZone::build_instead() {
  if (!comparison_) return {};
  auto given = comparison_->give_to(builder_);
  comparison_.reset();
  return given;
}

}  // namespace pando::manager
