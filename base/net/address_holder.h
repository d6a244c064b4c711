#pragma once

#include <algorithm>

#include "base/address.h"

namespace pando {

/// The holder of connections from an address, whom limits are about: all addresses of an IPv6 /64
/// are one client's.
[[nodiscard]] inline IpAddress holder_of(IpAddress address) noexcept {
  if (!address.is_v4()) std::fill(address.octets.begin() + 8, address.octets.end(), 0);
  return address;
}

}  // namespace pando
