#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "dns/name.h"
#include "zone/builder/comparison.h"
#include "zone/builder/zone_builder.h"
#include "zone/draft/draft.h"
#include "zone/record/changeset.h"

namespace pando::manager {

/// The records of a zone that a primary sends whole. The records wait for a decision, are compared
/// with the served zone, or build a new zone.
class ReceivedZone {
 public:
  /// `transaction` receives the built zone (see zone::ZoneBuilder) while the records arrive.
  ReceivedZone(const dns::Name& zone, const zone::DataLimits& limits, shm::Transaction& transaction)
      : zone_(zone), limits_(limits), builder_(zone.view(), transaction, limits) {}

  /// Keeps the records until resume() decides about them. Called before the first record if the
  /// caller may have a zone to compare with.
  void wait() noexcept { waits_ = true; }
  /// True if the zone has begun and resume() is due.
  [[nodiscard]] bool waits() const noexcept { return waits_ && records_ > 0; }
  /// Compares the records with `live`, or builds the zone if `live` is null. The caller keeps
  /// `live` pinned while comparison() exists. Errors as those of add().
  Status resume(const zone::ZoneView* live);
  /// kFull for a limit. Records outside the zone are skipped, as in BIND.
  Status add(zone::Record&& record);

  /// Null while the zone is being built.
  [[nodiscard]] zone::Comparison* comparison() noexcept {
    return comparison_ ? &*comparison_ : nullptr;
  }
  void drop_comparison() noexcept { comparison_.reset(); }
  /// Moves the compared records to builder(), which also gets all later records. Takes as long as
  /// building.
  Status build_instead();
  [[nodiscard]] zone::ZoneBuilder& builder() noexcept { return builder_; }
  /// Number of skipped records.
  [[nodiscard]] std::uint64_t foreign_records() const noexcept { return foreign_; }

 private:
  Status put(const zone::Record& record);

  dns::Name zone_;
  zone::DataLimits limits_;
  bool waits_ = false;
  std::vector<zone::Record> waiting_;  // records of the first message, until resume()
  zone::ZoneBuilder builder_;
  std::optional<zone::Comparison> comparison_;
  std::uint64_t records_ = 0;
  std::uint64_t foreign_ = 0;
};

}  // namespace pando::manager
