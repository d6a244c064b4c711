#include "manager/secondary/transfer/difference_sequences.h"

#include <utility>

#include "manager/support/soa.h"

namespace pando::manager {

Status DifferenceSequences::begin(zone::Record&& soa, dns::Serial current, dns::Serial newest) {
  newest_ = newest;
  ++records_;
  return begin_sequence(std::move(soa), current);
}

Status DifferenceSequences::begin_sequence(zone::Record&& soa, dns::Serial expected) {
  const dns::Serial from = soa_serial(soa.rdata);
  if (from != expected)
    return fail(Errc::kInvalid, "difference from serial {} where {} is needed", from.value,
                expected.value);
  zone::Changeset& changes = changesets_.emplace_back();
  changes.zone = zone_;
  bytes_ += sizeof(zone::Changeset);
  adding_ = false;
  return keep(changes.removed, std::move(soa));
}

Status DifferenceSequences::keep(std::vector<zone::Record>& list, zone::Record&& record) {
  if (records_ > limits_.records)
    return fail(Errc::kFull, "changesets of more than {} records", limits_.records);
  bytes_ += sizeof(zone::Record) + record.owner.size() + record.rdata.size();
  if (bytes_ > limits_.bytes)
    return fail(Errc::kFull, "changesets of more than {} bytes", limits_.bytes);
  list.push_back(std::move(record));
  return {};
}

Result<bool> DifferenceSequences::take(zone::Record&& record) {
  ++records_;
  zone::Changeset& changes = changesets_.back();
  Status taken;
  if (record.type != dns::RRType::kSOA || !(record.owner == zone_)) {
    if (!record.owner.view().is_at_or_below(zone_))
      return fail(Errc::kInvalid, "{} is outside the zone", dns::to_text(record.owner));
    taken = keep(adding_ ? changes.added : changes.removed, std::move(record));
  } else if (!adding_) {
    to_ = soa_serial(record.rdata);
    if (!to_.ahead_of(soa_serial(changes.removed.front().rdata)))
      return fail(Errc::kInvalid, "difference to serial {}, which is not ahead", to_.value);
    adding_ = true;
    taken = keep(changes.added, std::move(record));
  } else if (to_ == newest_ && soa_serial(record.rdata) == newest_) {
    return true;
  } else {
    taken = begin_sequence(std::move(record), to_);
  }
  if (!taken) return pass(taken);
  return false;
}

}  // namespace pando::manager
