#include "shm/inspect/slot_pages.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include "base/fd.h"
#include "shm/layout.h"
#include "shm/map/locks.h"
#include "shm/map/mapping.h"
#include "shm/slot_guard.h"

namespace pando::shm {

namespace {

void copy_leases(const SlotPage& page, SlotCopy& copy) {
  for (const Lease& lease : page.leases) {
    const std::uint64_t version = lease.epoch.load(std::memory_order_relaxed);
    if (version == 0) continue;
    ++copy.leases;
    const std::uint64_t since = lease.since.load(std::memory_order_relaxed);
    copy.lease_since = copy.lease_since == 0 ? since : std::min(copy.lease_since, since);
    copy.oldest_lease = copy.oldest_lease == 0 ? version : std::min(copy.oldest_lease, version);
  }
}

void copy_transfers(const SlotPage& page, SlotCopy& copy) {
  for (const TransferRow& row : page.transfers) {
    const std::uint64_t key = row.key.load(std::memory_order_acquire);
    if (key == 0) continue;
    SlotCopy::Transfers& transfers = copy.transfers.emplace_back();
    transfers.key = key;
    for (std::size_t i = 0; i < transfers.counters.size(); ++i)
      transfers.counters[i] = row.counters[i].load(std::memory_order_relaxed);
  }
}

/// Maps the page for the time of the copy: a worker may get a new file at any time.
std::optional<SlotCopy> copy_page(const std::string& path, std::uint64_t layout) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  struct stat status{};
  if (!file || ::fstat(file.get(), &status) != 0 ||
      status.st_size < static_cast<off_t>(sizeof(SlotPage)))
    return std::nullopt;
  const auto mapping = Mapping::map(file.get(), Access::kRead, sizeof(SlotPage), kPageBytes);
  if (!mapping) return std::nullopt;
  const GuardedPages guard(mapping->base(), sizeof(SlotPage));
  const SlotPage& page = *reinterpret_cast<const SlotPage*>(mapping->base());
  if (page.magic != kSlotMagic || page.layout != layout) return std::nullopt;
  SlotCopy copy;
  copy.number = page.slot;
  copy.pid = page.pid;
  copy.started = page.started;
  copy.pinned = page.epoch.load(std::memory_order_relaxed);
  copy_leases(page, copy);
  for (std::size_t i = 0; i < copy.counters.size(); ++i)
    copy.counters[i] = page.counters[i].load(std::memory_order_relaxed);
  copy_transfers(page, copy);
  return copy;
}

}  // namespace

Result<std::vector<SlotCopy>> copy_slots(const std::string& directory, int store,
                                         std::uint64_t layout) {
  auto numbers = slot_numbers(directory);
  if (!numbers) return pass(numbers);
  std::sort(numbers->begin(), numbers->end());
  std::vector<SlotCopy> copies;
  for (const std::uint32_t number : *numbers) {
    auto copy = copy_page(slot_path(directory, number), fold_layout(layout));
    if (!copy || copy->number != number) continue;
    copy->alive = find_lock(store, kSlotLockBase + number, 1).has_value();
    copies.push_back(std::move(*copy));
  }
  return copies;
}

}  // namespace pando::shm
