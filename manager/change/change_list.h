#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <unordered_map>

#include "dns/name.h"
#include "manager/change/zone_change.h"

namespace pando::manager {

/// A change that is under way, of one zone or of several in one version.
struct ChangeUnderWay {
  ChangeSource source = ChangeSource::kUpdate;
  ChangeStep step = ChangeStep::kStaging;
  /// Time at which the step began.
  std::chrono::steady_clock::time_point since = std::chrono::steady_clock::now();

  void reach(ChangeStep next) {
    step = next;
    since = std::chrono::steady_clock::now();
  }
};

/// The changes under way by their zones, for reports. Lives on the commit thread.
class ChangeList {
 public:
  /// `change` stays valid, and its source the same, until remove() with the same arguments.
  void add(dns::NameView zone, const ChangeUnderWay& change) {
    changes_.emplace(dns::hash_name(zone), Entry{zone, &change});
  }
  void remove(dns::NameView zone, const ChangeUnderWay& change);
  /// The change of the zone whose present step began first; nullopt: none is under way.
  [[nodiscard]] std::optional<ChangeUnderWay> oldest(dns::NameView zone) const;
  [[nodiscard]] bool empty() const noexcept { return changes_.empty(); }

 private:
  struct Entry {
    dns::NameView zone;  // owned by the change
    const ChangeUnderWay* change;
  };
  std::unordered_multimap<std::uint64_t, Entry> changes_;  // by the hashes of the names
};

}  // namespace pando::manager
