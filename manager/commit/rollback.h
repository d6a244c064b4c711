#pragma once

#include <string>

#include "base/result.h"
#include "config/settings/zone_table.h"
#include "dns/types.h"
#include "zone/history/zone_snapshot.h"
#include "zone/read/store_view.h"
#include "zone/record/changeset.h"

namespace pando::manager {

/// The changeset that turns a zone back into its state at `serial`. The new serial is ahead of the
/// present one, so that secondaries follow by IXFR. Empty when the zone has that serial.
///
/// kNotFound: the change history (zone/history/history.h) does not reach back so far. kCorrupt: the
/// history is damaged. kInvalid: somebody else signs the zone (check_rollback()), or signed that
/// version. `now` is seconds since 1970, for the policy.
Result<zone::Changeset> rollback_changes(const zone::ZoneView& zone, dns::Serial serial,
                                         config::SerialPolicy policy, std::uint64_t now);

/// The same for a snapshot of the zone. Empty when the zone has the snapshot's data. When other
/// data have replaced the snapshot's (zone/history/zone_snapshot.h), both zones are read whole.
/// kNotFound also when the snapshot was lost.
Result<zone::Changeset> rollback_changes(const zone::ZoneView& zone,
                                         const zone::ZoneSnapshot& version,
                                         config::SerialPolicy policy, std::uint64_t now);

/// The changeset between two serials of the zone's change history, with both SOA records. Changes
/// that a later changeset took back are left out. `from` may be the later one.
///
/// kNotFound: the history does not have one of the serials. kFull: more than `max_records` records
/// of changesets lie between them. kCorrupt: the history is damaged.
Result<zone::Changeset> history_diff(const zone::ZoneView& zone, dns::Serial from, dns::Serial to,
                                     std::uint64_t max_records);

/// kInvalid: the zone is signed, and not by this server, which could not sign the result.
Status check_rollback(const zone::ZoneView& zone);

/// The target of a rollback: a snapshot's label, or a serial when the label is empty.
struct RollbackTarget {
  dns::Serial serial{};
  std::string label{};
  zone::Author author{};  ///< of the rollback, for journal and history

  /// rollback_changes() of `zone`; kNotFound: the zone has no snapshot of that label.
  [[nodiscard]] Result<zone::Changeset> changes(const zone::ZoneView& zone,
                                                config::SerialPolicy policy,
                                                std::uint64_t now) const;
  /// Upper estimate of the records that the rollback changes or reads.
  [[nodiscard]] std::uint64_t records(const zone::ZoneView& zone) const;
};

/// The changeset of a rollback of zone `name`, with its author. No limits are checked here: the
/// change's owner sets them (ZoneControl::roll_back). kNotFound also when the zone is not loaded.
/// Any thread.
Result<zone::Changeset> rollback_of(const zone::StoreView& version, const dns::Name& name,
                                    const RollbackTarget& target, config::SerialPolicy policy,
                                    std::uint64_t now);

}  // namespace pando::manager
