#pragma once

#include <cstdint>
#include <optional>

#include "zone/draft/draft.h"
#include "zone/read/store_view.h"
#include "zone/record/changeset.h"

namespace pando::manager {

/// Records that diff_zones() compares.
enum class Compared : std::uint8_t {
  kAll,
  kSource,  ///< without those that a signer makes (dns/dnssec/derived_types.h), and ZONEMD
};

/// The changeset that turns the data of `before` into those of `after` (same apex). Both zones are
/// walked once, side by side. The SOA pair is left out: the caller decides the serial.
///
/// Nullopt when more than `max_records` records would change: then replacing the zone is cheaper.
/// With such a limit a first walk only counts, so that no records are collected in vain.
std::optional<zone::Changeset> diff_zones(const zone::ZoneView& before, const zone::ZoneView& after,
                                          std::uint64_t max_records,
                                          Compared compared = Compared::kAll);

/// A view of a built zone before its publication, through a private draft.
class BuiltView {
 public:
  BuiltView(shm::Store& store, const dns::Name& apex, const zone::BuiltZone& built);
  /// Valid as long as this object. kFull.
  [[nodiscard]] Result<zone::ZoneView> zone() const;

 private:
  shm::Transaction scratch_;
  zone::Draft draft_;
  dns::Name apex_;
  Status made_;
};

/// The first (only) SOA of a zone's apex as a record; nullopt when the zone is not loaded.
std::optional<zone::Record> soa_record(const zone::ZoneView& zone);

}  // namespace pando::manager
