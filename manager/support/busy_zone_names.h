#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "dns/name.h"
#include "ipc/control_results.h"
#include "shm/slots.h"
#include "zone/read/store_view.h"

namespace pando::manager {

/// The zones that workers are asked for most, by the notes in their pages (ipc/busy_zones.h).
class BusyZoneNames {
 public:
  struct Notes {
    std::uint32_t slot = 0;
    std::uint32_t zone = 0;  ///< ZoneView::side_index()
    std::uint32_t count = 0;
  };
  /// On the commit thread.
  [[nodiscard]] static std::vector<Notes> read(shm::SlotTable& slots);

  /// Any thread. Zones that are new among the busy ones cost a walk over all zones. Notes of zones
  /// that are gone are left out.
  [[nodiscard]] ipc::ZoneQueriesResult with_names(const std::vector<Notes>& notes,
                                                  const zone::StoreView& version);

 private:
  using Names = std::map<std::uint32_t, dns::Name>;
  [[nodiscard]] Names known(const std::vector<Notes>& notes, const zone::StoreView& version) const;

  std::mutex mutex_;
  Names names_;  // of the call before
};

}  // namespace pando::manager
