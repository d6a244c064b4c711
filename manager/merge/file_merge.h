#pragma once

#include "manager/journal/record/dynamic_changes.h"
#include "zone/read/store_view.h"

namespace pando::manager {

/// Three-way merge of an edited zone file. The three inputs are the merge base, the file now, and
/// the served zone with its updates. Updates win:
///
/// - A record that the file adds or removes is added to or removed from the zone, unless the zone
///   agrees already.
/// - A record added by an update stays until an update or the file removes the record. The file can
///   remove the record only once it has contained the record.
/// - A record removed by an update stays away until an update or the file adds the record. The file
///   can add the record only once it has lacked the record.
/// - A set with records or a TTL from an update keeps the TTL of the set.

/// Types made by a signer only (RRSIG, NSEC, NSEC3). The file's records of these types are taken
/// unmerged: mixed with records that came by update (manager/update/signed_update.h), neither side
/// would be right.
[[nodiscard]] bool is_signers(dns::RRType type) noexcept;

/// Drops dynamic changes that contradict the served zone, and returns their number. Such entries
/// mean that the journal lost records.
std::size_t drop_stale(DynamicChanges& changes, const zone::ZoneView& live);

/// Changes of the file since the merge base. `to_file` leads from the served zone to the present
/// file; without dynamic changes `to_file` itself is the result.
RecordChanges file_changes(RecordChanges to_file, const DynamicChanges& changes);

/// The changeset that brings `edit` (from file_changes) into the present zone. The zone may have
/// changed since `edit` was computed. SOA records are left to merged_soa().
zone::Changeset merge_edit(const zone::ZoneView& live, const RecordChanges& edit);

/// The SOA after a merge, with the serial of the served SOA.
zone::Record merged_soa(const zone::Record& live, const RecordChanges& edit);

/// The part of `by_record` that the zone `now` does not show.
RecordChanges not_followed(const zone::ZoneView& now, const RecordChanges& by_record);

/// The part of `edit` that the zone did not take over, when `live` is the actual change of the
/// zone.
RecordChanges held_back(const RecordChanges& edit, const RecordChanges& live);

}  // namespace pando::manager
