#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "zone/build/draft.h"
#include "zone/read/store_view.h"

namespace pando::manager {

/// Data of a zone without data: the image's, which are not served, since the journal may have later
/// updates in a part that cannot be read. A snapshot of the zone keeps them until it has data again.
struct WithheldData {
  zone::ZoneView data;
  std::uint64_t position = 0;  ///< of the image; later records of the journal may be in the data
};

/// Unloads the zone and keeps its data, if the store is not in low space; else that is logged. A
/// snapshot of a user's gives way if the zone has as many as it may. The journal's records up to
/// `position` are in the data, and some of the later ones may be.
Status withhold_data(zone::Draft& draft, dns::NameView apex, std::uint64_t position);
/// The data that are kept for the zone; nullopt: it has data, or there are none.
[[nodiscard]] std::optional<WithheldData> withheld_data(const zone::ZoneView& zone);
/// To be called for a zone that has data again.
Status drop_withheld_data(zone::Draft& draft, dns::NameView apex);
/// Whether a snapshot's label is one of withheld data, which nobody else may give.
[[nodiscard]] bool is_withheld_label(std::string_view label) noexcept;

}  // namespace pando::manager
