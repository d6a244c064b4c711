#pragma once

#include <functional>
#include <optional>

#include "base/address.h"
#include "dns/name.h"
#include "dns/types.h"

namespace pando::manager {

/// A NOTIFY that passed signature, form and ACL (RFC 1996).
struct NotifyRequest {
  dns::Name zone;
  Endpoint client;
  std::optional<dns::Serial> serial;  ///< of the SOA in the answer section: a hint (§3.11)
  std::optional<dns::Name> key{};     ///< whose signature was verified
};

/// Told of a secondary zone that may have changed at its primary. Must return immediately.
using NotifyHandler = std::function<void(const NotifyRequest& request)>;

}  // namespace pando::manager
