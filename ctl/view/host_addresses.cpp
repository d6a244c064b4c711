#include "ctl/view/host_addresses.h"

#include <ifaddrs.h>

#include <algorithm>

namespace pando::ctl {

std::set<std::string> own_addresses() {
  std::set<std::string> own;
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return own;
  for (const ifaddrs* one = first; one != nullptr; one = one->ifa_next)
    if (one->ifa_addr != nullptr &&
        (one->ifa_addr->sa_family == AF_INET || one->ifa_addr->sa_family == AF_INET6))
      own.insert(to_text(IpAddress::from_sockaddr(one->ifa_addr)));
  ::freeifaddrs(first);
  return own;
}

bool is_any(const IpAddress& address) noexcept {
  return std::all_of(address.octets.begin() + (address.is_v4() ? 12 : 0), address.octets.end(),
                     [](std::uint8_t octet) { return octet == 0; });
}

}  // namespace pando::ctl
