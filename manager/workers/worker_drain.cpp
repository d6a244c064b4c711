#include <algorithm>

#include "ipc/log.h"
#include "manager/workers/worker_pool_impl.h"

/// Leaving without losing what is queued. Closing a SO_REUSEPORT socket throws its queue away, so:
///   1. steer new traffic to the other slots (a BPF program for the group);
///   2. wait until packets that chose this socket before are in its queue;
///   3. let its worker read the queue to the end and leave; when there is no worker, let another
///      slot's worker read it (it is this one's guardian);
///   4. look into the queue once more: who had chosen the socket may have been held up for longer;
///   5. withdraw the socket from its group: while a socket is being closed there are moments when
///      the kernel still finds it, outside its group, so that no program steers;
///   6. wait and look again; close it.
namespace pando::manager {

namespace {
/// The kernel's receive path sees a new program at once, apart from packets that are just being
/// handed to a socket: microseconds. The margin is for virtual machines that lose their processor.
constexpr std::chrono::milliseconds kSteerSettle{20};
constexpr std::uint32_t kStopMarginMs = 1000;
/// Each look finds less, unless steering failed: then traffic never ends, and the slot has to.
constexpr std::uint32_t kMaxLateRounds = 8;
}  // namespace

void WorkerPool::Impl::steer() {
  if (!settled_) return;
  std::vector<std::uint32_t> excluded;
  for (const auto& [number, slot] : workers_)
    if (slot.turned_away()) excluded.push_back(number);
  if (auto steered = listeners_.steer_away(excluded); !steered)
    log::error("steering_failed", "error", steered.error().text);
}

WorkerSlot* WorkerPool::Impl::other_serving(const Slot& slot) {
  for (auto& [number, other] : workers_)
    if (number != slot.number && other.serving()) return &other;
  return nullptr;
}

/// Nobody is in `slot`: another worker reads its sockets to the end.
void WorkerPool::Impl::hand_over(Slot& slot) {
  if (slot.process && slot.link) return;  // somebody came meanwhile
  Slot* guardian = other_serving(slot);
  const auto& sockets = listeners_.of(slot.number);
  if (guardian == nullptr || sockets.empty()) {
    if (slot.state == Slot::State::kDraining) close_slot(slot);
    return;  // otherwise the queue waits for the slot's own next worker
  }
  slot.guardian = guardian->number;
  slot.orphans.clear();
  log::info("queue_handed_over", "slot", slot.number, "to", guardian->number);
  steer();
  slot.absence.expires_after(kSteerSettle);
  slot.absence.async_wait(guarded([this, number = slot.number] { give_to_guardian(number); }));
}

/// Those sockets that the slot has by now: a reload may have closed some meanwhile.
void WorkerPool::Impl::give_to_guardian(std::uint32_t number) {
  const auto found = workers_.find(number);
  if (found == workers_.end() || !found->second.guardian) return;
  Slot& slot = found->second;
  const auto reader = workers_.find(*slot.guardian);
  const auto& sockets = listeners_.of(number);
  if (reader == workers_.end() || !reader->second.link || sockets.empty()) {
    slot.guardian.reset();
    return sockets.empty() ? retire(slot) : hand_over(slot);
  }
  for (const auto& socket : sockets) slot.orphans.insert(socket.description.id);
  reader->second.link->send_sockets(sockets, true, true);
}

/// The guardian does not know any more what it reads, or reads what has been closed.
void WorkerPool::Impl::hand_over_again(Slot& slot) {
  slot.guardian.reset();
  slot.orphans.clear();
  slot.absence.expires_after(std::chrono::milliseconds(0));
  slot.absence.async_wait(guarded([this, number = slot.number] {
    const auto found = workers_.find(number);
    if (found != workers_.end()) hand_over(found->second);
  }));
}

void WorkerPool::Impl::socket_drained(std::uint32_t guardian, std::uint32_t socket) {
  for (auto& [number, slot] : workers_) {
    if (slot.guardian != guardian || slot.orphans.erase(socket) == 0 || !slot.orphans.empty())
      continue;
    slot.guardian.reset();
    return retire(slot);
  }
}

/// The slot has a worker again while its guardian was reading.
void WorkerPool::Impl::take_back(Slot& slot) {
  Slot& guardian = slot_at(*slot.guardian);
  if (guardian.link) guardian.link->close_sockets({slot.orphans.begin(), slot.orphans.end()});
  slot.orphans.clear();
  slot.guardian.reset();
  slot.late_rounds = 0;
}

void WorkerPool::Impl::guardian_lost(std::uint32_t guardian) {
  for (auto& [number, slot] : workers_) {
    if (slot.guardian == guardian) hand_over_again(slot);
  }
}

void WorkerPool::Impl::drain(Slot& slot) {
  slot.state = Slot::State::kDraining;
  log::info("worker_leaving", "slot", slot.number, "pid", slot.pid);
  steer();
  slot.step.expires_after(kSteerSettle);
  slot.step.async_wait(guarded([this, number = slot.number] {
    if (workers_.contains(number)) tell_to_stop(slot_at(number));
  }));
}

void WorkerPool::Impl::tell_to_stop(Slot& slot) {
  if (slot.told_to_stop) return;
  if (slot.predecessor && !slot.process) {  // whose end goes on here
    if (!slot.predecessor->awaited) stop_predecessor(slot);
    return;
  }
  if (!slot.process && !slots_.alive(slot.number)) return retire(slot);
  if (slot.link) {
    slot.told_to_stop = true;
    slot.link->stop(options_.stop_grace_ms);
  }
  // A survivor or a new process that has not said Hello yet is told when it does.
  slot.step.expires_after(std::chrono::milliseconds(options_.stop_grace_ms + kStopMarginMs));
  slot.step.async_wait(guarded([this, number = slot.number] {
    if (!workers_.contains(number)) return;
    Slot& late = slot_at(number);
    if (late.process) return kill(late);
    end_silent_survivor(number);
  }));
}

/// Nobody is in the slot, and its queue seems to be empty.
void WorkerPool::Impl::retire(Slot& slot) {
  if (slot.guardian) return;  // it says when it has read all
  if (listeners_.has_queue(slot.number) && slot.late_rounds++ < kMaxLateRounds)
    return hand_over(slot);
  if (!slot.withdrawn) return withdraw(slot);
  if (slot.state == Slot::State::kDraining) return close_slot(slot);
  // The slot itself stays, without sockets, and gets new ones with its next worker.
  slot.withdrawn = false;
  slot.late_rounds = 0;
  listeners_.close(slot.number);
  tell_positions();
}

void WorkerPool::Impl::withdraw(Slot& slot) {
  slot.withdrawn = true;
  slot.late_rounds = 0;  // from here on nothing new comes, steered or not
  listeners_.withdraw(slot.number);
  tell_positions();
  slot.absence.expires_after(kSteerSettle);
  slot.absence.async_wait(guarded([this, number = slot.number] {
    const auto found = workers_.find(number);
    if (found != workers_.end() && found->second.withdrawn) retire(found->second);
  }));
}

/// Members have left groups: what steers by positions is made anew, and workers keep them for the
/// next manager.
void WorkerPool::Impl::tell_positions() {
  steer();
  for (auto& [number, slot] : workers_)
    if (slot.serving()) send_sockets(slot);
}

void WorkerPool::Impl::close_slot(Slot& slot) {
  const std::uint32_t number = slot.number;
  const auto done = std::move(slot.on_removed);
  listeners_.close(number);
  slots_.remove(number);
  workers_.erase(number);
  tell_positions();
  log::info("worker_removed", "slot", number);
  for (const auto& call : done) call();
}

void WorkerPool::Impl::finish_stop_if_empty() {
  if (!workers_.empty()) return;
  tick_timer_.cancel();
  for (const auto slot : listeners_.slots()) listeners_.close(slot);
  asio::error_code ignored;
  listening_.close(ignored);
  if (!on_stopped_) return;
  asio::post(io_, std::exchange(on_stopped_, {}));
}

}  // namespace pando::manager
