#pragma once

#include "dns/zonefile/zone_text.h"
#include "zone/read/store_view.h"

namespace pando::manager {

enum class WrittenRecords : std::uint8_t {
  kAll,
  kSource,  ///< without those that a signer makes (dns/dnssec/derived_types.h)
};

/// Writes a loaded zone's SOA, then its other records, and finishes the text. kCorrupt: the zone's
/// records do not match its record count. The caller keeps the zone's version pinned.
Status write_zone_records(dns::ZoneTextWriter& writer, const zone::ZoneView& zone,
                          WrittenRecords written = WrittenRecords::kAll);

}  // namespace pando::manager
