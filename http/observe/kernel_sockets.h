#pragma once

#include <string_view>
#include <vector>

#include "base/address.h"
#include "http/observe/observed.h"

namespace pando::http {

/// Adds up the rows of a table in the form of /proc/net/udp or udp6 by the local addresses in
/// `listen`. Malformed rows are passed over.
void add_udp_rows(std::string_view table, const std::vector<Endpoint>& listen,
                  std::vector<UdpFacts>& facts);
/// The kernel's tables of this network namespace: one element for each address in `listen`.
[[nodiscard]] std::vector<UdpFacts> read_udp(const std::vector<Endpoint>& listen);

}  // namespace pando::http
