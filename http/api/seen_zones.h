#pragma once

#include <vector>

#include "base/result.h"
#include "http/observe/collector.h"
#include "http/serve/access.h"

namespace pando::http {

/// The parts of the name space that a key sees, in canonical order; empty = all of it.
[[nodiscard]] std::vector<ZoneRange> ranges_of(const AccessKey& client);

/// Goes through the zones that a client sees, in canonical order and some at a time. Other zones
/// cost nothing. A zone that comes or goes meanwhile may be among them or not.
class SeenZones {
 public:
  /// `collector` outlives this object.
  SeenZones(Collector& collector, const AccessKey& client);
  /// The next 256 zones at most. kFull: versions of the store follow one another too quickly.
  Result<std::vector<ZoneFacts>> next();
  [[nodiscard]] bool at_end() const noexcept { return at_end_; }

 private:
  Collector* collector_;
  ZonePageRequest request_;
  bool at_end_ = false;
};

}  // namespace pando::http
