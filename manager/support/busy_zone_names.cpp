#include "manager/support/busy_zone_names.h"

#include <set>

#include "ipc/busy_zones.h"

namespace pando::manager {

std::vector<BusyZoneNames::Notes> BusyZoneNames::read(shm::SlotTable& slots) {
  std::vector<Notes> all;
  for (const std::uint32_t slot : slots.numbers()) {
    const shm::SlotPage* page = slots.page(slot);
    if (page == nullptr) continue;
    for (std::size_t i = 0; i < ipc::kBusyZones; ++i) {
      const auto one = ipc::BusyZone::of(
          page->counters[ipc::kBusyBase + i].load(std::memory_order_relaxed));
      if (one.notes != 0) all.push_back({slot, one.zone, one.notes});
    }
  }
  return all;
}

/// Names of the call before that are still those of their entries: an entry goes to another zone
/// when its zone is gone.
BusyZoneNames::Names BusyZoneNames::known(const std::vector<Notes>& notes,
                                  const zone::StoreView& version) const {
  Names known;
  for (const Notes& one : notes) {
    const auto name = names_.find(one.zone);
    if (name == names_.end()) continue;
    const zone::ZoneView zone = version.zone_at(name->second);
    if (zone && zone.side_index() == one.zone) known.insert(*name);
  }
  return known;
}

ipc::ZoneQueriesResult BusyZoneNames::with_names(const std::vector<Notes>& notes,
                                             const zone::StoreView& version) {
  const std::scoped_lock lock(mutex_);
  names_ = known(notes, version);
  std::set<std::uint32_t> unknown;
  for (const Notes& one : notes)
    if (!names_.contains(one.zone)) unknown.insert(one.zone);
  if (!unknown.empty())
    version.for_each_zone([&](const zone::ZoneView& zone) {
      if (unknown.contains(zone.side_index()))
        names_.emplace(zone.side_index(), dns::Name(zone.apex()));
    });
  ipc::ZoneQueriesResult result;
  for (const Notes& one : notes) {
    const auto name = names_.find(one.zone);
    if (name != names_.end())
      result.rows.push_back(
          {one.slot, to_text(name->second), one.count * ipc::kQuestionsPerNote});
  }
  return result;
}

}  // namespace pando::manager
