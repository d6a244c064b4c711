#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "dns/name.h"
#include "shm/inspect/observer.h"

namespace pando::http {

/// A changeset of a zone's change history, without its two SOA records.
struct ChangesetFacts {
  std::uint32_t from = 0;  ///< serial
  std::uint32_t to = 0;
  std::uint64_t records = 0;               ///< removed and added
  std::optional<std::uint64_t> added{};    ///< of these; none: a large changeset is not read
};

struct SnapshotFacts {
  std::string label;
  std::uint32_t serial = 0;
  std::uint64_t taken = 0;  ///< seconds since 1970
  std::uint64_t records = 0;
  std::string lost{};  ///< the reason why a rollback to it is impossible; empty = possible
};

struct ZonePast {
  std::vector<ChangesetFacts> changesets{};  ///< the newest ones, newest first
  std::uint64_t older = 0;                   ///< changesets before these
  /// False: there are too many changesets to find the newest ones, or they changed too quickly.
  bool known = true;
  std::vector<SnapshotFacts> snapshots{};  ///< oldest first
};

/// Reads the newest `most` changesets of a zone, and its snapshots, without a pin and without the
/// manager. The history is walked from its oldest changeset, at one descent for each, up to
/// 200,000. kNotFound: no such zone. kFull: versions follow one another too quickly.
Result<ZonePast> read_zone_past(const shm::Observer& observer, const dns::Name& apex,
                                std::size_t most);

}  // namespace pando::http
