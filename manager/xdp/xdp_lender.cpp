#include "manager/xdp/xdp_lender.h"

#include <fcntl.h>

#include <algorithm>
#include <utility>

#include "ipc/log.h"
#include "manager/xdp/bpf_calls.h"
#include "manager/xdp/queue_socket.h"

namespace pando::manager {

namespace {

/// The smallest answer that a client without EDNS may be promised, and its headers.
constexpr std::uint32_t kLeastMtu = 600;
constexpr std::uint32_t kMaxQueuesOfInterface = 64;
constexpr auto kRefreshPause = std::chrono::seconds(2);
/// The kernel frees a queue a moment after its socket was closed.
constexpr auto kBusyPause = std::chrono::milliseconds(20);
constexpr std::uint32_t kBusyRounds = 500;

bool has(const std::vector<std::uint32_t>& list, std::uint32_t value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

}  // namespace

XdpLender::XdpLender(asio::io_context& io, XdpOptions options, Calls calls)
    : calls_(std::move(calls)),
      options_(std::move(options)),
      tick_timer_(io),
      soon_timer_(io) {
  for (const auto& what : options_.interfaces) interface_named(what.interface).what = what;
}

XdpLender::~XdpLender() = default;

std::uint32_t XdpLender::Interface::queues() const noexcept {
  const std::uint32_t most = std::min(facts.queues, kMaxQueuesOfInterface);
  return what.queues == 0 ? most : std::min(what.queues, most);
}

XdpLender::Interface& XdpLender::interface_named(const std::string& name) {
  return interfaces_[name];
}

// Events of the configuration and of workers
// -----------------------------------------------------------------------------------------------

void XdpLender::set(XdpOptions options) {
  if (options == options_) return;
  options_ = std::move(options);
  for (auto& [name, interface] : interfaces_) interface.wanted = false;
  for (const auto& what : options_.interfaces) {
    const bool is_new = !interfaces_.contains(what.interface);
    Interface& interface = interface_named(what.interface);
    const bool other_mode = !is_new && interface.what.mode != what.mode;
    interface.what = what;
    interface.wanted = true;
    interface.problem.clear();
    if (other_mode) detach(interface);
  }
  for (auto& [name, interface] : interfaces_)
    if (!interface.wanted) detach(interface);
  drop_unwanted();
  for (auto& [name, interface] : interfaces_) refresh(interface);
  if (started_) tick();
}

void XdpLender::adopt(std::uint32_t slot, std::vector<AdoptedXdpQueue>&& queues) {
  for (auto& [name, interface] : interfaces_)
    std::erase_if(interface.holders, [&](const auto& one) { return one.second.slot == slot; });
  for (AdoptedXdpQueue& adopted : queues) {
    const auto found = interfaces_.find(adopted.queue.interface);
    const bool is_ours = found != interfaces_.end() && found->second.wanted &&
                         adopted.queue.queue < kMaxQueuesOfInterface &&
                         is_xdp_socket(adopted.socket) &&
                         !found->second.holders.contains(adopted.queue.queue);
    if (!is_ours) {
      // Before the worker closes its socket, or frames would come for it.
      if (found == interfaces_.end()) static_cast<void>(bpf::detach(adopted.link));
      calls_.close(slot, {adopted.queue});
      continue;
    }
    Interface& interface = found->second;
    Holder& holder = interface.holders[adopted.queue.queue];
    holder.slot = slot;
    holder.zero_copy = is_zero_copy(adopted.socket);
    holder.socket = std::move(adopted.socket);
    if (interface.attachment)
      put_in_map(interface, adopted.queue.queue, holder);
    else if (!interface.link)
      interface.link = std::move(adopted.link);
  }
}

void XdpLender::adopt_links(std::vector<AdoptedXdpQueue>&& queues) {
  for (AdoptedXdpQueue& adopted : queues) {
    const auto found = interfaces_.find(adopted.queue.interface);
    if (found == interfaces_.end())
      static_cast<void>(bpf::detach(adopted.link));
    else if (!found->second.link && !found->second.attachment)
      found->second.link = std::move(adopted.link);
  }
}

void XdpLender::worker_came(std::uint32_t) {
  if (std::exchange(started_, true)) return balance();
  if (!interfaces_.empty()) tick();
}

void XdpLender::worker_leaves(std::uint32_t slot) {
  for (auto& [name, interface] : interfaces_)
    for (auto& [queue, holder] : interface.holders)
      if (holder.slot == slot && std::exchange(holder.in_map, false) && interface.attachment)
        interface.attachment->drop_socket(queue);
}

void XdpLender::worker_ended(std::uint32_t slot) {
  for (auto& [name, interface] : interfaces_)
    std::erase_if(interface.holders, [&](const auto& one) { return one.second.slot == slot; });
  drop_unwanted();
  balance();
}

void XdpLender::queue_served(std::uint32_t slot, const ipc::XdpQueue& queue) {
  const auto found = interfaces_.find(queue.interface);
  if (found == interfaces_.end()) return;
  const auto holder = found->second.holders.find(queue.queue);
  if (holder == found->second.holders.end() || holder->second.slot != slot) return;
  if (!holder->second.socket || holder->second.closing) return;
  put_in_map(found->second, queue.queue, holder->second);
  log::info("xdp_queue_lent", "interface", queue.interface, "queue", queue.queue, "slot", slot,
            "zero_copy", holder->second.zero_copy);
}

void XdpLender::queue_closed(std::uint32_t slot, const ipc::XdpQueue& queue) {
  const auto found = interfaces_.find(queue.interface);
  if (found == interfaces_.end()) return;
  Interface& interface = found->second;
  const auto holder = interface.holders.find(queue.queue);
  if (holder == interface.holders.end() || holder->second.slot != slot) return;
  const bool was_asked = holder->second.closing;
  interface.holders.erase(holder);
  if (!was_asked) {
    note_problem(interface, fmt::format("the worker in slot {} cannot serve queue {}", slot,
                                        queue.queue));
    return;  // it is tried again with the next refresh
  }
  drop_unwanted();
  balance();
}

void XdpLender::stop() {
  for (auto& [name, interface] : interfaces_)
    for (auto& [queue, holder] : interface.holders)
      if (std::exchange(holder.in_map, false) && interface.attachment)
        interface.attachment->drop_socket(queue);
  abandon();
}

void XdpLender::abandon() {
  tick_timer_.cancel();
  soon_timer_.cancel();
  started_ = false;
  interfaces_.clear();
  alive_ = std::make_shared<int>(0);
}

std::vector<ipc::XdpRow> XdpLender::status() const {
  std::vector<ipc::XdpRow> rows;
  for (const auto& [name, interface] : interfaces_) {
    ipc::XdpRow row;
    row.interface = name;
    row.problem = interface.problem;
    row.queues = interface.queues();
    if (interface.attachment) row.mode = interface.attachment->mode();
    for (const auto& [queue, holder] : interface.holders)
      if (holder.in_map) row.served.push_back({queue, holder.slot, holder.zero_copy});
    rows.push_back(std::move(row));
  }
  return rows;
}

// Queues and slots
// -----------------------------------------------------------------------------------------------

void XdpLender::balance() {
  if (!started_ || interfaces_.empty()) return;
  const auto slots = calls_.slots();
  for (auto& [name, interface] : interfaces_)
    if (interface.wanted) balance_one(interface, slots);
}

void XdpLender::balance_one(Interface& interface, const std::vector<std::uint32_t>& slots) {
  if (!interface.attachment || slots.empty()) return;
  const auto serving = calls_.serving();
  for (auto& [queue, holder] : interface.holders) {
    const bool is_right =
        queue < interface.queues() && holder.slot == slots[queue % slots.size()];
    if (!is_right && !holder.closing) take_back(interface, queue, holder);
  }
  for (std::uint32_t queue = 0; queue < interface.queues(); ++queue) {
    const std::uint32_t slot = slots[queue % slots.size()];
    if (!interface.holders.contains(queue) && has(serving, slot)) lend(interface, queue, slot);
  }
}

void XdpLender::lend(Interface& interface, std::uint32_t queue, std::uint32_t slot) {
  const bool copies = interface.attachment->mode() == "generic";
  auto made = open_queue_socket(interface.facts.index, queue, copies);
  if (!made) {
    if (made.error().code == Errc::kExists && soon_rounds_ < kBusyRounds) return balance_soon();
    return note_problem(interface, made.error().text);
  }
  ipc::ServeXdp what;
  what.queue = {interface.what.interface, queue};
  what.mtu = interface.facts.mtu;
  what.frame_bytes = kXdpFrameBytes;
  what.receive_frames = kXdpReceiveFrames;
  what.send_frames = kXdpSendFrames;
  Holder& holder = interface.holders[queue];
  holder.slot = slot;
  holder.zero_copy = made->zero_copy;
  std::vector<Fd> descriptors;
  descriptors.emplace_back(::fcntl(made->socket.get(), F_DUPFD_CLOEXEC, 0));
  descriptors.push_back(std::move(made->memory));
  descriptors.push_back(interface.attachment->share_link());
  holder.socket = std::move(made->socket);
  if (!calls_.serve(slot, what, std::move(descriptors))) interface.holders.erase(queue);
  interface.problem.clear();
}

void XdpLender::put_in_map(Interface& interface, std::uint32_t queue, Holder& holder) {
  if (!interface.attachment) return;
  if (auto put = interface.attachment->put_socket(queue, holder.socket); !put)
    return note_problem(interface, put.error().text);
  holder.in_map = true;
  // From now on the worker alone has the socket, which ends with the worker.
  holder.socket.reset();
}

void XdpLender::take_back(Interface& interface, std::uint32_t queue, Holder& holder) {
  if (std::exchange(holder.in_map, false) && interface.attachment)
    interface.attachment->drop_socket(queue);
  holder.socket.reset();
  holder.closing = true;
  calls_.close(holder.slot, {{interface.what.interface, queue}});
}

void XdpLender::take_all_back(Interface& interface) {
  for (auto& [queue, holder] : interface.holders)
    if (!holder.closing) take_back(interface, queue, holder);
}

/// Another socket may be in the queue for a moment.
void XdpLender::balance_soon() {
  soon_timer_.expires_after(kBusyPause);
  soon_timer_.async_wait([this, alive = std::weak_ptr<int>(alive_)](const asio::error_code& error) {
    if (error || alive.expired()) return;
    ++soon_rounds_;
    balance();
  });
}

// Interfaces
// -----------------------------------------------------------------------------------------------

void XdpLender::attach(Interface& interface) {
  if (interface.attachment) return;
  if (std::any_of(interface.holders.begin(), interface.holders.end(),
                  [](const auto& one) { return one.second.closing; }))
    return;
  if (interface.facts.mtu < kLeastMtu)
    return note_problem(interface, fmt::format("an MTU of {} is below {}", interface.facts.mtu,
                                               kLeastMtu));
  std::vector<XdpAttachment::Socket> sockets;
  for (const auto& [queue, holder] : interface.holders)
    if (holder.socket) sockets.push_back({queue, holder.socket.get()});
  const bool follows = static_cast<bool>(interface.link);
  auto attached = XdpAttachment::open(interface.what, interface.facts, options_.listen, sockets,
                                      interface.link);
  if (!attached) return note_problem(interface, attached.error().text);
  for (auto& [queue, holder] : interface.holders) {
    holder.in_map = holder.in_map || static_cast<bool>(holder.socket);
    holder.socket.reset();
  }
  interface.attachment.emplace(std::move(*attached));
  interface.problem.clear();
  log::info("xdp_attached", "interface", interface.what.interface, "mode",
            interface.attachment->mode(), "queues", interface.queues(), "replaced", follows);
}

/// All frames pass to the kernel at once, then the workers close their sockets.
void XdpLender::detach(Interface& interface) {
  if (interface.attachment) {
    interface.attachment->detach();
    log::info("xdp_detached", "interface", interface.what.interface);
  }
  if (interface.link) static_cast<void>(bpf::detach(interface.link));
  interface.attachment.reset();
  interface.link.reset();
  take_all_back(interface);
}

void XdpLender::drop_unwanted() {
  std::erase_if(interfaces_, [](const auto& one) {
    return !one.second.wanted && one.second.holders.empty();
  });
}

void XdpLender::refresh(Interface& interface) {
  if (!interface.wanted || !started_) return;
  auto facts = look_at_interface(interface.what.interface);
  if (!facts) {
    detach(interface);
    return note_problem(interface, facts.error().text);
  }
  const InterfaceFacts before = std::exchange(interface.facts, std::move(*facts));
  const InterfaceFacts& now = interface.facts;
  if (interface.attachment && (interface.attachment->interface() != now.index ||
                               interface.attachment->mac() != now.mac))
    detach(interface);
  if (!interface.attachment) return attach(interface);
  if (before.mtu != now.mtu) take_all_back(interface);
  if (auto set = interface.attachment->set_addresses(redirected_addresses(options_.listen, now));
      !set)
    note_problem(interface, set.error().text);
}

/// Told once, until it is another one.
void XdpLender::note_problem(Interface& interface, std::string problem) {
  if (interface.problem == problem) return;
  log::warning("xdp_failed", "interface", interface.what.interface, "error", problem);
  interface.problem = std::move(problem);
}

void XdpLender::tick() {
  soon_rounds_ = 0;
  for (auto& [name, interface] : interfaces_) refresh(interface);
  balance();
  tick_timer_.expires_after(kRefreshPause);
  tick_timer_.async_wait([this, alive = std::weak_ptr<int>(alive_)](const asio::error_code& error) {
    if (!error && !alive.expired() && !interfaces_.empty()) tick();
  });
}

}  // namespace pando::manager
