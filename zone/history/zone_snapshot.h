#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "dns/types.h"
#include "shm/store.h"
#include "zone/read/store_view.h"

/// Versions of a zone that were given a label, to go back to (`pandoctl zone snapshot`).
///
/// A saved version is a serial in the zone's change history (zone/history/history.h), from which
/// differences are not dropped any more; so it costs nothing at first, and then what changes. When
/// the history cannot go on, because the zone is put whole, its data are not given back but *set
/// aside*, with the history that led to them, in a ZoneEntry that nothing but the list of saved
/// versions leads to. There is no other copy, and nothing is counted: what is set aside shares no
/// block with the zone.
namespace pando::zone {

struct ZoneSnapshot {
  /// Held, or why it was lost.
  enum class State : std::uint8_t {
    kHeld,
    kHistoryEnded,  ///< a change that is no difference from one serial to a later one
    kTooLarge,      ///< the differences since are more than DataLimits::saved
    kStoreFull,     ///< the store is nearly full: zones come first
  };

  std::string label;
  dns::Serial serial{};
  std::uint64_t taken = 0;  ///< seconds since 1970
  std::uint64_t records = 0;
  State state = State::kHeld;
  std::uint32_t aside = 0;  ///< reference to the data that were set aside; 0 = the zone's own

  [[nodiscard]] bool held() const noexcept { return state == State::kHeld; }
  /// Needs the differences of the zone's own history.
  [[nodiscard]] bool on_history() const noexcept { return held() && aside == 0; }
};

inline constexpr std::size_t kMaxSavedVersions = 32;  ///< of a zone
inline constexpr std::size_t kMaxSavedLabel = 46;     ///< octets

/// kInvalid unless it has 1 to kMaxSavedLabel of a-z, A-Z, 0-9, '.', '_' and '-', and not digits
/// alone, which would be a serial.
Status check_label(std::string_view label);
/// Why one was lost, for people; "held" for one that was not.
[[nodiscard]] std::string_view to_text(ZoneSnapshot::State state) noexcept;

/// A zone's saved versions, oldest first; none where the list is damaged.
[[nodiscard]] std::vector<ZoneSnapshot> saved_versions(const ZoneView& zone);
/// The one with that label; null when there is none.
[[nodiscard]] const ZoneSnapshot* find_saved(const std::vector<ZoneSnapshot>& saved,
                                             std::string_view label) noexcept;
/// The data whose history leads from the saved version: the zone, or what was set aside. No view
/// when it was lost, or is damaged.
[[nodiscard]] ZoneView data_of(const ZoneView& zone, const ZoneSnapshot& version);

/// The list at `ref` (ZoneEntry::saved), as above.
[[nodiscard]] std::vector<ZoneSnapshot> read_saved(const shm::Window& window, std::uint32_t ref);
/// Writes a list; 0 for an empty one. kFull.
Result<std::uint32_t> write_saved(shm::Transaction& transaction,
                                  const std::vector<ZoneSnapshot>& saved);
/// The list's block leaves the version; what it leads to stays.
void release_saved_list(shm::Transaction& transaction, std::uint32_t ref);

}  // namespace pando::zone
