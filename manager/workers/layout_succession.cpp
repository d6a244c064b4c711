#include "manager/workers/layout_succession.h"

#include <fcntl.h>

#include <asio/post.hpp>
#include <utility>

#include "ipc/log.h"

namespace pando::manager {

namespace {
constexpr std::chrono::milliseconds kAttachmentLook{10};
constexpr std::chrono::milliseconds kUnidentifiedLook{100};
/// As for adopted workers.
constexpr auto kHelloDeadline = std::chrono::seconds(3);
}  // namespace

LayoutSuccession::LayoutSuccession(WorkerTable& table, shm::SlotTable& slots,
                                   SocketHandover& handover, const WorkerAdmission& admission,
                                   const WorkerPoolOptions& options, Calls calls)
    : table_(table),
      slots_(slots),
      handover_(handover),
      admission_(admission),
      options_(options),
      calls_(std::move(calls)),
      look_timer_(table.io()) {}

// Workers that no page names
// ---------------------------------------------------------------------------

bool LayoutSuccession::is_recorded(const FoundWorker& found) const {
  const auto* page = slots_.page(found.slot);
  return page != nullptr && page->pid == static_cast<std::uint32_t>(found.process.pid);
}

/// Where there are none, none can come: the manager that started them has ended. So one look at all
/// processes of the host is enough.
bool LayoutSuccession::has_workers() {
  for (FoundWorker& worker : find_workers({options_.run_directory, options_.worker_uid}))
    if (!is_recorded(worker))
      unidentified_.emplace(worker.process.pid, std::move(worker.process.pidfd));
  none_before_ = unidentified_.empty();
  if (!none_before_) look_again();
  return !none_before_;
}

void LayoutSuccession::look_again() {
  table_.after(look_timer_, kUnidentifiedLook, [this] {
    if (unidentified_.empty()) return;
    drop_unidentified(0);
    look_again();
  });
}

/// Drops that process and all that have ended.
void LayoutSuccession::drop_unidentified(pid_t pid) {
  const auto gone = std::erase_if(unidentified_, [pid](const auto& worker) {
    return worker.first == pid || has_ended(worker.second);
  });
  if (gone == 0 || !unidentified_.empty()) return;
  none_before_ = true;
  if (calls_.none_left)
    asio::post(table_.io(), [told = table_.guarded([this] {
                 if (!table_.phase.stopping) calls_.none_left();
               })] { told({}); });
}

/// A unit may start a worker while there is no manager; then no page names that worker.
void LayoutSuccession::is_of_our_layout(std::uint32_t number, pid_t pid) {
  const Record* record = find(number);
  if (record != nullptr && record->process.pid() == pid) records_.erase(number);
  drop_unidentified(pid);
}

void LayoutSuccession::stop_looking() {
  unidentified_.clear();
  look_timer_.cancel();
}

// Records
// -------------------------------------------------------------------------------------

LayoutSuccession::Record* LayoutSuccession::find(std::uint32_t number) {
  const auto found = records_.find(number);
  return found == records_.end() ? nullptr : &found->second;
}

bool LayoutSuccession::is_awaited(std::uint32_t number) const {
  const auto found = records_.find(number);
  return found != records_.end() && found->second.awaited;
}

std::optional<std::uint32_t> LayoutSuccession::slot_of(pid_t process) const {
  for (const auto& [number, record] : records_)
    if (record.process.pid() == process) return number;
  return std::nullopt;
}

std::optional<std::uint32_t> LayoutSuccession::slot_of(const WorkerLink* link) const {
  if (link == nullptr) return std::nullopt;
  for (const auto& [number, record] : records_)
    if (record.link.get() == link) return number;
  return std::nullopt;
}

bool LayoutSuccession::connection_lost(const WorkerLink* link) {
  const auto number = slot_of(link);
  if (number) find(*number)->link.reset();
  return number.has_value();
}

LayoutSuccession::Record& LayoutSuccession::follow(std::uint32_t number, Child process) {
  const pid_t pid = process.pid;
  records_.erase(number);
  Record& record = records_.try_emplace(number, table_.io(), std::move(process)).first->second;
  record.process.on_end(table_.guarded([this, number, pid] {
    const Record* left = find(number);
    if (left != nullptr && left->process.pid() == pid) worker_ended(number);
  }));
  return record;
}

void LayoutSuccession::cancel(std::uint32_t number) {
  if (Record* record = find(number)) record->step.cancel();
}

void LayoutSuccession::leave_all() {
  for (const auto& [number, record] : records_)
    if (record.link) record.link->leave();
}

// From Hello to the end
// ----------------------------------------------------------------------------

/// Any worker process of this run directory that the slots' pages do not name.
void LayoutSuccession::await_workers() {
  if (none_before_) return;
  for (FoundWorker& found : find_workers({options_.run_directory, options_.worker_uid})) {
    const WorkerSlot& slot = table_.at(found.slot);
    if (slot.process && slot.pid == found.process.pid) continue;
    const Record* record = find(found.slot);
    if (record != nullptr && record->process.pid() == found.process.pid) continue;
    await_hello(found.slot, follow(found.slot, std::move(found.process)));
  }
}

void LayoutSuccession::await_hello(std::uint32_t number, Record& record) {
  record.awaited = true;
  table_.after(record.step, kHelloDeadline, [this, number] {
    Record* late = find(number);
    if (late == nullptr || !std::exchange(late->awaited, false)) return;
    log::warning("worker_silent", "slot", number, "pid", late->process.pid());
    calls_.settle();
    succeed(table_.at(number));
  });
}

Status LayoutSuccession::greet(const std::shared_ptr<WorkerLink>& link, const ipc::Hello& hello,
                               std::vector<Listeners::Socket>&& adopted) {
  ipc::Hello ours = hello;
  ours.layout = options_.layout;
  const Child& peer = link->peer();
  const WorkerSearch search{options_.run_directory, options_.worker_uid};
  const bool known = find_worker(peer.pid, hello.slot, search).has_value();
  auto admitted = admission_.admit(ours, peer, {0, known ? peer.pid : 0});
  if (admitted && hello.sockets == 0) admitted = fail(Errc::kLayout, "worker of another build");
  if (!admitted) {
    admitted.error().text += fmt::format(" (layout {:x}, not {:x})", hello.layout, options_.layout);
    return admitted;
  }
  WorkerSlot& slot = table_.at(hello.slot);
  Record* record = find(hello.slot);
  if (record == nullptr || record->process.pid() != peer.pid)
    record = &follow(hello.slot, {peer.pid, Fd(::fcntl(peer.pidfd.get(), F_DUPFD_CLOEXEC, 0))});
  record->link = link;
  record->awaited = false;
  record->step.cancel();
  log::info("worker_of_another_build", "slot", slot.number, "pid", peer.pid, "sockets",
            adopted.size());
  static_cast<void>(handover_.adopt(slot.number, *link, std::move(adopted)));
  if (table_.phase.stopping) {
    link->stop(options_.stop_grace_ms);
    return {};
  }
  table_.phase.settled ? succeed(slot) : calls_.settle();
  return {};
}

/// The slot's own worker comes, unless another program starts it: that worker cannot come before
/// the old process has ended.
void LayoutSuccession::succeed(WorkerSlot& slot) {
  if (!serves(slot.number) || !table_.phase.settled) return;
  if (slot.state == WorkerSlot::State::kDraining) return calls_.drain(slot);
  if (slot.serving()) return await_attachment(slot);
  if (options_.external) return stop(slot);
  if (!slot.process) calls_.launch(slot);
}

/// Our worker holds its lock on the store, so it reads its sockets or is about to.
void LayoutSuccession::await_attachment(WorkerSlot& slot) {
  if (slots_.alive(slot.number)) return stop(slot);
  Record* record = find(slot.number);
  if (record == nullptr) return;
  table_.after(record->step, kAttachmentLook, [this, number = slot.number] {
    WorkerSlot& later = table_.at(number);
    if (serves(number) && later.serving()) await_attachment(later);
  });
}

void LayoutSuccession::stop(WorkerSlot& slot) {
  Record* record = find(slot.number);
  if (record == nullptr) return;
  log::info("worker_succeeded", "slot", slot.number, "old", record->process.pid(), "pid", slot.pid);
  if (!record->link) return calls_.kill(slot.number, record->process);
  record->link->stop(options_.stop_grace_ms);
  record = find(slot.number);  // the message may have ended the connection
  if (record == nullptr) return;
  table_.after(record->step, options_.stop_time(), [this, number = slot.number] {
    Record* late = find(number);
    if (late != nullptr) calls_.kill(number, late->process);
  });
}

void LayoutSuccession::worker_ended(std::uint32_t number) {
  const Record* record = find(number);
  log::info("worker_ended", "slot", number, "pid", record->process.pid(), "how",
            "followed by another build's");
  if (record->link) record->link->close();
  records_.erase(number);
  calls_.ended(table_.at(number));
}

}  // namespace pando::manager
