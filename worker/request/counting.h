#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <span>

#include "ipc/busy_zones.h"
#include "ipc/counters.h"
#include "ipc/seen_clients.h"
#include "ipc/zone_counters.h"
#include "shm/counts/count_rows.h"
#include "shm/slots.h"

namespace pando::worker {

using CounterArray = std::array<std::atomic<std::uint64_t>, shm::kCountersPerSlot>;
static_assert(ipc::kCountersUsed <= shm::kCountersPerSlot);
static_assert(std::tuple_size_v<decltype(shm::TransferRow::counters)> ==
              static_cast<std::size_t>(ipc::ZoneTransfer::kEnd));

/// The worker's counters. The worker is the only writer, so a count is a plain relaxed load and
/// store without a locked instruction. Readers in other processes may see the count before.
class Counting {
 public:
  /// `transfers`: for counts of single zones; empty: none are made.
  explicit Counting(CounterArray& counters, std::span<shm::TransferRow> transfers = {}) noexcept
      : counters_(&counters), transfers_(transfers) {}

  void add(ipc::Counter counter, std::uint64_t amount = 1) noexcept {
    bump(ipc::counter_index(counter), amount);
  }
  void set(ipc::Counter counter, std::uint64_t value) noexcept {
    (*counters_)[ipc::counter_index(counter)].store(value, std::memory_order_relaxed);
  }
  void opcode(std::uint8_t opcode) noexcept { bump(ipc::kOpcodeBase + (opcode & 0x0FU), 1); }
  void rcode(std::uint16_t rcode) noexcept { bump(ipc::rcode_index(rcode), 1); }
  void type(std::uint16_t type) noexcept { bump(ipc::type_index(type), 1); }
  /// Counts a transfer of the zone. Zones without a row in the page share one count.
  void transfer(dns::NameView zone, ipc::ZoneTransfer what) noexcept {
    const std::uint64_t key = ipc::zone_count_key(zone);
    if (shm::TransferRow* row = shm::take_count_row(transfers_, key))
      shm::count_in_row(*row, static_cast<std::size_t>(what));
    else
      add(ipc::Counter::kTransfersWithoutRow);
  }
  /// The client has asked for a SOA record or a transfer.
  void seen(const IpAddress& client) noexcept {
    const std::uint64_t hash = ipc::seen_hash(client);
    std::size_t index = ipc::find_seen(*counters_, hash);
    if (index == 0) index = seen_to_replace();
    auto& place = (*counters_)[index];
    const std::uint64_t count = place.load(std::memory_order_relaxed) + 1;
    place.store(ipc::seen_value(hash, count), std::memory_order_relaxed);
  }
  /// A question about the zone is noted.
  void busy(std::uint32_t zone) noexcept {
    auto& place = (*counters_)[ipc::find_busy(*counters_, zone)];
    auto notes = ipc::BusyZone::of(place.load(std::memory_order_relaxed)).notes;
    if (notes != UINT32_MAX) ++notes;
    place.store(ipc::BusyZone{zone, notes}.value(), std::memory_order_relaxed);
  }
  /// `responses` were sent this long after their requests were received.
  void latency(std::uint64_t microseconds, std::uint64_t responses) noexcept {
    bump(ipc::latency_index(microseconds), responses);
    add(ipc::Counter::kLatencyMicroseconds, microseconds * responses);
  }
  [[nodiscard]] std::uint64_t value(std::size_t index) const noexcept {
    return (*counters_)[index].load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t value(ipc::Counter counter) const noexcept {
    return value(ipc::counter_index(counter));
  }

 private:
  /// Changes from query to query, so that no client's entry stays forever.
  [[nodiscard]] std::size_t seen_to_replace() const noexcept {
    const std::uint64_t queries =
        value(ipc::Counter::kQueriesUdp) + value(ipc::Counter::kQueriesTcp);
    return ipc::kSeenBase + queries % ipc::kSeenClients;
  }
  void bump(std::size_t index, std::uint64_t amount) noexcept {
    auto& counter = (*counters_)[index];
    counter.store(counter.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
  }
  CounterArray* counters_;
  std::span<shm::TransferRow> transfers_;
};

}  // namespace pando::worker
