#include "http/observe/zone_activity.h"

#include <unordered_map>

#include "shm/counts/zone_counts.h"

namespace pando::http {

namespace {

using TransfersByKey = std::unordered_map<std::uint64_t, decltype(ZoneFacts::transfers_out)>;
static_assert(std::tuple_size_v<decltype(ZoneFacts::transfers_out)> ==
              std::tuple_size_v<decltype(shm::SlotCopy::Transfers::counters)>);
static_assert(std::tuple_size_v<decltype(ZoneFacts::counted)> == shm::kZoneCounters);

TransfersByKey transfers_by_key(const std::vector<shm::SlotCopy>& slots) {
  TransfersByKey sums;
  for (const shm::SlotCopy& slot : slots)
    for (const shm::SlotCopy::Transfers& row : slot.transfers) {
      auto& sum = sums[row.key];
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += row.counters[i];
    }
  return sums;
}

}  // namespace

std::optional<std::uint64_t> add_activity(std::vector<ZoneFacts>& zones,
                                          const std::vector<shm::SlotCopy>& slots,
                                          const std::string& directory) {
  const TransfersByKey transfers = transfers_by_key(slots);
  const auto counts = shm::ZoneCountsView::open(directory);
  for (ZoneFacts& zone : zones) {
    if (const auto found = transfers.find(zone.count_key); found != transfers.end())
      zone.transfers_out = found->second;
    if (!counts) continue;
    if (const auto found = counts->find(zone.count_key)) zone.counted = *found;
  }
  if (!counts) return std::nullopt;
  return counts->without_row();
}

}  // namespace pando::http
