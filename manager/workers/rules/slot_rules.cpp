#include "manager/workers/rules/slot_rules.h"

#include <algorithm>

namespace pando::manager {

namespace {

bool is_vacant(const SlotFacts& slot, std::chrono::steady_clock::time_point now) noexcept {
  return !slot.has_process && !slot.connected && !slot.awaited && !slot.lost &&
         !slot.previous_layout && slot.next_step <= now && !(slot.draining() && slot.closes);
}

}  // namespace

SlotNeed need_of(const SlotFacts& slot, std::chrono::steady_clock::time_point now,
                 bool external) noexcept {
  if (!is_vacant(slot, now)) return SlotNeed::kNothing;
  if (slot.draining()) return SlotNeed::kEnd;
  return external ? SlotNeed::kNothing : SlotNeed::kWorker;
}

AfterEnd after_end(const SlotFacts& slot, bool has_remains, bool external) noexcept {
  if (slot.draining()) return AfterEnd::kRetire;
  if (!external) return AfterEnd::kRestart;
  return slot.awaited && !has_remains ? AfterEnd::kForget : AfterEnd::kAwait;
}

bool none_awaited(std::span<const SlotFacts> slots) noexcept {
  return std::none_of(slots.begin(), slots.end(), [](const SlotFacts& slot) {
    return slot.awaited || slot.previous_layout_awaited;
  });
}

std::vector<std::uint32_t> surplus_slots(std::span<const SlotFacts> slots, std::uint32_t count) {
  std::vector<std::uint32_t> staying;
  for (const SlotFacts& slot : slots)
    if (!slot.draining()) staying.push_back(slot.number);
  if (staying.size() <= count) return {};
  return {staying.rbegin(), staying.rend() - count};
}

std::optional<std::uint32_t> slot_to_hasten(std::span<const SlotFacts> slots,
                                            std::chrono::steady_clock::time_point soon) noexcept {
  const SlotFacts* next = nullptr;
  for (const SlotFacts& slot : slots) {
    if (slot.draining()) continue;
    if (slot.has_process || slot.previous_layout) return std::nullopt;
    if (slot.state != SlotState::kDead) continue;
    if (next == nullptr || slot.next_step < next->next_step) next = &slot;
  }
  if (next == nullptr || next->next_step <= soon) return std::nullopt;
  return next->number;
}

}  // namespace pando::manager
