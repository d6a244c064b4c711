#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "zone/draft/draft.h"
#include "zone/read/store_view.h"

namespace pando::manager {

/// Data that a zone has from the image and does not serve: the journal may have later updates in a
/// part that cannot be read. A snapshot keeps the data until the zone serves data again.
struct WithheldData {
  zone::ZoneView data;
  std::uint64_t position = 0;  ///< of the image; later records of the journal may be in the data
};

/// Unloads the zone and withholds its data; in low space the data are dropped, which is logged. A
/// zone with the most snapshots that it may have loses a user's. The journal's records up to
/// `position` are in the data, and some of the later ones may be.
Status withhold_data(zone::Draft& draft, dns::NameView apex, std::uint64_t position);
/// The withheld data of the zone; nullopt: the zone serves data, or none were withheld.
[[nodiscard]] std::optional<WithheldData> withheld_data(const zone::ZoneView& zone);
/// To be called for a zone that has data again.
Status drop_withheld_data(zone::Draft& draft, dns::NameView apex);
/// Whether a snapshot's label is one of withheld data, which nobody else may give.
[[nodiscard]] bool is_withheld_label(std::string_view label) noexcept;

}  // namespace pando::manager
