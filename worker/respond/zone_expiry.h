#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "shm/store.h"
#include "worker/request/settings_cache.h"
#include "zone/read/store_view.h"

namespace pando::worker {

/// Gives a zone's entry of the unversioned side table, or null.
using SideTable = std::function<const shm::Store::SideEntry*(std::uint32_t)>;

/// Times at which secondary zones expire. The manager writes them to the side table, outside the
/// versions, so a successful refresh needs no commit.
class ZoneExpiry {
 public:
  explicit ZoneExpiry(SideTable side) : side_(std::move(side)) {}

  /// True for a zone that has expired at second `now`; never for primary zones.
  [[nodiscard]] bool expired(const zone::ZoneView& zone, std::uint64_t now) const;
  /// RFC 7314 §3.3, the EXPIRE option: a primary sends the SOA's EXPIRE, a secondary the remaining
  /// time. Neither is longer than a signed zone's first signature lasts, because a secondary that
  /// serves the zone after that serves bogus data.
  [[nodiscard]] std::optional<std::uint32_t> remaining(const zone::ZoneView& zone,
                                                       const zone::ZoneSettings& rules,
                                                       std::uint64_t now) const;

 private:
  SideTable side_;
};

}  // namespace pando::worker
