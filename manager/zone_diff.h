#pragma once

#include <cstdint>
#include <optional>

#include "zone/changes.h"
#include "zone/snapshot.h"

namespace pando::manager {

/// What turns the data of `before` into that of `after` (same apex). Both are walked once, side by
/// side. The SOA pair is left out: the caller decides the serial. Nullopt when more than
/// `max_records` records would change: then replacing the zone is cheaper than changing it.
std::optional<zone::Changes> diff_zones(const zone::ZoneView& before, const zone::ZoneView& after,
                                        std::uint64_t max_records);

/// The first (only) SOA of a zone's apex as a record; nullopt when the zone is not loaded.
std::optional<zone::Record> soa_record(const zone::ZoneView& zone);

}  // namespace pando::manager
