#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "dns/message/message_template.h"
#include "worker/answer/answer.h"

namespace pando::worker {

/// Referrals as they were written, to be put behind the next question below the same cut: the
/// servers of a large delegation need a search for each of their names, and nearly all queries to a
/// root or TLD server ask for the same few delegations again and again.
///
/// One per worker. A table of fixed size, each delegation having one place in it; what is asked for
/// only once in a while (`wants`) displaces nothing. An entry belongs to one state of the zone's
/// data, so a change of the zone needs no clean-up.
class ReferralCache {
 public:
  struct Key {
    std::uint32_t zone = 0;          ///< ZoneView::side_index()
    std::uint64_t data_version = 0;  ///< ZoneView::data_version()
    bool dnssec_ok = false;
    dns::NameView cut;
  };

  /// Puts the referral behind the writer's question, which is at or below the cut. kNothing: it is
  /// not here, or its NS RRset does not fit.
  dns::MessageTemplate::Put put(const Key& key, dns::MessageWriter& writer) const noexcept;
  /// True for a delegation that was missed twice with nothing else at its place in between.
  [[nodiscard]] bool wants(const Key& key) noexcept;
  /// Keeps `answer`, the whole referral as the answer to `question`, which asks for the cut's name.
  void keep(const Key& key, const Answer& answer, const dns::Question& question);

 private:
  static constexpr std::size_t kPlaces = 1024;  // of 1.4 KB each at most
  struct Entry {
    Bytes cut;  // in lower case
    std::uint32_t zone;
    std::uint64_t data_version;
    dns::MessageTemplate referral;
  };
  struct Place {
    std::uint64_t tag = 0;     // of the entry; 0 = none
    std::uint64_t missed = 0;  // last
    std::unique_ptr<Entry> entry;
  };
  static std::uint64_t tag_of(const Key& key) noexcept;

  std::vector<Place> places_;  // made when first wanted
  Bytes space_;
};

}  // namespace pando::worker
