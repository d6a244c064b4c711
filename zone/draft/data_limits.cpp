#include "zone/draft/data_limits.h"

#include <algorithm>

#include "zone/history/history.h"

namespace pando::zone {

namespace {

/// Half of the bytes for which a changeset's pieces can be numbered.
constexpr std::uint64_t kLargestChangeset = std::uint64_t{kHistoryPieceBytes} << 15;

}  // namespace

std::uint64_t DataLimits::history_with_snapshots() const noexcept {
  return history + std::min(snapshots, UINT64_MAX - history);
}

std::uint64_t DataLimits::largest_changeset(bool for_snapshots) const noexcept {
  return std::min(for_snapshots ? history_with_snapshots() : history, kLargestChangeset);
}

}  // namespace pando::zone
