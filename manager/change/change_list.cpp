#include "manager/change/change_list.h"

namespace pando::manager {

void ChangeList::remove(dns::NameView zone, const ChangeUnderWay& change) {
  const auto [begin, end] = changes_.equal_range(dns::hash_name(zone));
  for (auto at = begin; at != end; ++at)
    if (at->second.change == &change && at->second.zone == zone) return void(changes_.erase(at));
}

std::optional<ChangeUnderWay> ChangeList::oldest(dns::NameView zone) const {
  const ChangeUnderWay* oldest = nullptr;
  const auto [begin, end] = changes_.equal_range(dns::hash_name(zone));
  for (auto at = begin; at != end; ++at) {
    const auto& [name, change] = at->second;
    if (name == zone && (oldest == nullptr || change->since < oldest->since)) oldest = change;
  }
  return oldest == nullptr ? std::nullopt : std::optional(*oldest);
}

}  // namespace pando::manager
