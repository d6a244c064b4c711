#include "http/observe/zone_past.h"

#include <algorithm>
#include <deque>

#include "http/observe/consistent.h"
#include "zone/history/history.h"
#include "zone/history/zone_snapshot.h"
#include "zone/read/store_view.h"

namespace pando::http {

namespace {

/// Changesets found between two checks of the version: one descent each, some 50 µs together.
constexpr std::size_t kChangesetsPerLook = 128;
/// Default limits.history has 100,000 changesets of one record. The walk takes some 100 ms then.
constexpr std::uint64_t kMaxChangesets = 200'000;
/// Records of a changeset above which it is not read: the reading must fit between two versions.
constexpr std::uint64_t kMaxRecordsRead = 1'000;
constexpr std::uint64_t kSoaRecords = 2;
/// Attempts at a history that changes meanwhile.
constexpr int kHistoryAttempts = 5;

/// A stretch of the history, as it was copied from a version that may be over.
struct Stretch {
  std::vector<ChangesetFacts> changesets{};
  std::uint32_t next = 0;  ///< serial from which the next stretch starts
  bool ended = false;
  bool broken = false;  ///< the history does not have the serial any more
};

/// `from` = none: where the history begins. The counts of one stretch are of one version, since the
/// numbers of records left grow with each new changeset.
Stretch read_stretch(const zone::ZoneView& zone, std::optional<std::uint32_t> from) {
  Stretch stretch;
  auto reader = from ? zone::HistoryReader::from(zone, {*from})
                     : zone::HistoryReader::from_oldest(zone);
  const dns::Serial present = zone && zone.loaded() ? zone.serial() : dns::Serial{};
  if (!reader) {
    stretch.ended = !from || present == dns::Serial{*from};
    stretch.broken = !stretch.ended;
    return stretch;
  }
  while (stretch.changesets.size() < kChangesetsPerLook) {
    const std::uint64_t left = reader->records();
    ChangesetFacts facts{reader->from().value, reader->to().value, 0, {}};
    stretch.next = facts.to;
    stretch.ended = reader->to() == present;
    if (!stretch.ended) reader = zone::HistoryReader::from(zone, reader->to());
    stretch.broken = !reader;
    if (!reader) break;
    const std::uint64_t behind = stretch.ended ? 0 : reader->records();
    facts.records = left > behind + kSoaRecords ? left - behind - kSoaRecords : 0;
    stretch.changesets.push_back(facts);
    if (stretch.ended) break;
  }
  return stretch;
}

/// Nothing when the changeset is gone.
std::optional<std::uint64_t> count_added(const zone::ZoneView& zone, const ChangesetFacts& facts) {
  auto reader = zone::HistoryReader::from(zone, {facts.from});
  if (!reader) return std::nullopt;
  std::uint64_t added = 0;
  for (std::uint64_t i = 0; i < facts.records + kSoaRecords; ++i) {
    const zone::HistoryRecord* record = reader->next();
    if (record == nullptr) return std::nullopt;
    if (record->added && record->type != dns::RRType::kSOA) ++added;
  }
  return added;
}

/// The newest changesets, oldest first, and the number of all.
struct Newest {
  std::deque<ChangesetFacts> changesets{};
  std::uint64_t found = 0;
  bool whole = false;
};

/// One attempt.
Result<Newest> find_newest(const shm::Observer& observer, const dns::Name& apex,
                           std::size_t most) {
  Newest newest;
  std::optional<std::uint32_t> from;
  while (newest.found < kMaxChangesets) {
    auto stretch =
        read_consistently(observer, [&](const zone::StoreView& view, const shm::Window&) {
          return read_stretch(view.zone_at(apex), from);
        });
    if (!stretch) return pass(stretch);
    if (stretch->broken) break;
    newest.found += stretch->changesets.size();
    newest.changesets.insert(newest.changesets.end(), stretch->changesets.begin(),
                             stretch->changesets.end());
    while (newest.changesets.size() > most) newest.changesets.pop_front();
    newest.whole = stretch->ended;
    if (stretch->ended) break;
    from = stretch->next;
  }
  return newest;
}

Status read_history(const shm::Observer& observer, const dns::Name& apex, std::size_t most,
                    ZonePast& past) {
  past.known = false;
  for (int attempt = 0; attempt < kHistoryAttempts && !past.known; ++attempt) {
    auto newest = find_newest(observer, apex, most);
    if (!newest) return pass(newest);
    if (newest->found >= kMaxChangesets) return {};
    past.known = newest->whole;
    past.older = newest->found - newest->changesets.size();
    past.changesets.assign(newest->changesets.rbegin(), newest->changesets.rend());
  }
  if (!past.known) past.changesets.clear();
  for (ChangesetFacts& facts : past.changesets) {
    if (facts.records > kMaxRecordsRead) continue;
    auto added =
        read_consistently(observer, [&](const zone::StoreView& view, const shm::Window&) {
          return count_added(view.zone_at(apex), facts);
        });
    if (!added) return pass(added);
    facts.added = *added;
  }
  return {};
}

SnapshotFacts snapshot_facts(const zone::ZoneSnapshot& snapshot) {
  return {snapshot.label, snapshot.serial.value, snapshot.taken, snapshot.records,
          snapshot.held() ? std::string() : std::string(zone::to_text(snapshot.state))};
}

}  // namespace

Result<ZonePast> read_zone_past(const shm::Observer& observer, const dns::Name& apex,
                                std::size_t most) {
  struct Snapshots {
    bool found = false;
    std::vector<zone::ZoneSnapshot> rows{};
  };
  auto snapshots =
      read_consistently(observer, [&](const zone::StoreView& view, const shm::Window&) {
        const zone::ZoneView zone = view.zone_at(apex);
        return Snapshots{static_cast<bool>(zone), zone::snapshots_of(zone)};
      });
  if (!snapshots) return pass(snapshots);
  if (!snapshots->found) return fail(Errc::kNotFound, "no zone {}", to_text(apex));
  ZonePast past;
  for (const zone::ZoneSnapshot& snapshot : snapshots->rows)
    past.snapshots.push_back(snapshot_facts(snapshot));
  if (auto done = read_history(observer, apex, most, past); !done) return pass(done);
  return past;
}

}  // namespace pando::http
