#pragma once

#include <cstdint>

namespace pando::zone {

/// Limits checked when changes are applied (configuration `limits`).
struct DataLimits {
  std::uint32_t rrset_records = 100;
  std::uint32_t name_types = 100;
  std::uint64_t zone_records = 0;  ///< 0 = none
  /// Bytes of change history of a zone, and of all zones together.
  std::uint64_t history = std::uint64_t{16} << 20;
  std::uint64_t history_total = UINT64_MAX;
  /// Bytes that a zone's history may have beyond `history`, for snapshots
  /// (zone/history/zone_snapshot.h).
  std::uint64_t snapshots = std::uint64_t{64} << 20;

  /// Bytes of a zone's history when snapshots need it.
  [[nodiscard]] std::uint64_t history_with_snapshots() const noexcept;
  /// Bytes of the largest changeset that the history of a zone takes, with or without snapshots
  /// that need the history.
  [[nodiscard]] std::uint64_t largest_changeset(bool for_snapshots) const noexcept;
  static constexpr DataLimits none() noexcept { return {0, 0, 0}; }
  /// The limits of history alone: records from the operator, unlike those from a client, have no
  /// limits.
  [[nodiscard]] constexpr DataLimits of_history() const noexcept {
    return {0, 0, 0, history, history_total, snapshots};
  }
};

}  // namespace pando::zone
