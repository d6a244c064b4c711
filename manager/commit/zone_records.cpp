#include "manager/commit/zone_records.h"

#include "dns/folded_key.h"

namespace pando::manager {

bool ZoneRecords::has_merge_base(const dns::Name& zone) const {
  return merge_bases_.contains(dns::folded_key(zone));
}

void ZoneRecords::forget(const dns::Name& zone) {
  merge_bases_.erase(dns::folded_key(zone));
  pending_.drop(zone);
}

void ZoneRecords::published(const std::vector<JournalEntry>& group) {
  pending_.drop_written(group);
  for (const JournalEntry& entry : group) {
    if (entry.kind == RecordKind::kGone) ++gone_;
    if (entry.kind == RecordKind::kSource) merge_bases_.insert(dns::folded_key(entry.zone));
    if (entry.kind == RecordKind::kGone || entry.kind == RecordKind::kBase)
      merge_bases_.erase(dns::folded_key(entry.zone));
  }
}

}  // namespace pando::manager
