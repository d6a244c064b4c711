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
  bool everybody_may_query = false;  ///< no rule to look at on the query path
};

/// Settings lie in the store in flat form; this keeps them decoded by their tags, so that the query
/// path neither decodes nor allocates once a zone's rules have been seen.
class SettingsCache {
 public:
  /// Settings of a version's server part; the last ones again when they cannot be read.
  const zone::ServerSettings& server(const zone::StoreView& snapshot);
  /// Null when the stored form is damaged. Valid until the next call.
  const DecodedZoneSettings* zone(const zone::ZoneView& zone);

 private:
  /// Distinct rule sets are few (templates); hostile growth is not possible, but forgetting is
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
