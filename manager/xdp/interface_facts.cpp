#include "manager/xdp/interface_facts.h"

#include <ifaddrs.h>
#include <linux/ethtool.h>
#include <linux/if_vlan.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <optional>
#include <set>

#include "base/bytes.h"
#include "base/fd.h"

namespace pando::manager {

namespace {

ifreq request_for(const std::string& name) {
  ifreq request{};
  std::memcpy(request.ifr_name, name.data(), std::min<std::size_t>(name.size(), IFNAMSIZ - 1));
  return request;
}

Status read_link(int socket, const std::string& name, InterfaceFacts& facts) {
  ifreq request = request_for(name);
  if (::ioctl(socket, SIOCGIFINDEX, &request) != 0)
    return fail(Errc::kNotFound, "there is no interface {}", name);
  facts.index = request.ifr_ifindex;
  if (::ioctl(socket, SIOCGIFHWADDR, &request) != 0) return fail_errno("ioctl(SIOCGIFHWADDR)");
  if (request.ifr_hwaddr.sa_family != ARPHRD_ETHER)
    return fail(Errc::kUnsupported, "{} is no Ethernet interface", name);
  std::memcpy(facts.mac.data(), request.ifr_hwaddr.sa_data, facts.mac.size());
  if (::ioctl(socket, SIOCGIFMTU, &request) != 0) return fail_errno("ioctl(SIOCGIFMTU)");
  facts.mtu = static_cast<std::uint32_t>(request.ifr_mtu);
  return {};
}

/// A driver that does not report queues has one.
std::uint32_t receive_queues(int socket, const std::string& name) {
  ethtool_channels channels{};
  channels.cmd = ETHTOOL_GCHANNELS;
  ifreq request = request_for(name);
  request.ifr_data = reinterpret_cast<char*>(&channels);
  if (::ioctl(socket, SIOCETHTOOL, &request) != 0) return 1;
  return std::max(1U, channels.rx_count + channels.combined_count);
}

std::optional<vlan_ioctl_args> ask_vlan(int socket, const std::string& name, int command) {
  vlan_ioctl_args arguments{};
  arguments.cmd = command;
  if (name.size() >= sizeof arguments.device1) return std::nullopt;
  std::memcpy(arguments.device1, name.data(), name.size());
  if (::ioctl(socket, SIOCGIFVLAN, &arguments) != 0) return std::nullopt;
  return arguments;
}

/// The tag of `name`, if it is a VLAN on `parent`.
std::optional<std::uint16_t> vlan_on(int socket, const std::string& name,
                                     const std::string& parent) {
  const auto on = ask_vlan(socket, name, GET_VLAN_REALDEV_NAME_CMD);
  if (!on || std::string_view(on->u.device2) != parent) return std::nullopt;
  const auto tag = ask_vlan(socket, name, GET_VLAN_VID_CMD);
  if (!tag) return std::nullopt;
  return static_cast<std::uint16_t>(tag->u.VID);
}

Status read_addresses(int socket, const std::string& name, InterfaceFacts& facts) {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return fail_errno("getifaddrs");
  std::map<std::string, std::optional<std::uint16_t>> tags{{name, 0}};
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    const auto [tag, is_new] = tags.try_emplace(one->ifa_name);
    if (is_new) tag->second = vlan_on(socket, one->ifa_name, name);
    if (!tag->second) continue;
    if (*tag->second != 0) facts.has_vlans = true;
    const sockaddr* at = one->ifa_addr;
    if (at == nullptr || (at->sa_family != AF_INET && at->sa_family != AF_INET6)) continue;
    const IpAddress address = IpAddress::from_sockaddr(at);
    // The kernel serves link-local addresses: nothing is sent from one without its interface.
    if (!address.is_link_local()) facts.addresses.push_back({address, *tag->second});
  }
  ::freeifaddrs(list);
  std::sort(facts.addresses.begin(), facts.addresses.end());
  return {};
}

XdpAddressKey key_of(const InterfaceAddress& at, std::uint16_t port) {
  XdpAddressKey key{at.address.octets, {}, at.vlan};
  store_be16(key.port.data(), port);
  return key;
}

bool is_any_address(const IpAddress& address) {
  const auto& octets = address.octets;
  const std::size_t begin = address.is_v4() ? 12 : 0;
  return std::all_of(octets.begin() + static_cast<long>(begin), octets.end(),
                     [](std::uint8_t octet) { return octet == 0; });
}

}  // namespace

Result<InterfaceFacts> look_at_interface(const std::string& name) {
  const Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket) return fail_errno("socket");
  InterfaceFacts facts;
  if (auto read = read_link(socket.get(), name, facts); !read) return pass(read);
  facts.queues = receive_queues(socket.get(), name);
  if (auto read = read_addresses(socket.get(), name, facts); !read) return pass(read);
  return facts;
}

std::vector<XdpAddressKey> redirected_addresses(const std::vector<Endpoint>& listen,
                                                const InterfaceFacts& facts) {
  std::set<XdpAddressKey> keys;
  for (const Endpoint& endpoint : listen) {
    bool is_here = false;
    for (const InterfaceAddress& own : facts.addresses) {
      const bool any = is_any_address(endpoint.address) &&
                       own.address.is_v4() == endpoint.address.is_v4();
      if (!any && own.address != endpoint.address) continue;
      is_here = true;
      keys.insert(key_of(own, endpoint.port));
    }
    if (!is_here && !is_any_address(endpoint.address) && !facts.has_vlans)
      keys.insert(key_of({endpoint.address, 0}, endpoint.port));
  }
  return {keys.begin(), keys.end()};
}

}  // namespace pando::manager
