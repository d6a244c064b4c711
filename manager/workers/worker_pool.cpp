#include "manager/workers/worker_pool.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

#include "ipc/log.h"
#include "ipc/packet_socket.h"
#include "manager/workers/worker_pool_impl.h"

namespace pando::manager {

std::string_view to_text(WorkerStatus::State state) noexcept {
  switch (state) {
    case WorkerStatus::State::kStarting:
      return "starting";
    case WorkerStatus::State::kServing:
      return "serving";
    case WorkerStatus::State::kDraining:
      return "draining";
    case WorkerStatus::State::kDead:
      return "dead";
  }
  return "";
}

WorkerPool::Impl::Impl(asio::io_context& io, WorkerPoolOptions options, shm::SlotTable& slots,
                       Listeners& listeners, const Launcher* launcher, Hooks hooks)
    : options_(std::move(options)),
      admission_(
          options_.external ? WorkerAdmission::Starter::kOther : WorkerAdmission::Starter::kManager,
          options_.layout, ::geteuid(), options_.worker_uid),
      io_(io),
      slots_(slots),
      listeners_(listeners),
      launcher_(launcher),
      hooks_(std::move(hooks)),
      listening_(io),
      tick_timer_(io),
      strange_timer_(io) {
  if (::getrandom(random_secret_.data(), random_secret_.size(), 0) !=
      static_cast<ssize_t>(random_secret_.size()))
    die("no random numbers", __FILE__, __LINE__);
  keys_.cookie_secrets = {random_secret_};
}

WorkerPool::Impl::~Impl() { abandon(); }

// Connections
// --------------------------------------------------------------------------------------

Status WorkerPool::Impl::listen() {
  auto socket = ipc::listen_packets(options_.run_directory + "/" + ipc::kWorkerSocketName);
  if (!socket) return pass(socket);
  asio::error_code error;
  listening_.assign(asio::generic::seq_packet_protocol(AF_UNIX, 0), socket->release(), error);
  if (error) return fail(Errc::kIo, "worker socket: {}", error.message());
  accept_next();
  return {};
}

void WorkerPool::Impl::accept_next() {
  listening_.async_wait(asio::socket_base::wait_read, guarded([this] {
                          accept_all();
                          accept_next();
                        }));
}

void WorkerPool::Impl::accept_all() {
  if (!listening_.is_open()) return;
  for (;;) {
    auto socket = ipc::accept_packets(listening_.native_handle());
    if (!socket) return log::warning("worker_accept_failed", "error", socket.error().text);
    if (!*socket) return;
    take_connection(std::move(*socket));
  }
}

void WorkerPool::Impl::take_connection(Fd socket) {
  constexpr std::size_t kMaxStrangers = 2 * shm::kMaxSlots;
  const auto peer = ipc::peer_credentials(socket.get());
  if (!peer || !admission_.may_connect(peer->uid) || strangers_.size() >= kMaxStrangers)
    return log::warning("worker_connection_refused", "uid", peer ? peer->uid : 0xFFFFFFFF);
  auto process = ipc::peer_process(socket.get());
  if (!process)
    return log::warning("worker_connection_refused", "pid", peer->pid, "error",
                        process.error().text);
  const auto self = std::make_shared<std::weak_ptr<WorkerLink>>();
  auto link = WorkerLink::open(io_, std::move(socket), {peer->pid, std::move(*process)},
                               handlers_for(self));
  *self = link;
  strangers_.insert(std::move(link));
}

WorkerLink::Handlers WorkerPool::Impl::handlers_for(
    const std::shared_ptr<std::weak_ptr<WorkerLink>>& self) {
  WorkerLink::Handlers handlers;
  handlers.hello = [this, self](const ipc::Hello& hello, std::vector<Listeners::Socket>&& adopted) {
    if (const auto link = self->lock()) greet(link, hello, std::move(adopted));
  };
  handlers.forward = [this, self](ipc::Forward&& request, ForwardReply reply) {
    const auto link = self->lock();
    const Slot* slot = slot_of(link.get());
    if (slot == nullptr) slot = slot_succeeding(link.get());
    // A client would read from the old store what its update was before: it asks again, and then
    // meets a worker of ours.
    const bool stale =
        slot != nullptr && slot->link != link && request.kind != ipc::ForwardKind::kSignedQuery;
    if (slot == nullptr || stale || !hooks_.forward)
      return reply({});  // or it would count for ever
    hooks_.forward(slot->number, std::move(request), std::move(reply));
  };
  handlers.respond = [this, self](const WorkerLink::ResponsePath& path, ByteView response) {
    const Slot* slot = slot_of(self->lock().get());
    return slot != nullptr &&
           listeners_.respond(slot->number, path.socket, response, path.client, path.source);
  };
  handlers.keyring = [this]() -> std::shared_ptr<const dns::TsigKeyring> {
    return hooks_.keyring ? hooks_.keyring() : nullptr;
  };
  handlers.drained = [this, self](std::uint32_t socket) {
    if (const Slot* slot = slot_of(self->lock().get())) socket_drained(slot->number, socket);
  };
  handlers.transfer_finished = [this, self](const ipc::TransferFinished& transfer) {
    const Slot* slot = slot_of(self->lock().get());
    if (slot != nullptr && hooks_.transfer_finished)
      hooks_.transfer_finished(slot->number, transfer);
  };
  handlers.closed = [this, self](const Error& error) { link_closed(self->lock().get(), error); };
  return handlers;
}

WorkerSlot* WorkerPool::Impl::slot_of(const WorkerLink* link) {
  if (link == nullptr) return nullptr;
  for (auto& [number, slot] : workers_)
    if (slot.link.get() == link) return &slot;
  return nullptr;
}

/// Who is in the slot, or should come. A survivor's page is the word of the last manager.
WorkerAdmission::Place WorkerPool::Impl::place_of(std::uint32_t number) {
  const auto found = workers_.find(number);
  if (found != workers_.end() && found->second.process) return {found->second.pid, 0};
  const auto recorded = recorded_worker(number);
  return {0, recorded ? recorded->pid : 0};
}

void WorkerPool::Impl::greet(const std::shared_ptr<WorkerLink>& link, const ipc::Hello& hello,
                             std::vector<Listeners::Socket>&& adopted) {
  strangers_.erase(link);
  if (hello.layout != options_.layout && hello.slot < shm::kMaxSlots)
    return greet_predecessor(link, hello, std::move(adopted));
  auto admitted = admission_.admit(hello, link->peer(), place_of(hello.slot));
  if (!admitted) return refuse(*link, hello, admitted.error());
  Slot& slot = slot_at(hello.slot);
  is_ours(slot, link->peer().pid);
  if (!slot.process || slot.awaited) {
    slot.adopted = true;
    slot.told_to_stop = false;
    watch(slot, {link->peer().pid, Fd(::fcntl(link->peer().pidfd.get(), F_DUPFD_CLOEXEC, 0))});
  }
  if (slot.link) slot.link->close();
  slot.link = link;
  slot.greeted = true;
  slot.awaited = false;
  slot.step.cancel();
  slot.absence.cancel();
  slot.known_sockets.clear();
  for (const std::uint32_t id : take_sockets(slot, *link, std::move(adopted)))
    slot.known_sockets.insert(id);
  if (stopping_) return link->stop(options_.stop_grace_ms);
  settled_ ? serve(slot) : settle_if_complete();
}

void WorkerPool::Impl::refuse(WorkerLink& link, const ipc::Hello& hello, const Error& reason) {
  log::warning("worker_refused", "slot", hello.slot, "pid", link.peer().pid, "error", reason.text);
  if (admission_.is_surplus(hello, reason)) link.stop(0);
  link.close();
}

/// What the worker serves becomes ours, too. What cannot is closed there: a worker must not go on
/// with a socket that nobody knows of, in place of the one that the slot has.
/// Gives our numbers of those that were taken.
std::vector<std::uint32_t> WorkerPool::Impl::take_sockets(
    const Slot& slot, WorkerLink& link, std::vector<Listeners::Socket>&& adopted) {
  std::vector<std::uint32_t> known;
  std::vector<std::uint32_t> unwanted;  // by the numbers that the worker knows
  for (auto& socket : adopted) {
    if (socket.description.orphan) continue;
    const auto description = socket.description;
    const auto taken = listeners_.adopt(slot.number, description, std::move(socket.fd));
    if (!taken) {
      log::warning("socket_not_adopted", "slot", slot.number, "address",
                   pando::to_text(description.local), "error", taken.error().text);
      unwanted.push_back(description.id);
      continue;
    }
    for (const auto& own : listeners_.of(slot.number))
      if (own.description.local == description.local &&
          own.description.transport == description.transport)
        known.push_back(own.description.id);
  }
  if (!unwanted.empty()) link.close_sockets(std::move(unwanted));
  return known;
}

/// Gives a greeted worker all it needs.
void WorkerPool::Impl::serve(Slot& slot) {
  auto page = slots_.add(slot.number);
  auto file = page ? slots_.descriptor(slot.number) : Result<Fd>(pass(page));
  if (!file) {
    log::error("slot_failed", "slot", slot.number, "error", file.error().text);
    return kill(slot);
  }
  if (slot.guardian) take_back(slot);
  if (slot.withdrawn) listeners_.drop_withdrawn(slot.number);  // nothing can be sent through them
  slot.withdrawn = false;
  slot.late_rounds = 0;
  open_sockets(slot.number);
  const bool leaving = slot.state == Slot::State::kDraining;
  if (!leaving) slot.state = Slot::State::kServing;
  send_setup(slot, std::move(*file));
  if (slot.link) slot.link->send_keys(keys_);
  send_sockets(slot);
  if (!slot.link) return;  // the connection broke meanwhile
  log::info("worker_serving", "slot", slot.number, "pid", slot.pid, "adopted", slot.adopted);
  steer();
  if (leaving) return drain(slot);
  succeed(slot);
  if (hooks_.serving) hooks_.serving(slot.number);
}

void WorkerPool::Impl::send_setup(Slot& slot, Fd slot_file) {
  auto image = hooks_.image ? hooks_.image() : Result<shm::ImageFile>();
  // It cannot attach then, and tries again in a new process.
  if (!image) log::error("image_not_lent", "slot", slot.number, "error", image.error().text);
  slot.link->send_setup(slot.number, options_.store_path, std::move(slot_file),
                        image ? std::move(image->fd) : Fd());
}

void WorkerPool::Impl::store_settled() {
  for (auto& [number, slot] : workers_) {
    if (!settled_ || !slot.link) continue;
    if (auto file = slots_.descriptor(number)) send_setup(slot, std::move(*file));
  }
}

/// Descriptors of sockets the worker does not have yet, and ids and positions of those it has.
void WorkerPool::Impl::send_sockets(Slot& slot) {
  std::vector<Listeners::Socket> known;
  std::vector<Listeners::Socket> fresh;
  for (const auto& socket : listeners_.of(slot.number)) {
    const bool has = slot.known_sockets.contains(socket.description.id);
    auto& list = has ? known : fresh;
    list.push_back(
        {socket.description, Fd(has ? -1 : ::fcntl(socket.fd.get(), F_DUPFD_CLOEXEC, 0))});
  }
  if (slot.link) slot.link->send_sockets(known, false);
  if (slot.link) slot.link->send_sockets(fresh, true);
  for (const auto& socket : fresh) slot.known_sockets.insert(socket.description.id);
}

void WorkerPool::Impl::link_closed(WorkerLink* link, const Error& error) {
  if (Slot* slot = slot_of(link); slot != nullptr) {
    // The process may live on and come back; its end is the pidfd's business.
    slot->link.reset();
    log::info("worker_connection_closed", "slot", slot->number, "reason", error.text);
    return guardian_lost(slot->number);  // what it says of others' queues may be lost
  }
  if (Slot* slot = slot_succeeding(link); slot != nullptr) {
    slot->predecessor->link.reset();
    return;
  }
  const auto stranger = std::find_if(strangers_.begin(), strangers_.end(),
                                     [link](const auto& one) { return one.get() == link; });
  if (stranger == strangers_.end()) return;
  log::warning("worker_refused", "pid", (*stranger)->peer().pid, "error", error.text);
  strangers_.erase(stranger);
}

// The public side
// ----------------------------------------------------------------------------------

void WorkerPool::Impl::set_keys(WorkerKeys keys) {
  // Without configured secrets all workers share one that lives as long as this manager.
  if (keys.cookie_secrets.empty()) keys.cookie_secrets = {random_secret_};
  keys_ = std::move(keys);
  for (auto& [number, slot] : workers_)
    if (started_ && slot.link) slot.link->send_keys(keys_);
}

void WorkerPool::Impl::sockets_changed(const Listeners::Change& change) {
  retry_open_ = retry_open_ || !change.errors.empty();
  for (auto& [number, slot] : workers_) {
    const auto closed = change.closed.find(number);
    if (slot.link && closed != change.closed.end()) slot.link->close_sockets(closed->second);
    if (slot.guardian && closed != change.closed.end()) hand_over_again(slot);
    if (started_ && slot.link) send_sockets(slot);
  }
  steer();
}

Status WorkerPool::Impl::start(std::uint32_t count) {
  started_ = true;
  tick();
  await_survivors();
  await_predecessors();
  for (std::uint32_t number = 0; !options_.external && number < count; ++number)
    if (!workers_.contains(number)) launch(slot_at(number));
  if (!options_.external) set_count(count);
  first_opening_ = {};
  settle_if_complete();
  return std::move(first_opening_);
}

void WorkerPool::Impl::settle_if_complete() {
  if (!started_ || settled_) return;
  for (const auto& [number, slot] : workers_)
    if (slot.awaited || (slot.predecessor && slot.predecessor->awaited)) return;
  settled_ = true;
  for (auto& [number, slot] : workers_) {
    const bool leaving = slot.state == Slot::State::kDraining;
    // Opened before the process has said Hello: queries wait for it rather than bounce.
    if (slot.link || !(options_.external || leaving)) open_sockets(number);
    if (slot.link) serve(slot);
    succeed(slot);
  }
}

void WorkerPool::Impl::open_sockets(std::uint32_t number) {
  auto opened = listeners_.open(number);
  if (opened) return;
  retry_open_ = true;
  log::error("listen_failed", "slot", number, "error", opened.error().text);
  if (first_opening_) first_opening_ = std::move(opened);
}

void WorkerPool::Impl::set_count(std::uint32_t count) {
  std::uint32_t have = this->count();
  for (; have < count; ++have)
    if (auto added = add(); !added)
      return log::error("worker_not_added", "error", added.error().text);
  std::vector<std::uint32_t> surplus;
  for (auto it = workers_.rbegin(); it != workers_.rend() && have > count; ++it) {
    if (it->second.state == Slot::State::kDraining) continue;
    surplus.push_back(it->first);
    --have;
  }
  for (const auto number : surplus) drain(slot_at(number));
}

Result<std::uint32_t> WorkerPool::Impl::add() {
  if (options_.external) return fail(Errc::kUnsupported, "workers are started by somebody else");
  const std::uint32_t number = lowest_free();
  if (number >= shm::kMaxSlots) return fail(Errc::kFull, "all {} slots are in use", shm::kMaxSlots);
  // Its sockets are opened when it says Hello: until then nothing can wait in them.
  launch(slot_at(number));
  return number;
}

Status WorkerPool::Impl::remove(std::uint32_t number, std::function<void()> done) {
  const auto found = workers_.find(number);
  if (found == workers_.end()) return fail(Errc::kNotFound, "no worker in slot {}", number);
  if (done) found->second.on_removed.push_back(std::move(done));
  if (found->second.state != Slot::State::kDraining) drain(found->second);
  return {};
}

void WorkerPool::Impl::stop(std::function<void()> done) {
  on_stopped_ = std::move(done);
  if (options_.external) abandon();
  stopping_ = true;
  strange_.clear();
  strange_timer_.cancel();
  for (auto& [number, slot] : workers_) {
    slot.step.cancel();
    slot.absence.cancel();
    slot.succession.cancel();
    if (slot.link) slot.link->stop(options_.stop_grace_ms);
    if (slot.predecessor) stop_predecessor(slot);
  }
  std::erase_if(workers_, [](const auto& entry) {
    return !entry.second.process && !entry.second.predecessor;
  });
  tick_timer_.expires_after(std::chrono::milliseconds(options_.stop_grace_ms + 1000));
  tick_timer_.async_wait(guarded([this] {
    for (auto& [number, slot] : workers_) kill(slot);
  }));
  finish_stop_if_empty();
}

void WorkerPool::Impl::abandon() {
  asio::error_code ignored;
  listening_.close(ignored);
  tick_timer_.cancel();
  strange_.clear();
  strange_timer_.cancel();
  for (const auto& stranger : strangers_) stranger->close();
  strangers_.clear();
  for (auto& [number, slot] : workers_)
    for (const auto& link : {slot.link, slot.predecessor ? slot.predecessor->link : nullptr})
      if (link) link->leave();
  workers_.clear();
}

std::vector<WorkerStatus> WorkerPool::Impl::status() const {
  std::vector<WorkerStatus> list;
  for (const auto& [number, slot] : workers_)
    list.push_back({number, slot.state, slot.pid, slot.adopted, slot.restarts});
  return list;
}

WorkerPool::WorkerPool(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
WorkerPool::~WorkerPool() = default;

Result<std::unique_ptr<WorkerPool>> WorkerPool::open(asio::io_context& io,
                                                     WorkerPoolOptions options,
                                                     shm::SlotTable& slots, Listeners& listeners,
                                                     const Launcher* launcher, Hooks hooks) {
  options.worker_binary = worker_binary(options.worker_binary);
  auto impl =
      std::make_unique<Impl>(io, std::move(options), slots, listeners, launcher, std::move(hooks));
  if (auto listening = impl->listen(); !listening) return pass(listening);
  return std::unique_ptr<WorkerPool>(new WorkerPool(std::move(impl)));
}

bool WorkerPool::has_predecessors() { return impl_->has_predecessors(); }
void WorkerPool::set_keys(WorkerKeys keys) { impl_->set_keys(std::move(keys)); }
void WorkerPool::sockets_changed(const Listeners::Change& change) {
  impl_->sockets_changed(change);
}
void WorkerPool::set_pin_time(std::chrono::milliseconds pin_time) {
  impl_->options_.pin_time = pin_time;
}
void WorkerPool::store_settled() { impl_->store_settled(); }
Status WorkerPool::start(std::uint32_t count) { return impl_->start(count); }
void WorkerPool::set_count(std::uint32_t count) { impl_->set_count(count); }
Result<std::uint32_t> WorkerPool::add() { return impl_->add(); }
Status WorkerPool::remove(std::uint32_t slot, std::function<void()> done) {
  return impl_->remove(slot, std::move(done));
}
void WorkerPool::release_oldest(std::uint64_t before, bool urgent) {
  impl_->release_oldest(before, urgent);
}
void WorkerPool::stop(std::function<void()> done) { impl_->stop(std::move(done)); }
void WorkerPool::abandon() { impl_->abandon(); }
std::vector<WorkerStatus> WorkerPool::status() const { return impl_->status(); }

}  // namespace pando::manager
