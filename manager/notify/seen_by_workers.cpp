#include "manager/notify/seen_by_workers.h"

#include "ipc/seen_clients.h"

namespace pando::manager {

std::uint64_t seen_by_workers(shm::SlotTable& slots, const IpAddress& address) {
  const std::uint64_t hash = ipc::seen_hash(address.resolved());
  std::uint64_t all = 0;
  for (const std::uint32_t number : slots.numbers()) {
    const shm::SlotPage* page = slots.page(number);
    if (page == nullptr) continue;
    const std::size_t index = ipc::find_seen(page->counters, hash);
    if (index == 0) continue;
    const std::uint64_t value = page->counters[index].load(std::memory_order_relaxed);
    if (ipc::is_seen(value, hash)) all = all * 31 + value;
  }
  return all;
}

}  // namespace pando::manager
