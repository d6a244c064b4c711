#include "manager/workers/socket_handover.h"

#include <fcntl.h>

#include <utility>

#include "ipc/log.h"

namespace pando::manager {

namespace {
/// Time for the slot's next worker to come before a dead worker's sockets are withdrawn. Meanwhile
/// they are steered away and read: a quick restart changes no SO_REUSEPORT group.
constexpr auto kAbsenceLimit = std::chrono::seconds(1);
/// Each check finds less, unless steering failed: then traffic never ends, and the slot has to.
constexpr std::uint32_t kMaxLateRounds = 8;
/// A handshake of TCP that began before new traffic was steered away ends within this time.
constexpr auto kHandshake = std::chrono::milliseconds(200);
}  // namespace

SocketHandover::Record& SocketHandover::record_of(std::uint32_t number) {
  return records_.try_emplace(number, table_.io()).first->second;
}

// Sockets of workers
// ---------------------------------------------------------------------------------

void SocketHandover::open(std::uint32_t number) {
  auto opened = listeners_.open(number);
  if (opened) return;
  retry_open_ = true;
  log::error("listen_failed", "slot", number, "error", opened.error().text);
  // An interface may come later, as other addresses may (IP_FREEBIND).
  if (opened.error().code == Errc::kNotFound) return;
  if (first_failure_) first_failure_ = std::move(opened);
}

Status SocketHandover::take_failure() { return std::exchange(first_failure_, Status()); }

void SocketHandover::retry_openings() {
  if (table_.phase.settled && listeners_.has_moved_interface()) {
    const auto change = listeners_.follow_interfaces();
    for (const std::string& error : change.errors) log::error("listen_failed", "reason", error);
    log::info("interfaces_changed");
    sockets_changed(change);
  }
  if (!retry_open_ || !table_.phase.settled) return;
  retry_open_ = false;
  for (auto& [number, slot] : table_.slots()) {
    if (!slot.serving()) continue;
    if (!listeners_.open(number)) retry_open_ = true;
    send(slot);
  }
}

std::vector<std::uint32_t> SocketHandover::adopt(std::uint32_t number, WorkerLink& link,
                                                 std::vector<Listeners::Socket>&& adopted) {
  std::vector<std::uint32_t> known;
  std::vector<std::uint32_t> unwanted;  // by the numbers that the worker knows
  for (auto& socket : adopted) {
    if (socket.description.orphaned) continue;
    const auto description = socket.description;
    const auto taken = listeners_.adopt(number, description, std::move(socket.fd));
    if (!taken) {
      log::warning("socket_not_adopted", "slot", number, "address",
                   pando::to_text(description.local), "error", taken.error().text);
      unwanted.push_back(description.id);
      continue;
    }
    for (const Listeners::Socket* own : served_by(number))
      if (own->description.local == description.local &&
          own->description.transport == description.transport)
        known.push_back(own->description.id);
  }
  if (!unwanted.empty()) link.close_sockets(std::move(unwanted));
  return known;
}

/// The sockets of the slot, and those that all workers share.
std::vector<const Listeners::Socket*> SocketHandover::served_by(std::uint32_t number) const {
  std::vector<const Listeners::Socket*> sockets = listeners_.shared();
  for (const auto& own : listeners_.of(number)) sockets.push_back(&own);
  return sockets;
}

void SocketHandover::set_known(std::uint32_t number, const std::vector<std::uint32_t>& sockets) {
  record_of(number).known = {sockets.begin(), sockets.end()};
}

void SocketHandover::send(WorkerSlot& slot) {
  Record& record = record_of(slot.number);
  std::vector<Listeners::Socket> known;
  std::vector<Listeners::Socket> fresh;
  for (const Listeners::Socket* socket : served_by(slot.number)) {
    const bool has = record.known.contains(socket->description.id);
    auto& list = has ? known : fresh;
    list.push_back(
        {socket->description, Fd(has ? -1 : ::fcntl(socket->fd.get(), F_DUPFD_CLOEXEC, 0))});
  }
  if (slot.link) slot.link->send_sockets(known, false);
  if (slot.link) slot.link->send_sockets(fresh, true);
  for (const auto& socket : fresh) record.known.insert(socket.description.id);
}

void SocketHandover::sockets_changed(const Listeners::Change& change) {
  retry_open_ = retry_open_ || !change.errors.empty();
  for (auto& [number, slot] : table_.slots()) {
    const auto closed = change.closed.find(number);
    if (slot.link && closed != change.closed.end()) slot.link->close_sockets(closed->second);
    if (record_of(number).drain_worker && closed != change.closed.end()) hand_over_again(number);
    if (table_.phase.started && slot.link) send(slot);
  }
  steer();
}

// Queues of slots without a worker
// ---------------------------------------------------------------------

bool SocketHandover::is_turned_away(const WorkerSlot& slot) const {
  if (slot.state == WorkerSlot::State::kDraining) return true;
  const auto record = records_.find(slot.number);
  return record != records_.end() && (record->second.drain_worker || record->second.withdrawn ||
                                      record->second.renewing);
}

void SocketHandover::steer() {
  if (!table_.phase.settled) return;
  std::vector<std::uint32_t> excluded;
  for (const auto& [number, slot] : table_.slots())
    if (is_turned_away(slot)) excluded.push_back(number);
  if (auto steered = listeners_.steer_away(excluded); !steered)
    log::error("steering_failed", "error", steered.error().text);
}

void SocketHandover::replace_impaired(std::uint32_t ended) {
  if (table_.phase.stopping) return;
  for (auto& [number, slot] : table_.slots()) replace_impaired_of(slot);
  for (auto& [number, record] : records_)
    std::erase_if(record.lent, [&](const auto& lent) { return lent.second == ended; });
}

std::set<std::uint32_t> SocketHandover::find_impairing() {
  std::set<std::uint32_t> slots;
  if (table_.phase.stopping) return slots;
  for (const auto& [number, record] : records_) {
    if (record.lent.empty()) continue;
    for (const std::uint32_t id : listeners_.impaired(number)) {
      const auto lent = record.lent.find(id);
      if (lent != record.lent.end()) slots.insert({number, lent->second});
    }
  }
  return slots;
}

void SocketHandover::replace_impaired_of(WorkerSlot& slot) {
  const auto gone = listeners_.drop_impaired(slot.number);
  if (gone.empty()) return;
  log::error("sockets_replaced", "slot", slot.number, "pid", slot.pid, "sockets", gone.size());
  Record& record = record_of(slot.number);
  for (const std::uint32_t id : gone) {
    record.known.erase(id);
    record.lent.erase(id);
  }
  if (slot.link) slot.link->close_sockets(gone);
  if (record.drain_worker) hand_over_again(slot.number);
  if (slot.state != WorkerSlot::State::kDraining) open(slot.number);
  tell_positions();
}

void SocketHandover::await_worker(WorkerSlot& slot) {
  record_of(slot.number).absent = true;
  hand_over(slot);
}

void SocketHandover::await_readers(WorkerSlot::State state) {
  for (const std::uint32_t number : listeners_.slots()) {
    if (table_.find(number) != nullptr) continue;
    WorkerSlot& slot = table_.at(number);
    slot.state = state;
    await_worker(slot);
  }
}

void SocketHandover::hand_over_waiting() {
  std::vector<std::uint32_t> waiting;
  for (const auto& [number, record] : records_)
    if (record.absent && !record.drain_worker && !record.withdrawn) waiting.push_back(number);
  for (const auto number : waiting)
    if (WorkerSlot* slot = table_.find(number)) hand_over(*slot);
}

bool SocketHandover::is_ending(std::uint32_t number) const {
  const auto record = records_.find(number);
  return record != records_.end() && (record->second.drain_worker || record->second.withdrawn);
}

void SocketHandover::cancel(std::uint32_t number) {
  Record& record = record_of(number);
  record.absent = false;
  record.absence.cancel();
}

/// Nobody is in `slot`: another worker reads its sockets to the end.
void SocketHandover::hand_over(WorkerSlot& slot) {
  if (slot.process && slot.link) return;  // a worker came meanwhile
  const WorkerSlot* reader = table_.other_serving(slot);
  Record& record = record_of(slot.number);
  record.renewing = false;
  if (reader == nullptr || listeners_.of(slot.number).empty()) {
    if (slot.state != WorkerSlot::State::kDraining)
      return;  // the queue waits for the first worker that serves
    // Workers that are being started read it, too.
    record.absent = table_.count() > 0 && !record.withdrawn;
    if (!record.absent || listeners_.of(slot.number).empty()) close_slot(slot);
    return;
  }
  record.drain_worker = reader->number;
  record.orphaned.clear();
  log::info("queue_handed_over", "slot", slot.number, "to", reader->number);
  steer();
  table_.after(record.absence, kSteerSettle,
               [this, number = slot.number] { give_to_drain_worker(number); });
}

/// The drain worker gets the sockets that the slot has by now: a reload may have closed some.
void SocketHandover::give_to_drain_worker(std::uint32_t number) {
  WorkerSlot* slot = table_.find(number);
  if (slot == nullptr) return;
  Record& record = record_of(number);
  if (!record.drain_worker) return;
  const WorkerSlot* reader = table_.find(*record.drain_worker);
  const auto& sockets = listeners_.of(number);
  if (reader == nullptr || !reader->link || sockets.empty()) {
    record.drain_worker.reset();
    return sockets.empty() ? retire(*slot) : hand_over(*slot);
  }
  for (const auto& socket : sockets) {
    record.orphaned.insert(socket.description.id);
    record.lent[socket.description.id] = reader->number;
  }
  reader->link->send_sockets(sockets, true, true);
}

/// The drain worker has lost its list of orphaned sockets, or reads sockets that were closed.
void SocketHandover::hand_over_again(std::uint32_t number) {
  Record& record = record_of(number);
  record.drain_worker.reset();
  record.orphaned.clear();
  table_.after(record.absence, std::chrono::milliseconds(0), [this, number] {
    if (WorkerSlot* slot = table_.find(number)) hand_over(*slot);
  });
}

void SocketHandover::socket_drained(std::uint32_t drain_worker, std::uint32_t socket) {
  for (auto& [number, record] : records_) {
    if (record.drain_worker != drain_worker || record.orphaned.erase(socket) == 0 ||
        !record.orphaned.empty())
      continue;
    WorkerSlot* slot = table_.find(number);
    if (slot != nullptr && record.absent && slot->state != WorkerSlot::State::kDraining)
      return rest(number, record);
    record.drain_worker.reset();
    if (slot != nullptr) retire(*slot);
    return;  // the record may have gone
  }
}

/// The drain worker stays named, so that traffic is still steered elsewhere.
void SocketHandover::rest(std::uint32_t number, Record& record) {
  table_.after(record.absence, kAbsenceLimit, [this, number] {
    WorkerSlot* slot = table_.find(number);
    Record& rested = record_of(number);
    if (slot == nullptr || !rested.orphaned.empty()) return;
    rested.drain_worker.reset();
    retire(*slot);
  });
}

void SocketHandover::worker_came(WorkerSlot& slot) {
  Record& record = record_of(slot.number);
  record.absent = false;
  if (record.drain_worker) take_back(record);
  // Nothing can be sent through a withdrawn socket.
  if (record.withdrawn) listeners_.drop_withdrawn(slot.number);
  record.withdrawn = false;
  record.late_rounds = 0;
  if (record.lent.empty()) return;
  record.renewing = true;
  renew_after(slot.number, kHandshake);
}

/// Traffic is steered to others until the slot has new sockets.
void SocketHandover::renew_after(std::uint32_t number, std::chrono::milliseconds pause) {
  Record& record = record_of(number);
  table_.after(record.absence, pause, [this, number] { renew(number); });
}

void SocketHandover::renew(std::uint32_t number) {
  WorkerSlot* slot = table_.find(number);
  if (slot == nullptr) return;
  Record& record = record_of(number);
  const bool was_steered = std::exchange(record.renewing, true);
  const bool is_needed = slot->serving() && !record.lent.empty() && !table_.phase.stopping;
  if (is_needed && !was_steered) {
    renew_after(number, kHandshake);
  } else if (is_needed && listeners_.impaired(number).empty() && !listeners_.has_queue(number)) {
    return replace_lent(*slot);  // find_impairing() ends the borrower of an impaired one
  } else if (is_needed && record.late_rounds++ < kMaxLateRounds) {
    renew_after(number, kSteerSettle);
  } else {
    record.renewing = false;
    record.late_rounds = 0;
    // Steering fails where nobody else serves. Nothing must be lost, so there is another time.
    if (is_needed) renew_after(number, kAbsenceLimit);
  }
  steer();
}

void SocketHandover::replace_lent(WorkerSlot& slot) {
  Record& record = record_of(slot.number);
  const auto gone = listeners_.drop(slot.number);
  log::info("lent_sockets_replaced", "slot", slot.number, "sockets", gone.size());
  for (const std::uint32_t id : gone) record.known.erase(id);
  record.lent.clear();
  record.renewing = false;
  if (slot.link) slot.link->close_sockets(gone);
  open(slot.number);
  tell_positions();
}

void SocketHandover::take_back(Record& record) {
  const WorkerSlot& reader = table_.at(*record.drain_worker);
  if (reader.link) reader.link->close_sockets({record.orphaned.begin(), record.orphaned.end()});
  record.orphaned.clear();
  record.drain_worker.reset();
}

void SocketHandover::worker_lost(std::uint32_t number) {
  for (const auto& [orphaned, record] : records_)
    if (record.drain_worker == number) hand_over_again(orphaned);
}

void SocketHandover::retire(WorkerSlot& slot) {
  Record& record = record_of(slot.number);
  if (record.drain_worker) return;  // the drain worker says when it has read all
  if (listeners_.has_queue(slot.number) && record.late_rounds++ < kMaxLateRounds)
    return hand_over(slot);
  if (!record.withdrawn) return withdraw(slot.number);
  if (slot.state == WorkerSlot::State::kDraining) return close_slot(slot);
  // The slot itself stays, without sockets, and gets new ones with its next worker.
  record.withdrawn = false;
  record.late_rounds = 0;
  close_sockets(slot.number);
  tell_positions();
}

/// A worker that was lent a TCP socket could keep it listening.
void SocketHandover::close_sockets(std::uint32_t number) {
  auto& lent = record_of(number).lent;
  if (!lent.empty()) listeners_.drop(number);
  lent.clear();
  listeners_.close(number);
}

void SocketHandover::withdraw(std::uint32_t number) {
  Record& record = record_of(number);
  record.withdrawn = true;
  record.late_rounds = 0;  // from here on nothing new comes, steered or not
  listeners_.withdraw(number);
  tell_positions();
  table_.after(record.absence, kSteerSettle, [this, number] {
    WorkerSlot* slot = table_.find(number);
    if (slot != nullptr && record_of(number).withdrawn) retire(*slot);
  });
}

/// Members have left groups: the programs that steer by positions are made anew, and workers keep
/// the positions for the next manager.
void SocketHandover::tell_positions() {
  steer();
  for (auto& [number, slot] : table_.slots())
    if (slot.serving()) send(slot);
}

void SocketHandover::close_slot(WorkerSlot& slot) {
  const std::uint32_t number = slot.number;
  const auto done = std::move(slot.on_removed);
  close_sockets(number);
  forget_slot_(number);
  tell_positions();
  log::info("worker_removed", "slot", number);
  for (const auto& call : done) call();
}

}  // namespace pando::manager
