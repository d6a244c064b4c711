#pragma once

#include <optional>

#include "manager/journal/record/journal_payload.h"
#include "zone/read/store_view.h"

namespace pando::manager {

/// The serial that the served data have at their primary: to be compared with what a primary says,
/// and to be asked about. It is the zone's own serial, unless this server signs the zone
/// (zone::primary_serial()). Nullopt: there are no data, or it is not known, so that the zone has
/// to be sent whole.
[[nodiscard]] inline std::optional<dns::Serial> serial_at_primary(const zone::ZoneView& zone) {
  if (!zone || !zone.loaded()) return std::nullopt;
  if (const auto known = zone::primary_serial(zone)) return known;
  // The zone was a primary one, or comes from a copy without its journal.
  const bool is_signed = zone.denial() != zone::Denial::kUnsigned;
  if (is_signed && is_signed_here(zone)) return std::nullopt;
  return zone.serial();
}

}  // namespace pando::manager
