#pragma once

#include <cstdint>

#include "manager/change/zone_change.h"
#include "shm/store.h"
#include "zone/read/store_view.h"

namespace pando::manager {

/// The zone that a whole transfer is for.
struct TransferTarget {
  zone::ZoneView served;        ///< pinned; may have no data
  const ChangeSigner& keys;     ///< signer null: the zone is not signed (any more)
  bool has_policy = false;      ///< the configuration has it signed here
  bool is_signed_here = false;  ///< `served` has the signatures of these keys
};

/// Prepares a zone that a primary sent whole for a zone that is signed here, or has serials of its
/// own still (zone::primary_serial()):
///
/// - with ZoneChange::checks_digest, ZONEMD is compared with the data as they came;
/// - a difference of at most half the zone becomes a changeset (ZoneChange::may_be_changeset), so
///   that the other signatures stay and secondaries get an IXFR. It replaces `change.content`;
/// - else the zone is signed as a whole, or gets our next serial if it is not signed any more.
///
/// The result is the number of records that were left out, because a signer makes them. For builder
/// threads. kInvalid: refused; kUnsupported: the zone is signed, and has no policy any more; other
/// errors are those of sign_built_zone().
Result<std::uint64_t> take_whole_transfer(shm::Store& store, ZoneChange& change,
                                          const TransferTarget& target);

}  // namespace pando::manager
