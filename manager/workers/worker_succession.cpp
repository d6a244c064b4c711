#include <fcntl.h>

#include <asio/post.hpp>

#include <algorithm>

#include "ipc/log.h"
#include "manager/workers/adopted_worker.h"
#include "manager/workers/worker_pool_impl.h"

/// Workers of another layout, which a manager of the old build has left. They go on answering from
/// the store that they have mapped, which has no name any more, and cannot be given ours. So each
/// is followed by a worker of ours in the same slot:
///   1. it says Hello, as survivors do, and hands back its sockets: they become the slot's;
///   2. a worker of ours is started in the slot, attaches, and gets these very sockets, so that for
///      a while two processes read from one queue;
///   3. the old one is told to stop: it reads what is queued once more, lets its connections end,
///      and leaves.
/// The sockets never leave their groups and are never without a reader, so no query is lost.
namespace pando::manager {

namespace {
constexpr std::chrono::milliseconds kLook{10};
constexpr std::chrono::milliseconds kStrangeLook{100};
constexpr std::uint32_t kStopMarginMs = 1000;
/// As survivors.
constexpr auto kPredecessorDeadline = std::chrono::seconds(3);
}  // namespace

bool WorkerPool::Impl::is_recorded(const FoundWorker& found) const {
  const auto* page = slots_.page(found.slot);
  return page != nullptr && page->pid == static_cast<std::uint32_t>(found.process.pid);
}

/// Where there are none, none can come: who started them has ended. So all processes of the host
/// are looked through once.
bool WorkerPool::Impl::has_predecessors() {
  for (FoundWorker& worker : find_workers(options_.run_directory))
    if (!is_recorded(worker)) strange_.emplace(worker.process.pid, std::move(worker.process.pidfd));
  none_before_ = strange_.empty();
  if (!none_before_) watch_strange();
  return !none_before_;
}

void WorkerPool::Impl::watch_strange() {
  strange_timer_.expires_after(kStrangeLook);
  strange_timer_.async_wait(guarded([this] {
    if (strange_.empty()) return;
    is_not_strange(0);
    watch_strange();
  }));
}

/// That process, and all that have ended.
void WorkerPool::Impl::is_not_strange(pid_t pid) {
  const auto gone = std::erase_if(strange_, [pid](const auto& worker) {
    return worker.first == pid || has_ended(worker.second);
  });
  if (gone == 0 || !strange_.empty()) return;
  none_before_ = true;
  if (hooks_.no_predecessors)
    asio::post(io_, [told = guarded([this] {
                       if (!stopping_) hooks_.no_predecessors();
                     })] { told({}); });
}

/// A Hello of our layout: one that a unit started when there was no manager, and no page named it.
void WorkerPool::Impl::is_ours(Slot& slot, pid_t pid) {
  if (slot.predecessor && slot.predecessor->pid == pid) {
    slot.succession.cancel();
    slot.predecessor.reset();
  }
  is_not_strange(pid);
}

/// Whoever runs as a worker of this run directory and is not in the slots' pages.
void WorkerPool::Impl::await_predecessors() {
  if (none_before_) return;
  for (FoundWorker& found : find_workers(options_.run_directory)) {
    Slot& slot = slot_at(found.slot);
    if (slot.process && slot.pid == found.process.pid) continue;
    if (slot.predecessor && slot.predecessor->pid == found.process.pid) continue;
    follow(slot, std::move(found.process));
    slot.predecessor->awaited = true;
    slot.succession.expires_after(kPredecessorDeadline);
    slot.succession.async_wait(guarded([this, number = slot.number] {
      Slot& late = slot_at(number);
      if (!late.predecessor || !std::exchange(late.predecessor->awaited, false)) return;
      log::warning("worker_silent", "slot", number, "pid", late.predecessor->pid);
      settle_if_complete();
      succeed(late);
    }));
  }
}

void WorkerPool::Impl::follow(Slot& slot, Child process) {
  slot.predecessor.emplace();
  slot.predecessor->pid = process.pid;
  slot.predecessor->process.emplace(io_, process.pidfd.release());
  slot.predecessor->process->async_wait(asio::posix::descriptor_base::wait_read,
                                        guarded([this, number = slot.number, pid = process.pid] {
                                          Slot& left = slot_at(number);
                                          if (left.predecessor && left.predecessor->pid == pid)
                                            predecessor_ended(left);
                                        }));
}

WorkerSlot* WorkerPool::Impl::slot_succeeding(const WorkerLink* link) {
  if (link == nullptr) return nullptr;
  for (auto& [number, slot] : workers_)
    if (slot.predecessor && slot.predecessor->link.get() == link) return &slot;
  return nullptr;
}

/// A Hello of another layout.
void WorkerPool::Impl::greet_predecessor(const std::shared_ptr<WorkerLink>& link,
                                         const ipc::Hello& hello,
                                         std::vector<Listeners::Socket>&& adopted) {
  ipc::Hello ours = hello;
  ours.layout = options_.layout;
  const Child& peer = link->peer();
  const bool known = find_worker(peer.pid, hello.slot, options_.run_directory).has_value();
  auto admitted = admission_.admit(ours, peer, {0, known ? peer.pid : 0});
  if (admitted && hello.sockets == 0) admitted = fail(Errc::kLayout, "worker of another build");
  if (!admitted) {
    Error reason = admitted.error();
    reason.text += fmt::format(" (layout {:x}, not {:x})", hello.layout, options_.layout);
    return refuse(*link, hello, reason);
  }
  Slot& slot = slot_at(hello.slot);
  if (!slot.predecessor || slot.predecessor->pid != peer.pid)
    follow(slot, {peer.pid, Fd(::fcntl(peer.pidfd.get(), F_DUPFD_CLOEXEC, 0))});
  slot.predecessor->link = link;
  slot.predecessor->awaited = false;
  slot.succession.cancel();
  log::info("worker_of_another_build", "slot", slot.number, "pid", peer.pid, "sockets",
            adopted.size());
  static_cast<void>(take_sockets(slot, *link, std::move(adopted)));
  if (stopping_) return link->stop(options_.stop_grace_ms);
  settled_ ? succeed(slot) : settle_if_complete();
}

/// The slot's own worker comes, unless somebody else starts it: that one cannot come before the old
/// process has ended.
void WorkerPool::Impl::succeed(Slot& slot) {
  if (!slot.predecessor || !settled_) return;
  if (slot.state == Slot::State::kDraining) return drain(slot);
  if (slot.serving()) return await_attachment(slot);
  if (options_.external) return stop_predecessor(slot);
  if (!slot.process) launch(slot);
}

/// It holds its lock on the store, so it reads its sockets or is about to.
void WorkerPool::Impl::await_attachment(Slot& slot) {
  if (slots_.alive(slot.number)) return stop_predecessor(slot);
  slot.succession.expires_after(kLook);
  slot.succession.async_wait(guarded([this, number = slot.number] {
    Slot& later = slot_at(number);
    if (later.predecessor && later.serving()) await_attachment(later);
  }));
}

void WorkerPool::Impl::stop_predecessor(Slot& slot) {
  if (!slot.predecessor) return;
  log::info("worker_succeeded", "slot", slot.number, "old", slot.predecessor->pid, "pid", slot.pid);
  if (!slot.predecessor->link) return kill_process(slot, *slot.predecessor->process);
  slot.predecessor->link->stop(options_.stop_grace_ms);
  slot.succession.expires_after(std::chrono::milliseconds(options_.stop_grace_ms + kStopMarginMs));
  slot.succession.async_wait(guarded([this, number = slot.number] {
    Slot& late = slot_at(number);
    if (late.predecessor) kill_process(late, *late.predecessor->process);
  }));
}

void WorkerPool::Impl::predecessor_ended(Slot& slot) {
  log::info("worker_ended", "slot", slot.number, "pid", slot.predecessor->pid, "how",
            "followed by another build's");
  slot.succession.cancel();
  if (slot.predecessor->link) slot.predecessor->link->close();
  slot.predecessor.reset();
  if (stopping_) {
    if (!slot.process) workers_.erase(slot.number);
    return finish_stop_if_empty();
  }
  if (!settled_) return settle_if_complete();
  if (slot.process || slot.link) return;
  if (slot.state == Slot::State::kDraining) return tell_to_stop(slot);
  // As after the end of any worker: its queue waits for the next one, but not for long.
  await_successor(slot);
  if (!options_.external) launch(slot);
}

}  // namespace pando::manager
