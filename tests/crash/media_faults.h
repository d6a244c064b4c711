#pragma once

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "manager/journal/segment_reader.h"
#include "manager/journal/snapshot_file.h"
#include "tests/unit/manager/io/fake_disk.h"
#include "tests/unit/shm/support.h"
#include "zone/dump/dump_index.h"

namespace pando::manager::testing {

/// Faults of the media below journal and image: sectors and files that cannot be read, a few times
/// or for good, and bytes that have changed. Knows which copy of a journal record is intact.
class MediaFaults {
 public:
  /// Number of times that something happened, over all states of a run.
  using Counts = std::map<std::string, std::uint64_t>;

  MediaFaults(FakeDisk& disk, std::mt19937_64& random, Counts& counts, std::string image)
      : disk_(disk), random_(random), counts_(counts), image_(std::move(image)) {
    disk_.unreadable = [this](const std::string& path, std::uint64_t from, std::uint64_t to) {
      return std::any_of(bad_.begin(), bad_.end(),
                         [&](Bad& bad) { return bad.fails(path, from, to); });
    };
    disk_.fail = [this](FakeDisk::Call call, const std::string& path) -> Status {
      if (call != FakeDisk::Call::kOpen) return {};
      for (Bad& bad : bad_)
        if (bad.is_file && bad.fails(path, 0, UINT64_MAX))
          return ::pando::fail(Errc::kIo, "unreadable");
      return {};
    };
  }

  /// Notes the records of journal and snapshot, which are intact; then adds so many faults.
  void strike(std::uint64_t faults) {
    note_copies();
    is_changed_ = false;
    for (; faults > 0; --faults) add();
    bool is_followed = false;  // by a segment whose header is sound
    for (auto segment = segments_.rbegin(); segment != segments_.rend(); ++segment) {
      judge(*segment, is_followed, segment == segments_.rbegin());
      is_followed = is_followed || !segment->is_header_hit;
    }
    counts_["states with " + kind()] += 1;
  }
  /// All can be read again; changed bytes stay.
  void make_readable() { bad_.clear(); }
  /// A new journal snapshot up to `position` has taken the place of all files.
  void replaced(std::uint64_t position) {
    snapshot_position_ = position;
    hit_zones_.clear();
  }
  /// Nothing of the journal is damaged any more.
  void healed() {
    destroyed_.clear();
    hit_zones_.clear();
    no_serials_.clear();
    torn_end_.clear();
    is_image_struck_ = false;
    told_.clear();
  }
  void image_is_sound() { is_image_hit_ = false; }

  /// Whether the journal has the zone's record at this position, in the snapshot or in a segment.
  [[nodiscard]] bool journal_has(const std::string& zone, std::uint64_t position) const {
    if (position <= snapshot_position_) return !hit_zones_.contains(zone);
    return !destroyed_.contains(position);
  }
  /// The snapshot is newer than `position`, and the zone is intact there.
  [[nodiscard]] bool snapshot_has(const std::string& zone, std::uint64_t position) const {
    return position < snapshot_position_ && !hit_zones_.contains(zone);
  }
  /// Bytes of the image changed, now or earlier.
  [[nodiscard]] bool is_image_hit() const { return is_image_hit_; }
  /// The image has a fault of any kind since healed().
  [[nodiscard]] bool is_image_struck() const { return is_image_struck_ || is_image_hit_; }
  /// The zone has a record behind `position` in a damaged last group that looks like one that was
  /// never synced: nothing sound is behind it, and a piece of it is zeros.
  [[nodiscard]] bool is_in_torn_end(const std::string& zone, std::uint64_t position) const {
    const auto found = torn_end_.find(zone);
    return found != torn_end_.end() && found->second > position;
  }
  /// Each place that had the zone's serial is damaged.
  [[nodiscard]] bool is_serial_lost(const std::string& zone) const {
    return no_serials_.contains(zone);
  }
  [[nodiscard]] bool is_unreadable() const { return !bad_.empty(); }
  /// Nothing has a fault but space of the last segment that lies far behind its last record.
  [[nodiscard]] bool is_reserve_alone() const {
    return !bad_.empty() && !is_changed_ &&
           std::all_of(bad_.begin(), bad_.end(), [](const Bad& bad) { return bad.is_reserve; });
  }
  [[nodiscard]] std::string said() const {
    std::string text = fmt::format("snapshot at {}", snapshot_position_);
    for (const std::string& zone : hit_zones_) text += fmt::format(", {} damaged there", zone);
    text += "; destroyed";
    for (const std::uint64_t position : destroyed_) text += fmt::format(" {}", position);
    return text + told_;
  }

 private:
  static constexpr std::uint64_t kSector = 512;
  static constexpr std::uint64_t kDoubt = 3 * 4096;  // bytes behind the last record
  static constexpr std::uint64_t kBeginning = 100;  // bytes of a zone's first record, about
  /// A place that cannot be read.
  struct Bad {
    std::string path;
    bool is_file = false;
    std::uint64_t from = 0;
    std::uint64_t to = UINT64_MAX;
    std::uint64_t times = UINT64_MAX;
    bool is_reserve = false;

    bool fails(const std::string& file, std::uint64_t begin, std::uint64_t end) {
      if (times == 0 || path != file || begin >= to || end <= from) return false;
      if (times != UINT64_MAX) --times;
      return true;
    }
  };
  struct Record {
    std::uint64_t position = 0;
    std::uint64_t group = 0;  // its first position
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::string zone;
    bool is_hit = false;
  };
  struct Segment {
    std::string path;
    std::vector<Record> records;
    bool is_header_hit = false;
    bool is_torn = false;
  };
  struct Part {  // of the snapshot; without a name: what does not belong to a zone
    std::string zone;
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    bool is_hit = false;
    bool is_beginning_hit = false;  // which has name and serial
  };

  void note_copies() {
    segments_.clear();
    parts_.clear();
    snapshot_.clear();
    snapshot_position_ = 0;
    for (const std::string& path : disk_.paths()) {
      if (path.ends_with(".snapshot")) note_snapshot(path);
      if (path.ends_with(".journal")) note_segment(path);
    }
  }

  void note_segment(const std::string& path) {
    Segment& segment = segments_.emplace_back(Segment{path, {}});
    auto reader = shm::test::must(SegmentReader::open(disk_, path));
    while (auto next = shm::test::must(reader.next()))
      segment.records.push_back(
          {next->position, next->group_first, reader.last_offset(),
           reader.last_offset() + kRecordHeaderBytes + next->zone.size() + 8 + next->payload.size(),
           to_text(next->zone)});
    segment.is_torn = reader.torn();
  }

  void note_snapshot(const std::string& path) {
    snapshot_ = path;
    const auto file = shm::test::must(SnapshotFile::open(disk_, path));
    snapshot_position_ = file.header().position;
    const Bytes& bytes = disk_.contents(path);
    const auto index = shm::test::must(zone::decode_dump_trailer(
        ByteView(bytes).last(zone::kDumpTrailerBytes), file.header().nonce));
    parts_.push_back({"", 0, zone::kDumpHeaderBytes});
    auto places = file.zones().places;
    std::sort(places.begin(), places.end(),
              [](const auto& a, const auto& b) { return a.offset < b.offset; });
    for (const SnapshotFile::Place& place : places) {
      parts_.back().end = std::max(parts_.back().end, place.offset);
      parts_.push_back({to_text(dns::Name(place.name)), place.offset, place.offset});
    }
    parts_.back().end = index.offset;
    parts_.push_back({"", index.offset, bytes.size()});
  }

  void add() {
    const std::vector<std::string> paths = disk_.paths();
    if (paths.empty()) return;
    if (add_to_reserve()) return;
    const std::string path = paths[random_() % paths.size()];
    const std::uint64_t bytes = disk_.contents(path).size();
    if (bytes == 0) return;
    const std::uint64_t at = place_in(path, bytes);
    const std::uint64_t sector = at / kSector * kSector;
    const std::uint64_t few = random_() % 3 + 1;
    is_image_struck_ = is_image_struck_ || path.starts_with(image_);
    if (path.ends_with("/identity") && random_() % 3 == 0) return empty(path);
    switch (random_() % 9) {
      case 0:
        return be_bad({path, false, sector, sector + kSector, few}, "sector unreadable at first");
      case 1:
        return be_bad({path, false, sector, sector + kSector}, "sector unreadable for good");
      case 2:
        return be_bad({path, true, 0, UINT64_MAX, few}, "file unreadable at first");
      case 3:
        return be_bad({path, true}, "file unreadable for good");
      case 4:
        tell("sector of other bytes", path, at);
        return change(path, sector, sector + kSector, [this](std::uint8_t byte) {
          return static_cast<std::uint8_t>(byte ^ (1 + random_() % 255));
        });
      case 5:
        tell("sector of zeros", path, at);
        return change(path, sector, sector + kSector, [](std::uint8_t) { return std::uint8_t{0}; });
      case 6:
        tell("piece of zeros", path, at);
        return change(path, at / kWrittenPiece * kWrittenPiece,
                      at / kWrittenPiece * kWrittenPiece + kWrittenPiece,
                      [](std::uint8_t) { return std::uint8_t{0}; });
      default:
        tell("flipped bit", path, at);
        return change(path, at, at + 1, [this](std::uint8_t byte) {
          return static_cast<std::uint8_t>(byte ^ (1U << random_() % 8));
        });
    }
  }

  /// Chosen often enough, where the last segment has a reserve of some size.
  bool add_to_reserve() {
    if (segments_.empty() || segments_.back().records.empty()) return false;
    const Segment& last = segments_.back();
    const std::uint64_t begin = last.records.back().end + kDoubt;
    const std::uint64_t end = disk_.contents(last.path).size();
    if (begin + kSector >= end || random_() % 3 != 0) return false;
    const std::uint64_t at = (begin + random_() % (end - begin)) / kSector * kSector;
    be_bad({last.path, false, at, at + kSector}, "sector unreadable for good");
    return true;
  }

  /// Most of a segment may be its empty end.
  std::uint64_t place_in(const std::string& path, std::uint64_t bytes) {
    for (const Segment& segment : segments_)
      if (segment.path == path && !segment.records.empty() && random_() % 8 != 0)
        bytes = std::min(bytes, segment.records.back().end + 64);
    return random_() % bytes;
  }

  void empty(const std::string& path) {
    tell("emptied file", path, 0);
    is_changed_ = true;
    auto file = disk_.open(path, OpenMode::kWrite);
    if (!file) return;  // which cannot be read
    shm::test::must((*file)->truncate(0));
    shm::test::must((*file)->sync());
  }
  void be_bad(Bad&& bad, const std::string& what) {
    const Segment* const last = segments_.empty() ? nullptr : &segments_.back();
    bad.is_reserve = last != nullptr && last->path == bad.path && !last->is_torn && !bad.is_file &&
                     !last->records.empty() && bad.from >= last->records.back().end + kDoubt;
    tell(bad.is_reserve ? what + ", in the reserve" : what, bad.path, bad.from);
    bad_.push_back(std::move(bad));
  }

  template <class Change>
  void change(const std::string& path, std::uint64_t from, std::uint64_t to, const Change& other) {
    const Bytes before = disk_.contents(path);
    to = std::min<std::uint64_t>(to, before.size());
    for (std::uint64_t at = from; at < to; ++at) {
      const std::uint8_t byte = other(before[at]);
      if (byte == before[at]) continue;
      is_changed_ = true;
      disk_.damage(path, at, byte);
      hit(path, at);
    }
  }

  void hit(const std::string& path, std::uint64_t at) {
    is_image_hit_ = is_image_hit_ || path.starts_with(image_);
    for (Segment& segment : segments_) {
      if (segment.path != path) continue;
      segment.is_header_hit = segment.is_header_hit || at < kSegmentHeaderBytes;
      for (Record& record : segment.records)
        record.is_hit = record.is_hit || (record.begin <= at && at < record.end);
    }
    if (path != snapshot_) return;
    for (Part& part : parts_) {
      if (part.begin > at || at >= part.end) continue;
      part.is_hit = true;
      part.is_beginning_hit = part.is_beginning_hit || at < part.begin + kBeginning;
      if (!part.zone.empty()) hit_zones_.insert(part.zone);
    }
    if (!parts_.back().is_hit) return;
    // The index has the serials of all zones, and so has each zone's beginning.
    for (const Part& part : parts_)
      if (part.is_beginning_hit) no_serials_.insert(part.zone);
    if (!parts_.front().is_hit) return;
    // The header stands at both ends. Without either, nothing in between can be proven.
    for (const Part& part : parts_) {
      hit_zones_.insert(part.zone);
      no_serials_.insert(part.zone);
    }
  }

  [[nodiscard]] bool has_piece_of_zeros(const Segment& segment, std::uint64_t group) const {
    const Bytes& bytes = disk_.contents(segment.path);
    for (const Record& record : segment.records) {
      if (record.group != group) continue;
      std::map<std::uint64_t, bool> is_written;  // by piece
      for (std::uint64_t at = record.begin; at < record.end; ++at)
        is_written[at / kWrittenPiece] |= bytes[at] != 0;
      if (std::any_of(is_written.begin(), is_written.end(),
                      [](const auto& piece) { return !piece.second; }))
        return true;
    }
    return false;
  }

  /// A damaged group counts as synced only if something behind it is sound (a record of a later
  /// group, or the next segment), or if all of it has been written.
  void judge(const Segment& segment, bool is_followed, bool is_last) {
    bool is_torn_before = false;  // so is all that is behind
    for (const Record& record : segment.records) {
      const bool is_proven =
          is_followed || std::any_of(segment.records.begin(), segment.records.end(),
                                  [&](const Record& later) {
                                    return later.group > record.group && !later.is_hit;
                                  });
      const bool is_group_hit = std::any_of(
          segment.records.begin(), segment.records.end(),
          [&](const Record& other) { return other.group == record.group && other.is_hit; });
      const bool ends_torn = is_group_hit && !is_proven && !segment.is_header_hit &&
                             has_piece_of_zeros(segment, record.group);
      is_torn_before = is_torn_before || (ends_torn && is_last);
      if (is_torn_before) torn_end_[record.zone] = record.position;
      if (segment.is_header_hit || record.is_hit || ends_torn) destroyed_.insert(record.position);
    }
  }

  void tell(const std::string& what, const std::string& path, std::uint64_t at) {
    const bool is_segment = path.ends_with(".journal");
    const std::string where = path.starts_with(image_)      ? "the image"
                              : path == snapshot_           ? "the journal's snapshot"
                              : path.ends_with("/identity") ? "the identity"
                              : is_segment                  ? "a segment"
                                                            : "another file";
    counts_[fmt::format("faults: {} in {}", what, where)] += 1;
    told_ += fmt::format("; {} in {} at {}", what, path, at);
  }

  [[nodiscard]] std::string kind() const {
    if (!destroyed_.empty() || !hit_zones_.empty())
      return bad_.empty() ? "destroyed records" : "destroyed records and unreadable places";
    if (!bad_.empty()) return "unreadable places";
    return told_.empty() ? "no fault" : "changed bytes that destroy no record";
  }

  FakeDisk& disk_;
  std::mt19937_64& random_;
  Counts& counts_;
  std::string image_;
  std::vector<Bad> bad_;
  std::vector<Segment> segments_;
  std::vector<Part> parts_;  // of the snapshot, in order
  std::string snapshot_;
  std::uint64_t snapshot_position_ = 0;
  std::set<std::uint64_t> destroyed_;  // positions
  std::set<std::string> hit_zones_;    // in the snapshot
  std::set<std::string> no_serials_;   // zones of which no serial is left there
  bool is_changed_ = false;  // bytes, with the last strike
  bool is_image_hit_ = false;
  bool is_image_struck_ = false;
  std::map<std::string, std::uint64_t> torn_end_;  // zones of the torn last groups; last position
  std::string told_;
};

}  // namespace pando::manager::testing
