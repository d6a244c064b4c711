#pragma once

#include <string>

#include "base/result.h"
#include "config/settings/zone_table.h"
#include "dns/types.h"
#include "manager/commit/committer.h"
#include "zone/history/zone_snapshot.h"
#include "zone/read/store_view.h"
#include "zone/record/changeset.h"

namespace pando::manager {

/// What turns a zone back into what it was at `serial`, under a serial ahead of the present one, so
/// that secondaries follow by IXFR. Empty when the zone has that serial. kNotFound: its change
/// history (zone/history/history.h) does not reach back so far; kCorrupt: the history is damaged;
/// kInvalid: the zone is signed, or was.
/// `now` is seconds since 1970, for the policy.
Result<zone::Changeset> rollback_changes(const zone::ZoneView& zone, dns::Serial serial,
                                         config::SerialPolicy policy, std::uint64_t now);

/// The same for a saved version of the zone. Empty when the zone has its data. When other data have
/// taken their place (zone/history/zone_snapshot.h) this reads both zones whole. kNotFound also
/// when it was lost.
Result<zone::Changeset> rollback_changes(const zone::ZoneView& zone,
                                         const zone::ZoneSnapshot& version,
                                         config::SerialPolicy policy, std::uint64_t now);

/// kInvalid: the zone is signed, and nobody here could sign what it would be made.
Status check_rollback(const zone::ZoneView& zone);

/// Where a zone is to be led back to: a label, or when that is empty a serial.
struct RollbackTarget {
  dns::Serial serial{};
  std::string label{};

  /// rollback_changes() of `zone`; kNotFound: it has no snapshot of that label.
  [[nodiscard]] Result<zone::Changeset> changes(const zone::ZoneView& zone,
                                                config::SerialPolicy policy,
                                                std::uint64_t now) const;
  /// Records that this changes, or looks at, at most about.
  [[nodiscard]] std::uint64_t records(const zone::ZoneView& zone) const;
};

/// The step that leads the zone `name` back, with its record for the journal. What was served once
/// may be served again: of `limits` those of history hold. kNotFound also when
/// it is not loaded; kIo when it is there already and a crash of the host could take it away from
/// there (check_end). Any thread.
Status stage_rollback(const Committer& committer, const Journal& journal, Stage& stage,
                      const dns::Name& name, const RollbackTarget& target,
                      config::SerialPolicy policy, std::uint64_t now,
                      const zone::DataLimits& limits);

}  // namespace pando::manager
