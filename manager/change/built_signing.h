#pragma once

#include <optional>

#include "manager/change/zone_change.h"
#include "shm/store.h"

namespace pando::manager {

/// Signs a built zone as a whole: the signed zone takes the place of `data.built`, in a transaction
/// of its own, and `data.source_serial` has the serial that its source had. `served` is the serial
/// of the zone that is to be replaced: the new one is ahead of it. Otherwise it is ahead of the
/// source's, since other signatures may have had that before.
///
/// A source with DNSKEY records of other keys is refused, unless `is_signed_here`: the zone's
/// parent may have a DS record of these.
///
/// The chain of NSEC or NSEC3 records is verified, and one signature in a hundred: data that would
/// not validate are not served. For builder threads; takes 40 µs for each P-256 signature. The
/// result is the number of records that were left out, because a signer makes them. Errors are those
/// of zone::sign_zone(), kCorrupt: the result is not valid; kFull.
Result<std::uint64_t> sign_built_zone(shm::Store& store, const dns::Name& apex, WholeZone& data,
                                      const ChangeSigner& signer,
                                      std::optional<dns::Serial> served, bool is_signed_here);

/// Signs the source of a zone that is served. The result's `source_serial` is the served one.
Result<WholeZone> sign_served_zone(shm::Store& store, const zone::ZoneView& served,
                                   const ChangeSigner& signer);

/// Makes a served zone's source a zone of its own, with the next serial: the zone without
/// signatures. The result's `source_serial` is the served one.
Result<WholeZone> unsign_served_zone(shm::Store& store, const zone::ZoneView& served,
                                     dns::Serial serial);
/// Takes out of a built zone what a signer makes (dns/dnssec/derived_types.h); the rest takes the
/// place of `data.built`, in a transaction of its own and with `serial`. For builder threads.
Status take_source(shm::Store& store, const dns::Name& apex, WholeZone& data, dns::Serial serial);

}  // namespace pando::manager
