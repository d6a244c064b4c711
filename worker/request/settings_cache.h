#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>

#include "zone/read/store_view.h"
#include "zone/settings/compiled_settings.h"

namespace pando::worker {

/// Zone settings in decoded form.
struct DecodedZoneSettings {
  zone::ZoneSettings settings;
  bool everybody_may_query = false;  ///< the query path need not check any rule
};

/// Caches decoded settings by their tags; in the store, settings are flat. Once a zone's rules were
/// seen, the query path neither decodes nor allocates.
class SettingsCache {
 public:
  /// Settings of a version's server part; the previous ones when these cannot be read.
  const zone::ServerSettings& server(const zone::StoreView& view);
  /// Null when the stored form is damaged. Valid until the next call.
  const DecodedZoneSettings* zone(const zone::ZoneView& zone) {
    const bool is_last = last_ != nullptr && zone.settings_tag() == last_tag_;
    return is_last ? last_ : other_zone(zone);
  }

 private:
  const DecodedZoneSettings* other_zone(const zone::ZoneView& zone);

  /// Distinct rule sets are few (templates), and clients cannot add any. Forgetting all of them is
  /// cheap.
  static constexpr std::size_t kMaxEntries = 4096;

  std::uint64_t server_tag_ = 0;
  bool server_known_ = false;
  zone::ServerSettings server_;
  std::uint64_t last_tag_ = 0;
  const DecodedZoneSettings* last_ = nullptr;
  std::unordered_map<std::uint64_t, std::unique_ptr<DecodedZoneSettings>> zones_;
};

}  // namespace pando::worker
