#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "dns/types.h"
#include "shm/store.h"
#include "zone/read/store_view.h"

/// A snapshot: a labelled version of a zone that a rollback can restore (`pandoctl zone snapshot`).
///
/// A snapshot is a serial in the zone's change history (zone/history/history.h), from which
/// changesets are no longer dropped. So a snapshot is free at first, and then costs the bytes of
/// later changes. The history ends when the zone is put whole. The old data, with the history that
/// led to them, are then *archived* rather than discarded. A ZoneEntry that only the list of
/// snapshots refers to keeps archived data. There is no copy and no reference count: archived data
/// share no block with the zone.
namespace pando::zone {

struct ZoneSnapshot {
  /// Held, or the reason of the loss.
  enum class State : std::uint8_t {
    kHeld,
    kHistoryEnded,  ///< a change that is no changeset from one serial to a later one
    kTooLarge,      ///< the changesets since are more than DataLimits::snapshots
    kStoreFull,     ///< low space: zones come first
  };

  std::string label;
  dns::Serial serial{};
  std::uint64_t taken = 0;  ///< seconds since 1970
  std::uint64_t records = 0;
  State state = State::kHeld;
  std::uint32_t archive = 0;  ///< reference to the archived data; 0 = the zone's own

  [[nodiscard]] bool held() const noexcept { return state == State::kHeld; }
  /// Whether the snapshot needs the changesets of the zone's own history.
  [[nodiscard]] bool on_history() const noexcept { return held() && archive == 0; }
};

inline constexpr std::size_t kMaxSnapshots = 32;      ///< of a zone
inline constexpr std::size_t kMaxSnapshotLabel = 46;  ///< octets

/// kInvalid unless the label has 1 to kMaxSnapshotLabel characters of a-z, A-Z, 0-9, '.', '_' and
/// '-'. A label of digits alone is invalid, too: it would be a serial.
Status check_label(std::string_view label);
/// The reason of a snapshot's loss, for people; "held" for a held snapshot.
[[nodiscard]] std::string_view to_text(ZoneSnapshot::State state) noexcept;

/// A zone's snapshots, oldest first; none where the list is damaged.
[[nodiscard]] std::vector<ZoneSnapshot> snapshots_of(const ZoneView& zone);
/// The snapshot with that label; null when there is none.
[[nodiscard]] const ZoneSnapshot* find_snapshot(const std::vector<ZoneSnapshot>& snapshots,
                                                std::string_view label) noexcept;
/// The data whose history leads from the snapshot: the zone's own, or archived data. No view when
/// the snapshot is lost, or the data are damaged.
[[nodiscard]] ZoneView data_of(const ZoneView& zone, const ZoneSnapshot& version);

/// The list at `ref` (ZoneEntry::snapshots), as above.
[[nodiscard]] std::vector<ZoneSnapshot> read_snapshots(const shm::Window& window,
                                                       std::uint32_t ref);
/// Writes a list; 0 for an empty one. kFull.
Result<std::uint32_t> write_snapshots(shm::Transaction& transaction,
                                      const std::vector<ZoneSnapshot>& snapshots);
/// Releases the list's block from the version; the archived data stay.
void release_snapshot_list(shm::Transaction& transaction, std::uint32_t ref);

}  // namespace pando::zone
