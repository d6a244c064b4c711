#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "dns/name.h"
#include "shm/map/ref.h"

/// Walks a whole version, for `pandoctl store stats` and `store check`: where its octets are, and
/// whether all of it makes sense. Reads only; the version must stay pinned meanwhile. Bounded for
/// any octets in the store, like all reading of it.
namespace pando::zone {

/// Octets of blocks by what they hold; each block counts once. All but `padding` are what was
/// written; `padding` is what blocks were rounded up by.
struct Usage {
  std::uint64_t trie = 0;     ///< branches of all tries of names and zones
  std::uint64_t entries = 0;  ///< of the table of zones
  std::uint64_t owners = 0;   ///< record headers and owner names
  std::uint64_t headers = 0;  ///< of RRsets: type, counts, TTL, size, references
  std::uint64_t rdata = 0;
  std::uint64_t signatures = 0;  ///< RRSIGs
  std::uint64_t shared = 0;      ///< pages of name server sets that delegations share
  std::uint64_t history = 0;     ///< differences, with their trie
  std::uint64_t saved = 0;       ///< lists of saved versions, and data set aside for them
  std::uint64_t settings = 0;    ///< of server and zones, and the root
  std::uint64_t retired = 0;     ///< of zones that were replaced and are still being dismantled
  std::uint64_t padding = 0;

  [[nodiscard]] std::uint64_t total() const noexcept;
  /// For people and programs: the members by their names.
  [[nodiscard]] std::map<std::string, std::uint64_t> by_name() const;
};

/// What a saved version holds (zone/history/zone_snapshot.h): the differences from it to the next
/// later one of the same data. The last one before data were set aside has these data, too.
struct SnapshotUsage {
  std::string zone;
  std::string label;
  std::uint64_t bytes = 0;
};

struct Audit {
  static constexpr std::size_t kFaultsKept = 100;

  Usage usage;
  std::uint64_t zones = 0;
  std::uint64_t names = 0;
  std::uint64_t records = 0;
  std::uint64_t fault_count = 0;
  std::vector<std::string> faults;    ///< the first ones, a line each: the zone, and what is wrong
  std::vector<std::uint32_t> chunks;  ///< octets of blocks in each chunk
  std::vector<SnapshotUsage> saved;   ///< zones in canonical order, oldest first

  void add_fault(std::string text);
};

/// Told now and then how many octets of blocks have been met, rounded up as shm::occupancy() counts
/// them.
using AuditProgress = std::function<void(std::uint64_t octets)>;

/// What version `root` (shm::VersionInfo) has: references, order of names and RRsets, RDATA, tries,
/// counts of zones, histories. `progress` may be empty.
[[nodiscard]] Audit audit(shm::Window window, shm::Ref<> root, AuditProgress progress = {});

/// The same of one zone alone, without the settings it shares with others. No zone is a fault.
[[nodiscard]] Audit audit_zone(shm::Window window, shm::Ref<> root, dns::NameView apex);

/// Compares what was found in each chunk with what the store counts (shm::occupancy): a difference
/// is a block that was lost, freed while in use, or overlaps another.
void compare_chunks(Audit& audit, const std::vector<std::uint32_t>& counted);

}  // namespace pando::zone
