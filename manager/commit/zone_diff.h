#pragma once

#include <cstdint>
#include <optional>

#include "zone/build/draft.h"
#include "zone/read/store_view.h"
#include "zone/record/changeset.h"

namespace pando::manager {

/// What turns the data of `before` into that of `after` (same apex). Both are walked once, side by
/// side. The SOA pair is left out: the caller decides the serial. Nullopt when more than
/// `max_records` records would change: then replacing the zone is cheaper than changing it. Where
/// there is such a limit they are walked once more before, so that nothing is collected in vain.
std::optional<zone::Changeset> diff_zones(const zone::ZoneView& before, const zone::ZoneView& after,
                                          std::uint64_t max_records);

/// A look at a zone that was built and is not published, through a draft that nobody else sees.
class BuiltView {
 public:
  BuiltView(shm::Store& store, const dns::Name& apex, const zone::ZoneBuilder::Built& built);
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
