#include "manager/workers/worker_table.h"

#include <algorithm>

namespace pando::manager {

std::string_view to_text(SlotState state) noexcept {
  switch (state) {
    case SlotState::kStarting:
      return "starting";
    case SlotState::kServing:
      return "serving";
    case SlotState::kDraining:
      return "draining";
    case SlotState::kDead:
      return "dead";
  }
  return "";
}

WorkerSlot& WorkerTable::at(std::uint32_t number) {
  return slots_.try_emplace(number, io_, number).first->second;
}

WorkerSlot* WorkerTable::find(std::uint32_t number) {
  const auto found = slots_.find(number);
  return found == slots_.end() ? nullptr : &found->second;
}

WorkerSlot* WorkerTable::of(const WorkerLink* link) {
  if (link == nullptr) return nullptr;
  for (auto& [number, slot] : slots_)
    if (slot.link.get() == link) return &slot;
  return nullptr;
}

WorkerSlot* WorkerTable::of_process(pid_t process) {
  for (auto& [number, slot] : slots_)
    if (slot.process && slot.pid == process) return &slot;
  return nullptr;
}

WorkerSlot* WorkerTable::other_serving(const WorkerSlot& slot) {
  for (auto& [number, other] : slots_)
    if (number != slot.number && other.serving()) return &other;
  return nullptr;
}

std::uint32_t WorkerTable::lowest_free() const {
  std::uint32_t number = 0;
  while (slots_.contains(number)) ++number;
  return number;
}

bool WorkerTable::has_previous_store() const {
  return phase.keeps_previous_store &&
         std::any_of(slots_.begin(), slots_.end(), [](const auto& entry) {
           const WorkerSlot& slot = entry.second;
           return slot.process && (slot.keeps_store || slot.awaited);
         });
}

std::uint32_t WorkerTable::count() const {
  return static_cast<std::uint32_t>(std::count_if(
      slots_.begin(), slots_.end(),
      [](const auto& entry) { return entry.second.state != WorkerSlot::State::kDraining; }));
}

}  // namespace pando::manager
