#include "manager/secondary/refresh_slots.h"

namespace pando::manager {

void RefreshSlots::recheck_all() {
  for (const auto& [primary, queue] : waiting_) freed_.insert(primary);
}

bool RefreshSlots::has_room(const Endpoint& primary) const {
  return !full() && running_at(primary) < limits_.per_primary;
}

std::uint32_t RefreshSlots::running_at(const Endpoint& primary) const {
  const auto running = by_primary_.find(primary);
  return running == by_primary_.end() ? 0 : running->second;
}

void RefreshSlots::begin(const Endpoint& primary) {
  ++running_;
  ++by_primary_[primary];
}

void RefreshSlots::end(const Endpoint& primary) {
  --running_;
  const auto running = by_primary_.find(primary);
  if (running != by_primary_.end() && --running->second == 0) by_primary_.erase(running);
  if (!waiting_.empty()) freed_.insert(primary);
}

void RefreshSlots::wait(const Endpoint& primary, const dns::Name& zone) {
  waiting_[primary].push_back(zone);
}

std::optional<dns::Name> RefreshSlots::next(const WantedPrimary& wanted) {
  while (!freed_.empty() && !full()) {
    const auto queue = waiting_.find(*freed_.begin());
    if (queue == waiting_.end() || queue->second.empty()) {
      if (queue != waiting_.end()) waiting_.erase(queue);
      freed_.erase(freed_.begin());
      continue;
    }
    const Endpoint* primary = wanted(queue->second.front());
    if (primary != nullptr && *primary == queue->first && !has_room(*primary)) {
      freed_.erase(freed_.begin());
      continue;
    }
    const dns::Name zone = queue->second.front();
    queue->second.pop_front();
    if (primary != nullptr) return zone;
  }
  return std::nullopt;
}

}  // namespace pando::manager
