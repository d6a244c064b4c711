#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/result.h"
#include "shm/counts/count_rows.h"
#include "shm/map/mapping.h"

/// The manager's counters of single zones, in a file of shared memory beside the workers' pages.
/// Monitors read them without asking the manager.
namespace pando::shm {

inline constexpr std::size_t kZoneCounters = 8;  // ipc/zone_counters.h
using ZoneCountRow = CountRow<kZoneCounters>;
static_assert(sizeof(ZoneCountRow) == 72, "writer and readers of one build share the rows");

/// First bytes of the file; the rows follow.
struct ZoneCountsHeader {
  std::uint64_t magic;
  std::uint64_t row_bytes;
  std::uint64_t rows;                      // a power of two
  std::atomic<std::uint64_t> without_row;  // counts of zones for which there was no row
};
static_assert(sizeof(ZoneCountsHeader) == 32, "the rows start 8-aligned behind it");

/// Path of the file in the directory of the slots.
[[nodiscard]] std::string zone_counts_path(const std::string& directory);

/// The one writer of the file. Belongs to one thread.
class ZoneCounts {
 public:
  /// Opens the file, or makes it with a row for each of `zones` zones at least. A file that has
  /// another number of rows, or another layout, is replaced: its counters begin anew. All memory is
  /// allocated now, since a full filesystem must not be SIGBUS later.
  static Result<ZoneCounts> open(const std::string& directory, std::size_t zones);
  /// Removes the file.
  static void remove(const std::string& directory) noexcept;
  /// Lets the members of `group` read the file.
  Status share_with(std::uint32_t group);

  /// `key`: of the zone, not 0; `counter` < kZoneCounters.
  void count(std::uint64_t key, std::size_t counter) noexcept;

 private:
  ZoneCounts(std::string path, Mapping mapping) noexcept
      : path_(std::move(path)), mapping_(std::move(mapping)) {}

  std::string path_;
  Mapping mapping_;
};

/// A reader's mapping of the file.
class ZoneCountsView {
 public:
  /// kNotFound: the manager does not count by zone. kLayout: of another build.
  static Result<ZoneCountsView> open(const std::string& directory);
  /// The zone's counters; none: nothing was counted for it.
  [[nodiscard]] std::optional<std::array<std::uint64_t, kZoneCounters>> find(
      std::uint64_t key) const noexcept;
  /// Counts of zones for which there was no row.
  [[nodiscard]] std::uint64_t without_row() const noexcept;

 private:
  explicit ZoneCountsView(Mapping mapping) noexcept : mapping_(std::move(mapping)) {}
  Mapping mapping_;
};

}  // namespace pando::shm
