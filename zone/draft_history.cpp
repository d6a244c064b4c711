#include "zone/built.h"
#include "zone/draft.h"
#include "zone/history.h"
#include "zone/layout.h"

// What a draft does with the zones' change histories.

namespace pando::zone {

namespace {

/// Bounds what one step may cost: each drop takes a few microseconds.
constexpr std::size_t kDropsAtOnce = 1024;
/// Half of what the pieces of a difference can be numbered for.
constexpr std::uint64_t kLargestDifference = std::uint64_t{kHistoryPieceOctets} << 15;

}  // namespace

/// Appends what was done to the zone, or ends its history where that cannot be.
Status Draft::note_history(ZoneEntry& entry, const Applied& applied, const DataLimits& limits) {
  auto root = writable_root();
  if (!root) return pass(root);
  HistoryEditor history(transaction_, entry, **root);
  const bool fits =
      applied.to.ahead_of(applied.from) && !transaction_.is_tight() &&
      HistoryEditor::octets_of(applied.effective) < std::min(limits.history, kLargestDifference) &&
      !history.has(applied.from);
  if (!fits) return drop_history(entry);
  const std::uint64_t before = entry.history_octets;
  if (auto done = history.append(applied.effective, applied.from, applied.to); !done) return done;
  const std::uint64_t newest = entry.history_octets - before;
  // When all together are too large the zone that grows pays, and keeps its newest difference.
  const std::uint64_t total = (*root)->history_octets;
  const std::uint64_t excess = total > limits.history_total ? total - limits.history_total : 0;
  const std::uint64_t allowed = newest + (before > excess ? before - excess : 0);
  return history.trim(std::min(limits.history, allowed), kDropsAtOnce);
}

Status Draft::put_difference(const Changes& difference, dns::Serial from, dns::Serial to,
                             const DataLimits& limits) {
  const ZoneEntry* old = entry_at(difference.zone);
  if (old == nullptr) return fail(Errc::kNotFound, "{}: no such zone", to_text(difference.zone));
  ZoneEntry entry = *old;
  if (auto noted = note_history(entry, {from, to, difference, 0, 0}, limits); !noted) return noted;
  return put_entry(entry, difference.zone);
}

Status Draft::drop_history(ZoneEntry& entry) {
  if (entry.history == 0) return {};
  auto root = writable_root();
  if (!root) return pass(root);
  (*root)->history_octets -= std::min((*root)->history_octets, entry.history_octets);
  const std::uint32_t dropped = std::exchange(entry.history, 0);
  entry.history_first = 0;
  entry.history_octets = 0;
  return retire_blocks({dropped});
}

Result<bool> Draft::shorten_histories(dns::Name& cursor, std::size_t zones) {
  ZoneWalk walk(snapshot());
  if (!(cursor == dns::Name())) walk.seek_after(cursor);
  std::vector<dns::Name> chosen;
  bool at_end = false;
  for (std::size_t seen = 0; seen < zones && !at_end; ++seen) {
    const ZoneView zone = walk.next();
    at_end = !zone;
    if (at_end) break;
    cursor = dns::Name(zone.apex());
    if (zone.history_octets() > 0) chosen.push_back(cursor);
  }
  transaction_.use_reserve();
  for (const dns::Name& apex : chosen) {
    ZoneEntry entry = *entry_at(apex);
    auto root = writable_root();
    if (!root) return pass(root);
    HistoryEditor history(transaction_, entry, **root);
    if (auto done = history.trim(entry.history_octets / 2, kDropsAtOnce); !done) return pass(done);
    if (auto put = put_entry(entry, apex); !put) return pass(put);
  }
  if (at_end) cursor = dns::Name();
  return at_end;
}

}  // namespace pando::zone
