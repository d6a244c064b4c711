#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/address.h"
#include "base/fd.h"
#include "base/result.h"
#include "config/settings/settings.h"
#include "manager/xdp/interface_facts.h"

namespace pando::manager {

/// The program at one interface, with its maps. It stays attached while a descriptor of
/// the link is open. Workers that serve queues have such descriptors too, so the program outlives a
/// restart of the manager.
class XdpAttachment {
 public:
  /// An AF_XDP socket that serves a queue already.
  struct Socket {
    std::uint32_t queue = 0;
    int descriptor = -1;
  };
  /// Loads program and maps with `sockets` in place, and attaches the program. If the link of an
  /// earlier manager's program has the wanted mode, this program takes its place there without a
  /// gap, and `link` is taken. Else the program is attached anew.
  static Result<XdpAttachment> open(const config::XdpInterface& what, const InterfaceFacts& facts,
                                    const std::vector<Endpoint>& listen,
                                    const std::vector<Socket>& sockets, Fd& link);

  /// Frames of the queue go to this socket from now on.
  Status put_socket(std::uint32_t queue, const Fd& socket);
  /// Frames of the queue go to the kernel from now on.
  void drop_socket(std::uint32_t queue);
  /// Redirects queries to these destinations, and no others.
  Status set_addresses(const std::vector<XdpAddressKey>& wanted);
  /// Another descriptor of the link, for a worker.
  [[nodiscard]] Fd share_link() const;
  /// Takes the program off the interface, although workers have descriptors of the link.
  void detach();

  [[nodiscard]] int interface() const noexcept { return interface_; }
  [[nodiscard]] const MacAddress& mac() const noexcept { return mac_; }
  /// "native" or "generic".
  [[nodiscard]] std::string_view mode() const noexcept { return mode_; }

 private:
  Status attach(config::XdpInterface::Mode mode, Fd& link);

  int interface_ = 0;
  MacAddress mac_{};
  std::string mode_;
  Fd sockets_;
  Fd addresses_;
  Fd program_;
  Fd link_;
  std::set<XdpAddressKey> keys_;
};

}  // namespace pando::manager
