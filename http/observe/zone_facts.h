#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "base/result.h"
#include "dns/name.h"
#include "http/observe/observed.h"
#include "shm/inspect/observer.h"

namespace pando::http {

/// Reads the store, and the facts of the first `most_zones` zones in canonical order. The numbers
/// of one zone are of one version; a later zone's may be of a later version. kFull: versions
/// followed one another too quickly; `zones` then has the zones that were read.
Result<StoreFacts> read_store(const shm::Observer& observer, std::size_t most_zones,
                              std::vector<ZoneFacts>& zones);

/// Zones that a reader may see: that of the name `base` itself, or all below it.
struct ZoneRange {
  dns::Name base;
  bool below = false;
};

/// The zones of one page, and the work for it.
struct ZonePageRequest {
  std::optional<dns::Name> after{};  ///< the page starts after this name; none = from the start
  std::vector<ZoneRange> ranges{};   ///< in the canonical order of `base`; empty = all zones
  std::function<bool(const ZoneFacts&)> fits{};  ///< none = all zones do
  std::size_t most_found = 0;
  std::size_t most_looked = 0;  ///< zones examined, whether they fit or not
};

struct ZonePage {
  std::vector<ZoneFacts> zones{};    ///< in canonical order
  std::size_t looked = 0;            ///< zones examined
  std::optional<dns::Name> next{};   ///< `after` of the next page; none = this was the last page
};

/// Reads a page of zones. A page may have no zones although more follow. The numbers of one zone
/// are of one version. kFull as above.
Result<ZonePage> read_zone_page(const shm::Observer& observer, const ZonePageRequest& request);

}  // namespace pando::http
