#include <algorithm>

#include "zone/draft/built.h"
#include "zone/draft/draft.h"
#include "zone/history/history.h"
#include "zone/history/zone_snapshot.h"
#include "zone/trie/zone_layout.h"

// A draft's operations on the zones' change histories.

namespace pando::zone {

namespace {

/// Bounds the cost of one step: each drop takes a few microseconds.
constexpr std::size_t kDropsAtOnce = 1024;
/// Half of the bytes for which a changeset's pieces can be numbered.
constexpr std::uint64_t kLargestChangeset = std::uint64_t{kHistoryPieceBytes} << 15;

using State = ZoneSnapshot::State;

std::uint64_t with_snapshots(const DataLimits& limits) noexcept {
  return limits.history + std::min(limits.snapshots, UINT64_MAX - limits.history);
}

bool needs_history(const ZoneSnapshot& version) noexcept { return version.on_history(); }

}  // namespace

std::uint64_t DataLimits::largest_changeset(bool for_snapshots) const noexcept {
  return std::min(for_snapshots ? with_snapshots(*this) : history, kLargestChangeset);
}

/// Appends the change to the zone's history, or ends the history where appending is impossible.
Status Draft::append_history(ZoneEntry& entry, const Applied& applied, const DataLimits& limits) {
  auto root = writable_root();
  if (!root) return pass(root);
  HistoryEditor history(transaction_, entry, **root);
  const auto snapshots = read_snapshots(transaction_.window(), entry.snapshots);
  const bool is_needed = std::any_of(snapshots.begin(), snapshots.end(), needs_history);
  const std::uint64_t octets = HistoryEditor::bytes_of(applied.effective);
  const bool fits = applied.to.ahead_of(applied.from) && transaction_.can_afford(octets) &&
                    octets < limits.largest_changeset(is_needed) && !history.has(applied.from);
  if (!fits) {
    // At low space archive_copy() did not make the copy that would have kept the snapshots either.
    const State why = transaction_.low_space() ? State::kStoreFull : State::kHistoryEnded;
    auto lost = lose_snapshots(entry, [&](ZoneSnapshot& one) {
      if (one.archive == 0) one.state = why;
      return !one.held();
    });
    return lost ? drop_history(entry) : lost;
  }
  const std::uint64_t before = entry.history_bytes;
  if (auto done = history.append(applied.effective, applied.from, applied.to); !done) return done;
  const std::uint64_t newest = entry.history_bytes - before;
  // When all histories together are too large, the growing zone pays, and keeps its newest
  // changeset.
  const std::uint64_t total = (*root)->history_bytes;
  const std::uint64_t excess = total > limits.history_total ? total - limits.history_total : 0;
  const std::uint64_t allowed = newest + (before > excess ? before - excess : 0);
  return trim_history(entry, std::min(limits.history, allowed), with_snapshots(limits));
}

/// Drops changesets until `allowed` bytes are left, but none that a snapshot needs. Beyond `room`
/// bytes the oldest snapshots are lost.
Status Draft::trim_history(ZoneEntry& entry, std::uint64_t allowed, std::uint64_t room) {
  auto root = writable_root();
  if (!root) return pass(root);
  HistoryEditor history(transaction_, entry, **root);
  std::vector<ZoneSnapshot> snapshots = read_snapshots(transaction_.window(), entry.snapshots);
  std::uint32_t losses = 0;
  for (auto oldest = snapshots.begin();; ++oldest, ++losses) {
    oldest = std::find_if(oldest, snapshots.end(), needs_history);
    if (oldest == snapshots.end()) break;
    if (auto done = history.trim(allowed, kDropsAtOnce, oldest->serial); !done) return done;
    if (entry.history_bytes <= room || entry.history_first != oldest->serial.value) break;
    oldest->state = State::kTooLarge;
  }
  if (std::none_of(snapshots.begin(), snapshots.end(), needs_history))
    if (auto done = history.trim(allowed, kDropsAtOnce); !done) return done;
  if (losses == 0) return {};
  (*root)->snapshot_losses += losses;
  return put_snapshots(entry, snapshots);
}

Status Draft::put_changeset(const Changeset& changeset, dns::Serial from, dns::Serial to,
                            const DataLimits& limits) {
  const ZoneEntry* old = entry_at(changeset.zone);
  if (old == nullptr) return fail(Errc::kNotFound, "{}: no such zone", to_text(changeset.zone));
  ZoneEntry entry = *old;
  if (auto done = append_history(entry, {from, to, changeset, 0, 0}, limits); !done) return done;
  return put_entry(entry, changeset.zone);
}

Status Draft::drop_history(ZoneEntry& entry) {
  if (entry.history == 0) return {};
  auto root = writable_root();
  if (!root) return pass(root);
  (*root)->history_bytes -= std::min((*root)->history_bytes, entry.history_bytes);
  const std::uint32_t dropped = std::exchange(entry.history, 0);
  entry.history_first = 0;
  entry.history_bytes = 0;
  return discard_blocks({dropped});
}

Result<bool> Draft::shorten_histories(dns::Name& cursor, std::size_t zones) {
  const bool low_space = transaction_.low_space_without_pins();
  ZoneWalk walk(view());
  if (!(cursor == dns::Name())) walk.seek_after(cursor);
  std::vector<dns::Name> chosen;
  bool at_end = false;
  for (std::size_t seen = 0; seen < zones && !at_end; ++seen) {
    const ZoneView zone = walk.next();
    at_end = !zone;
    if (at_end) break;
    cursor = dns::Name(zone.apex());
    if (zone.history_bytes() > 0 || (low_space && zone.has_snapshots())) chosen.push_back(cursor);
  }
  transaction_.use_reserve();
  for (const dns::Name& apex : chosen) {
    ZoneEntry entry = *entry_at(apex);
    // A snapshot of the present version needs no changeset yet.
    auto lost = lose_snapshots(entry, [&](ZoneSnapshot& one) {
      if (low_space && (one.archive != 0 || one.serial.value != entry.serial))
        one.state = State::kStoreFull;
      return !one.held();
    });
    if (!lost) return pass(lost);
    if (auto done = trim_history(entry, entry.history_bytes / 2, UINT64_MAX); !done)
      return pass(done);
    if (auto put = put_entry(entry, apex); !put) return pass(put);
  }
  if (at_end) cursor = dns::Name();
  return at_end;
}

}  // namespace pando::zone
