#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "dns/name.h"
#include "dns/types.h"
#include "ipc/control_results.h"
#include "zone/read/store_view.h"
#include "zone/record/changeset.h"

/// Pages of a zone's records and changes, for commands. Pure: each page reads one version, which
/// the caller has pinned, in a time that the limits bound.
namespace pando::manager {

/// Limits of one page. A page becomes JSON on the commit thread, at some 1 ms for each 1,000 rows.
struct PageLimits {
  std::size_t rows = 1000;
  std::size_t bytes = std::size_t{256} << 10;  ///< of text; one row may exceed them
  std::size_t names = 20'000;                  ///< names visited, with or without a row
  std::uint64_t changed = 200'000;             ///< records of a history that are read
};

/// The records to read; all of the zone's by default.
struct ReadFilter {
  std::optional<dns::Name> owner;
  std::optional<dns::RRType> type;
};

/// The records that `filter` selects: SOA first, then in the zone's order. `after` is `next` of the
/// page before, or empty. A page may be empty although more follow. kNotFound: the filter's owner
/// has no such record. kInvalid: a malformed `after`.
Result<ipc::ZoneReadResult> read_page(const zone::ZoneView& zone, const ReadFilter& filter,
                                      const std::string& after, const PageLimits& limits);

/// The records of a changeset between two serials; `after` as above.
Result<ipc::ZoneDiffResult> diff_page(const zone::Changeset& changes, dns::Serial from,
                                      dns::Serial to, const std::string& after,
                                      const PageLimits& limits);

/// The changesets of a zone's history, oldest first; `after` as above.
Result<ipc::ZoneHistoryResult> history_page(const zone::ZoneView& zone, const std::string& after,
                                            const PageLimits& limits);

}  // namespace pando::manager
