#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "dns/name.h"
#include "dns/types.h"
#include "shm/inspect/observer.h"

namespace pando::http {

/// One RRset in presentation format; signatures are RRsets of type RRSIG.
struct RRsetText {
  std::string owner;
  dns::RRType type{};
  std::uint32_t ttl = 0;
  std::vector<std::string> records;
};

struct ZoneContent {
  std::string apex;
  std::uint32_t serial = 0;
  bool secondary = false;
  bool has_denial = false;  ///< NSEC or NSEC3: the zone is signed
  std::uint64_t last_check = 0;
  std::vector<RRsetText> rrsets;  ///< in the zone's order: apex, names, NSEC3 owners
};

/// Reads a whole zone of one version of its data, a few names at a time and without a pin. Changes
/// of other zones repeat one step of the reading, and a change of this zone repeats all of it.
/// kNotFound: no such zone. kUnsupported: it has no data. kFull: it changes too quickly, or its
/// text is larger than `most_bytes`.
Result<ZoneContent> read_zone(const shm::Observer& observer, const dns::Name& apex,
                              std::size_t most_bytes);

/// A place in the order of a zone: apex, names, NSEC3 owners.
struct ContentPlace {
  enum class Phase : std::uint8_t { kApex, kNames, kNsec3, kEnd };
  Phase phase = Phase::kApex;
  dns::Name after{};
};

struct ContentPart {
  std::string apex;
  std::vector<RRsetText> rrsets;  ///< an RRset of signatures for each set that they cover
  ContentPlace next;              ///< kEnd: this was the last part
};

/// Reads some names of a zone, from a place on: at most 64, or some 1 MiB and a name. A part is of
/// one version. Changes between two parts repeat nothing, so the parts together may be of several
/// versions. kNotFound, kUnsupported, kFull as above.
Result<ContentPart> read_zone_part(const shm::Observer& observer, const dns::Name& apex,
                                   const ContentPlace& place);

}  // namespace pando::http
