#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/settings/settings.h"
#include "dns/dnssec/signing_key.h"
#include "manager/io/store_file.h"
#include "zone/read/store_view.h"

namespace pando::manager {

/// The effects that signing by a policy would have on a zone.
struct PolicyCheck {
  std::vector<dns::SigningKey> keys;  ///< in the zone's folder
  bool makes_key = false;             ///< there are none, and a key would be made
  std::uint64_t signatures = 0;       ///< of the zone's sets and NSEC records
  std::uint64_t left_out = 0;         ///< records that a signer makes itself, and ZONEMD
  std::uint64_t max_ttl = 0;          ///< seconds
  std::vector<std::string> problems;  ///< each keeps the zone from being signed
  std::vector<std::string> notes;     ///< what an operator should know before
};

/// Reads the zone's folder of keys and walks over the zone, and changes nothing. For pool threads;
/// the version stays pinned.
[[nodiscard]] PolicyCheck check_policy(Files& files, const std::string& journal,
                                       const zone::ZoneView& zone,
                                       const config::DnssecPolicy& policy);

}  // namespace pando::manager
