#pragma once

#include <cstdint>
#include <string>

#include "ctl/view/output.h"

/// Checks that need no manager. Problems go to `err`, one per line; the verdict to `out`.
namespace pando::ctl {

/// Reads the configuration with its zone lists, and warns of zone files that cannot be read and of
/// addresses that this host has not. As root it checks with the rights of `server.user`, and files
/// that this user cannot read are errors. `zones`: reads every zone file of a primary zone, too,
/// and counts its errors.
int check_config(const std::string& path, Output output, bool zones = false);

/// Severity of faults in a signed zone's signatures and denial of existence. kOff: they are not
/// looked for.
enum class SignatureFaults : std::uint8_t { kOff, kWarnings, kErrors };

/// Reads the zone file `path` as the zone `name`, with every check that loading makes.
int check_zone(const std::string& name, const std::string& path, Output output,
               SignatureFaults verify = SignatureFaults::kErrors);

}  // namespace pando::ctl
