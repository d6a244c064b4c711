#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/address.h"
#include "base/bytes.h"
#include "base/fd.h"
#include "base/result.h"
#include "ipc/worker_messages.h"
#include "manager/net/address_claims.h"
#include "manager/systemd/descriptor_store.h"
#include "manager/systemd/kept_socket.h"

namespace pando::manager {

/// The listening sockets of all slots: one SO_REUSEPORT socket per slot, address and protocol. The
/// manager keeps every descriptor, so that the queue of a worker that died goes to its successor.
/// The service manager keeps another, so that the queues outlive the manager, too. An address that a
/// socket unit has opened is served by that one socket, which all workers share. Used on the commit
/// thread only.
class Listeners {
 public:
  struct Socket {
    ipc::SocketDescription description;
    Fd fd;
    bool withdrawn = false;  ///< out of its group: what reached it before can be read
    std::string kept{};      ///< its name at the service manager; empty: not kept there
  };
  /// Addresses served: each plain one by UDP and TCP, each TLS one by TCP alone.
  struct Addresses {
    std::vector<Endpoint> plain;
    std::vector<Endpoint> tls;
  };

  /// Whether the service manager keeps the sockets, too. It names them by slots of workers.
  enum class Keep : std::uint8_t { kAtServiceManager, kNowhere };

  explicit Listeners(Addresses addresses, Keep keep = Keep::kAtServiceManager);

  /// Takes the descriptors that the service manager has passed. A socket of an earlier manager comes
  /// back to its slot, whether or not a worker is in it; a socket of a socket unit is shared. All
  /// others are closed, with a line in the log. Call it once, before anything is opened or adopted.
  void restore(std::vector<systemd::InheritedDescriptor> inherited);
  /// The process ends. What the service manager keeps stays there, although slots are closed, and
  /// the next manager may open addresses.
  void leave() noexcept {
    store_.leave();
    claims_.release_all();
  }

  /// Opens what is missing for `slot`. Errors name address and system call; what could be opened
  /// stays open.
  Status open(std::uint32_t slot);
  /// Takes a socket that an adopted worker handed back. Checked against the kernel: type, local
  /// address, SO_REUSEPORT, SO_ACCEPTCONN. kInvalid: the socket is not what the description says.
  /// kNotFound: its address is not served any more. kExists: the slot has another socket there.
  /// A duplicate is accepted.
  Status adopt(std::uint32_t slot, const ipc::SocketDescription& description, Fd fd);
  /// Takes the slot's UDP sockets out of their groups without closing them, because a datagram that
  /// the kernel is just queuing in a closed socket is lost. After a pause, has_queue() tells if a
  /// datagram arrived. TCP needs no pause: clients repeat a SYN. Sockets that cannot be withdrawn
  /// stay as they are.
  void withdraw(std::uint32_t slot);
  /// Closes the slot's withdrawn sockets.
  void drop_withdrawn(std::uint32_t slot);
  /// Numbers of the slot's sockets that a worker has impaired (is_impaired()).
  [[nodiscard]] std::vector<std::uint32_t> impaired(std::uint32_t slot) const;
  /// Closes the slot's sockets that a worker has impaired (is_impaired()); returns their numbers.
  /// Queued packets are lost; open() makes new sockets.
  std::vector<std::uint32_t> drop_impaired(std::uint32_t slot);
  /// Closes all sockets of a slot for whoever has a descriptor; returns their numbers. Queued packets
  /// are lost, so steer and drain first. The slot stays, and open() makes new sockets.
  std::vector<std::uint32_t> drop(std::uint32_t slot);
  /// Closes all sockets of a slot. Queued packets are lost, so steer, drain and withdraw first.
  void close(std::uint32_t slot);

  /// New traffic goes to the slots not in `excluded` only (a classic BPF program per group, which
  /// needs no privilege); an empty list gives the choice back to the kernel's hash.
  Status steer_away(const std::vector<std::uint32_t>& excluded);
  /// True when any socket of the slot has something queued.
  [[nodiscard]] bool has_queue(std::uint32_t slot) const;

  /// Sends a datagram through UDP socket `id` of the slot, from `source` if that is a wildcard
  /// socket. False when there is no such socket, or the kernel did not take the datagram.
  bool respond(std::uint32_t slot, std::uint32_t id, ByteView response, const Endpoint& client,
               const IpAddress& source) const;
  [[nodiscard]] const std::vector<Socket>& of(std::uint32_t slot) const;
  /// The sockets that the workers of all slots serve beside those of their slot.
  [[nodiscard]] std::vector<const Socket*> shared() const;
  [[nodiscard]] std::vector<std::uint32_t> slots() const;

  /// The effect of set_addresses(): ids of closed sockets by slot, and failures to open others.
  struct Change {
    std::map<std::uint32_t, std::vector<std::uint32_t>> closed;
    std::vector<std::string> errors;
  };
  /// Changes the addresses for all open slots.
  Change set_addresses(Addresses addresses);
  /// An interface that the addresses name has come, has gone or has been made anew.
  [[nodiscard]] bool has_moved_interface() const { return resolve(addresses_) != wanted_; }
  /// set_addresses() with the same addresses, for that case.
  Change follow_interfaces();

  /// The addresses that are to be served, as ADDRESS@PORT. Text: why the last attempt to open a
  /// socket there failed; empty: each open slot has its sockets.
  [[nodiscard]] std::map<std::string, std::string> addresses() const;

 private:
  using GroupKey = std::pair<std::string, ipc::Transport>;
  struct Wanted {
    Endpoint configured;
    Endpoint local;  ///< the same with the number of its interface
    ipc::Transport transport;
    bool operator==(const Wanted&) const = default;
  };
  [[nodiscard]] static std::vector<Wanted> resolve(const Addresses& addresses);
  [[nodiscard]] bool is_wanted(const ipc::SocketDescription& description) const;
  [[nodiscard]] bool is_served(const Endpoint& local) const;
  [[nodiscard]] bool has(std::uint32_t slot, const Endpoint& local, ipc::Transport transport) const;
  static GroupKey group_of(const Endpoint& local, ipc::Transport transport);
  Status open_one(std::uint32_t slot, const Wanted& wanted);
  Status restore_one(const std::string& name, Fd& fd);
  Status restore_kept(const systemd::KeptSocket& kept, Socket socket);
  Status take_shared(Socket socket);
  [[nodiscard]] const Socket* shared_at(const Endpoint& local, ipc::Transport transport) const;
  Status adopt_socket(std::uint32_t slot, Socket socket);
  void add(std::uint32_t slot, Socket socket);
  void leave_group(std::uint32_t slot, Socket& socket);
  void keep(std::uint32_t slot, Socket& socket) const;
  void let_go(Socket& socket) const;
  void refresh_positions(const GroupKey& key);
  Status steer_group(const GroupKey& key, const std::vector<std::uint32_t>& excluded);

  Addresses addresses_;
  std::vector<Wanted> wanted_;  ///< of addresses_
  AddressClaims claims_;
  systemd::DescriptorStore store_;
  /// Of socket units, one for an address and protocol; also those that are not configured now.
  std::vector<Socket> shared_;
  std::map<std::uint32_t, std::vector<Socket>> slots_;
  /// Slots in the kernel's order of each SO_REUSEPORT group: appended when opened; when one is
  /// closed the last takes its place (reuseport_detach_sock in net/core/sock_reuseport.c). After a
  /// manager's restart rebuilt from what workers report; kVacant stands where nobody reported.
  std::map<GroupKey, std::vector<std::uint32_t>> groups_;
  std::map<GroupKey, std::string> failures_;  ///< of the last attempt to open a socket
  std::uint32_t next_id_;
};

}  // namespace pando::manager
