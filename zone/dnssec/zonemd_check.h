#pragma once

#include <string>

#include "zone/read/store_view.h"

namespace pando::zone {

/// Whether the zone has a ZONEMD record at its apex.
[[nodiscard]] bool has_zonemd(const ZoneView& zone);

/// Compares the zone's digests with its data (RFC 8976 §4). The fault; empty = a digest agrees, or
/// none can be computed here (another scheme or hash algorithm), or there is none. Reads the whole
/// zone: some 300 MB/s. The records' signatures are another check's task.
[[nodiscard]] std::string check_zonemd(const ZoneView& zone);

}  // namespace pando::zone
