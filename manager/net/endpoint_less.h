#pragma once

#include "base/address.h"

namespace pando::manager {

/// An arbitrary order of endpoints, for maps.
struct EndpointLess {
  bool operator()(const Endpoint& a, const Endpoint& b) const noexcept {
    return a.address.octets != b.address.octets ? a.address.octets < b.address.octets
                                                : a.port < b.port;
  }
};

}  // namespace pando::manager
