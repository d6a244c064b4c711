#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "dns/name.h"
#include "dns/types.h"
#include "zone/record/changeset.h"

namespace pando::manager {

/// Turns the difference sequences of one IXFR response (RFC 1995 §4) into changesets, oldest first.
/// Each sequence has its old SOA, the removed records, its new SOA and the added records. The
/// opening SOA of the response is not given to this class.
///
/// Changesets stay in memory until complete. A server whose difference sequences are larger than
/// the zone should send the zone instead (RFC 1995 §2).
class DifferenceSequences {
 public:
  struct Limits {
    std::uint64_t records = UINT64_MAX;  ///< total, with the opening SOA of the response
    std::uint64_t bytes = UINT64_MAX;    ///< approximate memory
  };

  DifferenceSequences(const dns::Name& zone, const Limits& limits) : zone_(zone), limits_(limits) {}

  /// Takes the old SOA of the first sequence, which must have the serial `current`. `newest` is the
  /// serial of the opening SOA.
  Status begin(zone::Record&& soa, dns::Serial current, dns::Serial newest);
  /// Takes the next record; true after the closing SOA of the response.
  Result<bool> take(zone::Record&& record);
  [[nodiscard]] std::vector<zone::Changeset>& changesets() noexcept { return changesets_; }
  /// True before begin().
  [[nodiscard]] bool empty() const noexcept { return changesets_.empty(); }

 private:
  Status begin_sequence(zone::Record&& soa, dns::Serial expected);
  Status keep(std::vector<zone::Record>& list, zone::Record&& record);

  dns::Name zone_;
  Limits limits_;
  bool adding_ = false;  // after the new SOA of the current sequence
  dns::Serial newest_;
  dns::Serial to_;  // end serial of the current sequence
  std::vector<zone::Changeset> changesets_;
  std::uint64_t records_ = 1;
  std::uint64_t bytes_ = 0;
};

}  // namespace pando::manager
