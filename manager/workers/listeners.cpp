#include "manager/workers/listeners.h"

#include <fcntl.h>

#include <algorithm>
#include <optional>

#include "base/datagram.h"
#include "base/random.h"
#include "ipc/log.h"
#include "manager/workers/listening_socket.h"
#include "shm/slots.h"

namespace pando::manager {

namespace {

constexpr std::uint32_t kVacant = 0xFFFFFFFF;
/// Positions reported by workers are not trusted to size a list.
constexpr std::uint32_t kMaxPosition = 4096;

/// Closes the gaps as the kernel does: the last member takes the place of one that left.
void close_gaps(std::vector<std::uint32_t>& group) {
  for (std::size_t i = 0; i < group.size(); ++i) {
    while (!group.empty() && group.back() == kVacant) group.pop_back();
    if (i >= group.size()) return;
    if (group[i] != kVacant) continue;
    group[i] = group.back();
    group.pop_back();
  }
}

/// Numbers of this manager's sockets. A worker may still name an orphaned socket that the last
/// manager gave it: no number of ours should be the same.
std::uint32_t first_id() { return (std::uint32_t{random_number<std::uint16_t>()} << 16) + 1; }

bool contains(const std::vector<std::uint32_t>& list, std::uint32_t value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

}  // namespace

Listeners::Listeners(Addresses addresses, Keep keep)
    : addresses_(std::move(addresses)), wanted_(resolve(addresses_)), next_id_(first_id()) {
  if (keep == Keep::kNowhere) store_.leave();
}

// Sockets that the service manager passes
// -----------------------------------------------------------------------------

void Listeners::restore(std::vector<systemd::InheritedDescriptor> inherited) {
  for (auto& [name, fd] : inherited) {
    const auto taken = restore_one(name, fd);
    if (taken) continue;
    const auto what = describe_socket(fd.get());
    log::warning("socket_not_restored", "name", name, "address",
                 what ? pando::to_text(what->local) : "", "error", taken.error().text);
    if (systemd::kept_socket_of(name)) store_.remove(name);
  }
}

/// `fd` stays where it is when the socket is not taken.
Status Listeners::restore_one(const std::string& name, Fd& fd) {
  auto description = describe_socket(fd.get());
  if (!description) return pass(description);
  const bool is_tls =
      description->transport == ipc::Transport::kTcp &&
      std::any_of(wanted_.begin(), wanted_.end(), [&](const Wanted& one) {
        return one.transport == ipc::Transport::kTls && one.local == description->local;
      });
  if (is_tls) description->transport = ipc::Transport::kTls;
  const auto kept = systemd::kept_socket_of(name);
  Socket socket{*description, Fd(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 0)), false};
  if (!socket.fd) return fail_errno("dup");
  if (!kept) return take_shared(std::move(socket));
  socket.kept = name;
  return restore_kept(*kept, std::move(socket));
}

Status Listeners::restore_kept(const systemd::KeptSocket& kept, Socket socket) {
  if (kept.slot >= shm::kMaxSlots || kept.cookie != cookie_of(socket.fd.get()))
    return fail(Errc::kInvalid, "its name is another socket's");
  // Its worker may be dead, and will then not be asked whether it has impaired the socket.
  if (is_impaired(socket.fd.get(), socket.description))
    return fail(Errc::kInvalid, "it cannot be served any more");
  socket.description.position = kept.position;
  return adopt_socket(kept.slot, std::move(socket));
}

Status Listeners::take_shared(Socket socket) {
  const ipc::SocketDescription& description = socket.description;
  const bool is_double = std::any_of(shared_.begin(), shared_.end(), [&](const Socket& other) {
    return other.description.local == description.local &&
           other.description.transport == description.transport;
  });
  if (is_double)
    return fail(Errc::kExists, "a socket unit has two sockets of this address and protocol");
  if (auto prepared = prepare_passed_socket(socket.fd.get(), description); !prepared)
    return prepared;
  if (!is_wanted(description))
    log::warning("socket_not_configured", "address", pando::to_text(description.local), "protocol",
                 description.transport == ipc::Transport::kUdp ? "udp" : "tcp");
  socket.description.id = next_id_++;
  shared_.push_back(std::move(socket));
  return {};
}

std::vector<const Listeners::Socket*> Listeners::shared() const {
  std::vector<const Socket*> list;
  for (const Socket& socket : shared_)
    if (is_wanted(socket.description)) list.push_back(&socket);
  return list;
}

const Listeners::Socket* Listeners::shared_at(const Endpoint& local,
                                              ipc::Transport transport) const {
  for (const Socket* socket : shared())
    if (socket->description.local == local && socket->description.transport == transport)
      return socket;
  return nullptr;
}

/// A new position means a new name: the next manager gets the positions from the names.
void Listeners::keep(std::uint32_t slot, Socket& socket) const {
  if (!store_.is_open() || socket.withdrawn) return;
  const std::uint64_t cookie = cookie_of(socket.fd.get());
  auto name = systemd::to_text({slot, socket.description.position, cookie});
  if (socket.kept == name) return;
  // In this order, because the service manager ignores a descriptor that it has.
  if (!socket.kept.empty()) store_.remove(socket.kept);
  store_.keep(name, socket.fd.get());
  socket.kept = std::move(name);
}

/// The socket is about to be closed. The service manager closes its duplicate a moment later: until
/// then connections would be taken that nobody accepts, and the socket would be in its group.
void Listeners::let_go(Socket& socket) const {
  if (!store_.is_open() || socket.kept.empty()) return;
  if (socket.description.transport != ipc::Transport::kUdp) stop_listening(socket.fd.get());
  store_.remove(std::exchange(socket.kept, {}));
}

// Sockets of slots
// -----------------------------------------------------------------------------

std::vector<Listeners::Wanted> Listeners::resolve(const Addresses& addresses) {
  std::vector<Wanted> list;
  for (const Endpoint& at : addresses.plain) {
    const Endpoint local = at.resolved();
    list.push_back({at, local, ipc::Transport::kUdp});
    list.push_back({at, local, ipc::Transport::kTcp});
  }
  for (const Endpoint& at : addresses.tls)
    list.push_back({at, at.resolved(), ipc::Transport::kTls});
  return list;
}

bool Listeners::is_wanted(const ipc::SocketDescription& description) const {
  return std::any_of(wanted_.begin(), wanted_.end(), [&](const Wanted& one) {
    return one.local == description.local && one.transport == description.transport;
  });
}

bool Listeners::is_served(const Endpoint& local) const {
  return std::any_of(wanted_.begin(), wanted_.end(),
                     [&](const Wanted& one) { return one.local == local; });
}

bool Listeners::has(std::uint32_t slot, const Endpoint& local, ipc::Transport transport) const {
  const auto& sockets = of(slot);
  return std::any_of(sockets.begin(), sockets.end(), [&](const Socket& socket) {
    return !socket.withdrawn && socket.description.local == local &&
           socket.description.transport == transport;
  });
}

Listeners::GroupKey Listeners::group_of(const Endpoint& local, ipc::Transport transport) {
  return {to_text(local), transport};
}

Status Listeners::open(std::uint32_t slot) {
  slots_[slot];  // a slot without any address is open too
  Status first_failure;
  for (const auto& one : wanted_) {
    if (has(slot, one.local, one.transport) || shared_at(one.local, one.transport)) continue;
    if (auto opened = open_one(slot, one); !opened && first_failure)
      first_failure = std::move(opened);
  }
  return first_failure;
}

Status Listeners::open_one(std::uint32_t slot, const Wanted& wanted) {
  const bool has_interface = wanted.local.address.scope() != kNoInterface;
  Status claimed = has_interface ? claims_.claim(wanted.local)
                                 : fail(Errc::kNotFound, "{}: its interface does not exist",
                                        to_text(wanted.configured));
  auto socket = claimed ? open_listening_socket(wanted.local, wanted.transport)
                        : Result<Fd>(pass(claimed));
  if (!socket) {
    failures_[group_of(wanted.local, wanted.transport)] = socket.error().text;
    return pass(socket);
  }
  failures_.erase(group_of(wanted.local, wanted.transport));
  auto& group = groups_[group_of(wanted.local, wanted.transport)];
  close_gaps(group);
  group.push_back(slot);
  add(slot, {{next_id_++, wanted.local, wanted.transport, 0, false}, std::move(*socket), false});
  return {};
}

Status Listeners::adopt(std::uint32_t slot, const ipc::SocketDescription& description, Fd fd) {
  return adopt_socket(slot, {description, std::move(fd), false});
}

Status Listeners::adopt_socket(std::uint32_t slot, Socket socket) {
  const ipc::SocketDescription description = socket.description;
  const int fd = socket.fd.get();
  if (!is_wanted(description))
    return fail(Errc::kNotFound, "{} is not served any more", to_text(description.local));
  if (const Socket* shared = shared_at(description.local, description.transport)) {
    if (is_same_socket(shared->fd.get(), fd)) return {};
    return fail(Errc::kExists, "{} was opened by a socket unit", to_text(description.local));
  }
  for (const auto& own : of(slot)) {
    if (own.description.local != description.local ||
        own.description.transport != description.transport)
      continue;
    if (is_same_socket(own.fd.get(), fd)) return {};
    return fail(Errc::kExists, "slot {} has another socket at {}", slot,
                to_text(description.local));
  }
  if (auto checked = check_listening_socket(fd, description); !checked) return checked;
  auto& group = groups_[group_of(description.local, description.transport)];
  std::size_t position = std::min(description.position, kMaxPosition);
  if (position < group.size() && group[position] != kVacant) position = group.size();
  if (position >= group.size()) group.resize(position + 1, kVacant);
  group[position] = slot;
  socket.description.id = next_id_++;
  add(slot, std::move(socket));
  return {};
}

void Listeners::add(std::uint32_t slot, Socket socket) {
  const auto key = group_of(socket.description.local, socket.description.transport);
  // A socket that came with a worker or from the service manager is served in any case.
  (void)claims_.claim(socket.description.local);
  socket.description.orphaned = false;
  slots_[slot].push_back(std::move(socket));
  refresh_positions(key);
}

void Listeners::withdraw(std::uint32_t slot) {
  const auto found = slots_.find(slot);
  if (found == slots_.end()) return;
  for (auto& socket : found->second) {
    if (socket.withdrawn || socket.description.transport != ipc::Transport::kUdp) continue;
    if (!withdraw_datagrams(socket.fd.get())) continue;
    leave_group(slot, socket);
    socket.withdrawn = true;
  }
}

void Listeners::drop_withdrawn(std::uint32_t slot) {
  const auto found = slots_.find(slot);
  if (found == slots_.end()) return;
  std::erase_if(found->second, [](const Socket& socket) { return socket.withdrawn; });
}

std::vector<std::uint32_t> Listeners::impaired(std::uint32_t slot) const {
  std::vector<std::uint32_t> numbers;
  for (const Socket& socket : of(slot))
    if (!socket.withdrawn && is_impaired(socket.fd.get(), socket.description))
      numbers.push_back(socket.description.id);
  return numbers;
}

std::vector<std::uint32_t> Listeners::drop_impaired(std::uint32_t slot) {
  const auto found = slots_.find(slot);
  if (found == slots_.end()) return {};
  auto& sockets = found->second;
  const auto gone = std::stable_partition(sockets.begin(), sockets.end(), [](const Socket& socket) {
    return socket.withdrawn || !is_impaired(socket.fd.get(), socket.description);
  });
  std::vector<std::uint32_t> numbers;
  for (auto it = gone; it != sockets.end(); ++it) {
    leave_group(slot, *it);
    numbers.push_back(it->description.id);
  }
  sockets.erase(gone, sockets.end());
  return numbers;
}

std::vector<std::uint32_t> Listeners::drop(std::uint32_t slot) {
  const auto found = slots_.find(slot);
  if (found == slots_.end()) return {};
  withdraw(slot);
  std::vector<std::uint32_t> numbers;
  for (auto& socket : found->second) {
    leave_group(slot, socket);
    if (socket.description.transport != ipc::Transport::kUdp) stop_listening(socket.fd.get());
    numbers.push_back(socket.description.id);
  }
  found->second.clear();
  return numbers;
}

void Listeners::close(std::uint32_t slot) {
  const auto found = slots_.find(slot);
  if (found == slots_.end()) return;
  auto sockets = std::move(found->second);
  slots_.erase(found);
  for (auto& socket : sockets) leave_group(slot, socket);
}

void Listeners::leave_group(std::uint32_t slot, Socket& socket) {
  let_go(socket);
  if (socket.withdrawn) return;
  const auto key = group_of(socket.description.local, socket.description.transport);
  auto& group = groups_[key];
  close_gaps(group);
  const auto place = std::find(group.begin(), group.end(), slot);
  if (place == group.end()) return;
  *place = group.back();
  group.pop_back();
  if (group.empty())
    groups_.erase(key);
  else
    refresh_positions(key);
}

void Listeners::refresh_positions(const GroupKey& key) {
  const auto& group = groups_[key];
  for (std::uint32_t position = 0; position < group.size(); ++position) {
    const auto owner = slots_.find(group[position]);
    if (owner == slots_.end()) continue;
    for (auto& socket : owner->second)
      if (group_of(socket.description.local, socket.description.transport) == key) {
        socket.description.position = position;
        keep(owner->first, socket);
      }
  }
}

Status Listeners::steer_away(const std::vector<std::uint32_t>& excluded) {
  Status first_failure;
  for (auto& [key, group] : groups_) {
    if (auto steered = steer_group(key, excluded); !steered && first_failure)
      first_failure = std::move(steered);
  }
  return first_failure;
}

Status Listeners::steer_group(const GroupKey& key, const std::vector<std::uint32_t>& excluded) {
  auto& group = groups_[key];
  close_gaps(group);
  if (group.empty()) return {};
  std::vector<std::uint32_t> positions;
  for (std::uint32_t i = 0; i < group.size(); ++i)
    if (contains(excluded, group[i])) positions.push_back(i);
  const auto& any = slots_[group.front()];
  const auto socket = std::find_if(any.begin(), any.end(), [&](const Socket& one) {
    return !one.withdrawn && group_of(one.description.local, one.description.transport) == key;
  });
  if (socket == any.end()) return {};
  if (positions.empty() || positions.size() == group.size()) {
    detach_steering(socket->fd.get());
    return {};
  }
  return attach_steering(socket->fd.get(), group.size(), positions);
}

bool Listeners::has_queue(std::uint32_t slot) const {
  const auto& sockets = of(slot);
  return std::any_of(sockets.begin(), sockets.end(),
                     [](const Socket& socket) { return is_readable(socket.fd.get()); });
}

const std::vector<Listeners::Socket>& Listeners::of(std::uint32_t slot) const {
  static const std::vector<Socket> kNone;
  const auto found = slots_.find(slot);
  return found == slots_.end() ? kNone : found->second;
}

bool Listeners::respond(std::uint32_t slot, std::uint32_t id, ByteView response,
                        const Endpoint& client, const IpAddress& source) const {
  std::vector<const Socket*> sockets = shared();
  for (const Socket& socket : of(slot)) sockets.push_back(&socket);
  for (const Socket* socket : sockets) {
    const ipc::SocketDescription& description = socket->description;
    if (description.id != id || description.transport != ipc::Transport::kUdp || socket->withdrawn)
      continue;
    std::optional<IpAddress> from;
    if (is_wildcard(description.local.address)) from = source;
    return send_datagram(socket->fd.get(), response, client, from);
  }
  return false;
}

std::vector<std::uint32_t> Listeners::slots() const {
  std::vector<std::uint32_t> numbers;
  for (const auto& [slot, sockets] : slots_) numbers.push_back(slot);
  return numbers;
}

std::map<std::string, std::string> Listeners::addresses() const {
  std::map<std::string, std::string> all;
  for (const Wanted& one : wanted_) {
    const auto failure = failures_.find(group_of(one.local, one.transport));
    std::string& reason = all[to_text(one.configured)];
    if (reason.empty() && failure != failures_.end()) reason = failure->second;
  }
  return all;
}

Listeners::Change Listeners::follow_interfaces() { return set_addresses(addresses_); }

Listeners::Change Listeners::set_addresses(Addresses addresses) {
  Change change;
  const std::vector<const Socket*> shared_before = shared();
  addresses_ = std::move(addresses);
  const std::vector<Wanted> before = std::exchange(wanted_, resolve(addresses_));
  for (const Socket* socket : shared_before)
    if (!is_wanted(socket->description))
      for (const auto& [slot, sockets] : slots_)
        change.closed[slot].push_back(socket->description.id);
  failures_.clear();  // what is still wanted is tried again below
  for (const Wanted& one : before)
    if (!is_served(one.local)) claims_.release(one.local);
  for (auto& [slot, sockets] : slots_) {
    const auto gone = std::stable_partition(
        sockets.begin(), sockets.end(), [&](const Socket& s) { return is_wanted(s.description); });
    for (auto it = gone; it != sockets.end(); ++it) {
      change.closed[slot].push_back(it->description.id);
      leave_group(slot, *it);
    }
    sockets.erase(gone, sockets.end());
  }
  for (const auto slot : slots()) {
    const auto& own = of(slot);
    const bool retiring =
        std::any_of(own.begin(), own.end(), [](const Socket& socket) { return socket.withdrawn; });
    if (retiring) continue;
    if (auto opened = open(slot); !opened) change.errors.push_back(opened.error().text);
  }
  return change;
}

}  // namespace pando::manager
