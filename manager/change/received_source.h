#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "config/settings/zone_table.h"
#include "manager/change/zone_change.h"
#include "zone/read/store_view.h"
#include "zone/record/changeset.h"

/// Data that a primary sends for a secondary zone that has serials of its own, because this server
/// signs it (zone::primary_serial()). Its source follows the primary's zone.
namespace pando::manager {

/// The serial of our zone for data that have `primary` at the primary: the same, if that is ahead of
/// `served`, else the next one by `policy`. Ours moves with renewed signatures, too, so that it is
/// ahead of the primary's most of the time. `now` is seconds since 1970.
[[nodiscard]] dns::Serial own_serial(dns::Serial primary, dns::Serial served,
                                     config::SerialPolicy policy, std::uint64_t now) noexcept;

/// A changeset of a primary as one of our zone.
struct ReceivedSource {
  zone::Changeset changes;  ///< of the zone's source, from our serial to our next one
  /// Nullopt: the primary's serial is ahead of ours and the zone is not signed here any more, so that
  /// it has one serial from now on.
  std::optional<dns::Serial> primary_serial;
  std::uint64_t left_out = 0;  ///< records that the signer makes, or a digest
};

/// `keys.signer` null: the zone is not signed (any more). `checks_digest`: a changeset with another
/// ZONEMD record is refused, since only a whole zone can be compared with it.
///
/// kInvalid: the changeset does not fit the zone's source, and the whole zone may; kUnsupported: the
/// zone is signed, and has no policy any more. Precondition: zone::primary_serial(before).
Result<ReceivedSource> received_source(const zone::ZoneView& before,
                                       const zone::Changeset& received, const ChangeSigner& keys,
                                       bool checks_digest);

/// The change that a whole zone of a primary makes in the source of the served one, with our next
/// serial. Nullopt: more than `most` records.
Result<std::optional<ComputedChange>> received_difference(const zone::ZoneView& served,
                                                          const zone::ZoneView& received,
                                                          const ChangeSigner& keys,
                                                          std::uint64_t most);

/// The error of data that would take the signatures out of a zone which is signed.
[[nodiscard]] Error signed_without_policy();

}  // namespace pando::manager
