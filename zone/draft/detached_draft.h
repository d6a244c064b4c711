#pragma once

#include <memory>

#include "zone/draft/draft.h"

namespace pando::zone {

/// One zone's next data, computed beside the commit thread. The draft starts from a version that
/// stays pinned for the draft's lifetime. The draft costs the commit thread nothing until
/// adoption, and then no more than a small changeset.
///
/// Blocks and releases of the zone's data are in a transaction that the adopting one absorbs. A
/// release counts from that publication on, and never when the draft is not adopted. The path to
/// the zone is its entry, the trie of zones and the root. A second transaction has this path; it is
/// only read from and then dropped, because the present version has its own path.
class DetachedDraft {
 public:
  /// `base` is the store's present version, pinned; on the commit thread.
  DetachedDraft(shm::Store& store, const shm::VersionInfo& base, dns::NameView apex);
  DetachedDraft(const DetachedDraft&) = delete;
  DetachedDraft& operator=(const DetachedDraft&) = delete;

  /// For apply() and put_zone_source() of this zone, in any one thread.
  [[nodiscard]] Draft& draft() noexcept { return draft_; }
  [[nodiscard]] shm::Transaction& transaction() noexcept { return data_; }

  /// Whether the zone in `now` still has the data and the merge base with which this draft began,
  /// block for block: compaction moves blocks, too. The settings of the zone may differ.
  [[nodiscard]] bool fits(const StoreView& now) const noexcept;
  /// Brings the zone's data into the version that `into` makes in `transaction`. kExists when the
  /// draft does not fit: then nothing has happened. After any other error that transaction must be
  /// dropped.
  Status adopt(shm::Transaction& transaction, Draft& into);

 private:
  [[nodiscard]] std::vector<std::uint32_t> discarded() const;

  dns::Name apex_;
  StoreView base_;
  shm::Transaction data_;
  shm::Transaction scratch_;
  Draft draft_;
};

}  // namespace pando::zone
