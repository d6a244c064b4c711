#pragma once

#include <set>
#include <string>

#include "base/address.h"

/// Addresses of this host, beside those that the manager listens at.
namespace pando::ctl {

/// Addresses of this host's interfaces, as text.
[[nodiscard]] std::set<std::string> own_addresses();

/// Whether the address stands for all of its family: 0.0.0.0 or `::`.
[[nodiscard]] bool is_any(const IpAddress& address) noexcept;

}  // namespace pando::ctl
