#pragma once

#include <memory>

#include "zone/build/draft.h"

namespace pando::zone {

/// One zone's next data, worked out beside the commit thread. It starts from a version that stays
/// pinned as long as this object is there, and costs the commit thread nothing until it is adopted,
/// and then no more than a small difference.
///
/// Blocks and releases of the zone's data are in a transaction that the adopting one absorbs; a
/// release counts from that publication on, and never when nothing is adopted. What leads to the
/// zone (its entry, the trie of zones, the root) is written to a second transaction, which is only
/// read from and dropped: the present version has its own.
class DetachedDraft {
 public:
  /// `base` is the store's present version, pinned; on the commit thread.
  DetachedDraft(shm::Store& store, const shm::VersionInfo& base, dns::NameView apex);
  DetachedDraft(const DetachedDraft&) = delete;
  DetachedDraft& operator=(const DetachedDraft&) = delete;

  /// For apply() and put_zone_source() of this zone, in any one thread.
  [[nodiscard]] Draft& draft() noexcept { return draft_; }
  [[nodiscard]] shm::Transaction& transaction() noexcept { return data_; }

  /// Whether the zone has in `now` the data and the file that this began with, block for block:
  /// compaction moves them, too. Its settings may be others.
  [[nodiscard]] bool fits(const StoreView& now) const noexcept;
  /// Brings the zone's data into the version that `into` makes in `transaction`. kExists when it
  /// does not fit, and nothing has happened; after any other error that transaction must be
  /// dropped.
  Status adopt(shm::Transaction& transaction, Draft& into);

 private:
  [[nodiscard]] std::vector<std::uint32_t> retired() const;

  dns::Name apex_;
  StoreView base_;
  shm::Transaction data_;
  shm::Transaction scratch_;
  Draft draft_;
};

}  // namespace pando::zone
