#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "dns/name.h"
#include "shm/map/ref.h"

/// Walks a whole version, for `pandoctl store stats` and `store check`: finds the use of its bytes
/// and any contradictions. Reads only; the version must stay pinned meanwhile. Bounded for any
/// bytes in the store, like all reading of it.
namespace pando::zone {

/// Bytes of blocks by content; each block counts once. `padding` is the rounding of block sizes;
/// all others are written data.
struct Usage {
  std::uint64_t trie = 0;     ///< branches of all tries of names and zones
  std::uint64_t entries = 0;  ///< of the table of zones
  std::uint64_t owners = 0;   ///< record headers and owner names
  std::uint64_t headers = 0;  ///< of RRsets: type, counts, TTL, size, references
  std::uint64_t rdata = 0;
  std::uint64_t signatures = 0;  ///< RRSIGs
  std::uint64_t shared = 0;      ///< pages of name server sets that delegations share
  std::uint64_t history = 0;     ///< changesets, with their trie
  std::uint64_t snapshots = 0;   ///< lists of snapshots, and archived data that snapshots keep
  std::uint64_t settings = 0;    ///< of server and zones, and the root
  std::uint64_t discarded = 0;   ///< of replaced zones that are still being dismantled
  std::uint64_t padding = 0;

  [[nodiscard]] std::uint64_t total() const noexcept;
  /// The members by their names, for people and programs.
  [[nodiscard]] std::map<std::string, std::uint64_t> by_name() const;
};

/// The bytes that a snapshot holds (zone/history/zone_snapshot.h): the changesets from it to the
/// next later snapshot of the same data. The last snapshot before the data were archived counts
/// these data, too.
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
  std::vector<std::string> faults;       ///< the first faults, a line each: the zone, and the fault
  std::vector<std::uint32_t> chunks;     ///< bytes of blocks in each chunk
  std::vector<SnapshotUsage> snapshots;  ///< zones in canonical order, oldest first

  void add_fault(std::string text);
};

/// Called now and then with the bytes of blocks met so far, rounded up as shm::occupancy() counts
/// them.
using AuditProgress = std::function<void(std::uint64_t octets)>;

/// Audits the version `root` (shm::VersionInfo): references, order of names and RRsets, RDATA,
/// tries, counts of zones, histories. `progress` may be empty.
[[nodiscard]] Audit audit(shm::Window window, shm::Ref<> root, AuditProgress progress = {});

/// Audits one zone alone, without the settings that it shares with others. A missing zone is a
/// fault.
[[nodiscard]] Audit audit_zone(shm::Window window, shm::Ref<> root, dns::NameView apex);

/// Compares the bytes found in each chunk with the store's own counts (shm::occupancy). A
/// difference means a block that was lost, freed while in use, or overlaps another.
void compare_chunks(Audit& audit, const std::vector<std::uint32_t>& counted);

}  // namespace pando::zone
