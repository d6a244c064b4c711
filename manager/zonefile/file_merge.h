#pragma once

#include "manager/journal/dynamic_changes.h"
#include "zone/read/store_view.h"

namespace pando::manager {

/// The rules of the three-way merge of an edited zone file: the file as it was merged last, the
/// file now, and the zone as updates have made it. Updates win:
///
/// - a record that the file adds or removes is added to or removed from the zone, if it is not so
///   already;
/// - a record that an update added stays until an update removes it or the file, having had it
///   meanwhile, does; one that an update removed stays away until an update or the file adds it;
/// - a set with records or a TTL that came by update keeps its TTL.

/// Records that only a signer makes: an edited file's are taken as they are, since beside others
/// that came by update (manager/update/signed_update.h) neither the one nor the other would be
/// right.
[[nodiscard]] bool is_signers(dns::RRType type) noexcept;

/// Drops entries that do not say what the zone has, and counts them: a journal that lost records.
std::size_t drop_stale(DynamicChanges& overlay, const zone::ZoneView& live);

/// How the file changed since it was last merged. `to_file` leads from the served zone to the file
/// as it is now; without updates that is the answer.
Steps file_steps(Steps to_file, const DynamicChanges& overlay);

/// The changes that bring `edit` (from file_steps) into the zone as it is now, which may have moved
/// since the edit was worked out. The SOA is left to merged_soa().
zone::Changeset merge_edit(const zone::ZoneView& live, const Steps& edit);

/// The SOA that goes with it, with the live one's serial.
zone::Record merged_soa(const zone::Record& live, const Steps& edit);

/// The part of `steps` that is not so in the zone as it is now.
Steps not_followed(const zone::ZoneView& now, const Steps& steps);

/// The part of `edit` that the zone did not follow when `live` was what changed in it.
Steps held_back(const Steps& edit, const Steps& live);

}  // namespace pando::manager
