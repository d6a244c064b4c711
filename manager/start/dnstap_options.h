#pragma once

#include <optional>

#include "config/settings/settings.h"
#include "manager/net/dnstap_lender.h"

namespace pando::manager {

/// server.dnstap for the pool of workers; none when it is off. Messages name this server by
/// server.identity, or by the host's name.
std::optional<DnstapOptions> dnstap_options(const config::Server& server);

}  // namespace pando::manager
