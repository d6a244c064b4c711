#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "dns/message/message_template.h"
#include "worker/answer/answer.h"

namespace pando::worker {

/// Rendered referrals that can be put behind the next question below the same cut. The name
/// compression of a large delegation searches for each server's name. Nearly all queries to a root
/// or TLD server ask for the same few delegations.
///
/// One cache per worker. The table has a fixed size, and each delegation has one place in it. A
/// delegation that is rarely asked for (`wants`) displaces nothing. An entry belongs to one state
/// of the zone's data, so a change of the zone needs no clean-up.
class ReferralCache {
 public:
  struct Key {
    std::uint32_t zone = 0;          ///< ZoneView::side_index()
    std::uint64_t data_version = 0;  ///< ZoneView::data_version()
    bool dnssec_ok = false;
    dns::NameView cut;
  };

  /// Puts the referral behind the writer's question, which is at or below the cut. kNothing: the
  /// referral is not cached, or its NS RRset does not fit.
  dns::MessageTemplate::Put put(const Key& key, dns::MessageWriter& writer) const noexcept;
  /// Returns true for a delegation that was missed twice in a row at its place.
  [[nodiscard]] bool wants(const Key& key) noexcept;
  /// Caches `answer`, the whole referral for `question`, which asks for the cut's name.
  void keep(const Key& key, const Answer& answer, const dns::Question& question);

 private:
  static constexpr std::size_t kPlaces = 1024;  // places of at most 1.4 KB each
  struct Entry {
    Bytes cut;  // in lower case
    std::uint32_t zone;
    std::uint64_t data_version;
    dns::MessageTemplate referral;
  };
  struct Place {
    std::uint64_t tag = 0;     // tag of the entry; 0 = none
    std::uint64_t missed = 0;  // tag of the last miss
    std::unique_ptr<Entry> entry;
  };
  static std::uint64_t tag_of(const Key& key) noexcept;

  std::vector<Place> places_;  // allocated at the first miss
  Bytes space_;
};

}  // namespace pando::worker
