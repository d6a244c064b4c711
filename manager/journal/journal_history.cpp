#include "manager/journal/journal_history.h"

#include <algorithm>

#include "dns/folded_key.h"
#include "manager/journal/record/primary_serial.h"
#include "manager/journal/record/record_replay.h"
#include "manager/journal/segment_reader.h"

namespace pando::manager {

namespace {

/// Assumed number of lost records where no position shows it: of the journal's last file, or of a
/// snapshot. No larger step of a serial is needed for a number of updates that fits a segment.
constexpr std::uint64_t kUnknownNumber = 1 << 20;
/// Serial step for a zone that has lost all records. Earlier faults may have raised its serial many
/// times.
constexpr std::uint64_t kUnknownSerial = kUnknownNumber << 6;
/// RFC 1982: no step of a serial may be 2^31 or more.
constexpr std::uint64_t kLargestStep = (std::uint64_t{1} << 31) - 2;

/// The last position that the segment may have; UINT64_MAX: no later segment tells.
std::uint64_t end_of(const JournalFiles::Segment& segment, const JournalFiles& journal) noexcept {
  return &segment == &journal.segments.back() ? UINT64_MAX : (&segment)[1].header.first - 1;
}

void raise(std::optional<dns::Serial>& highest, dns::Serial serial) noexcept {
  if (!highest || serial.ahead_of(*highest)) highest = serial;
}

}  // namespace

void JournalHistory::add_record(const JournalRecord& record, Place place) {
  const std::string key = dns::folded_key(record.zone);
  const bool says_all = is_purge(record) || record.kind == RecordKind::kBase ||
                        record.kind == RecordKind::kDynamicChanges;
  if (says_all && (damages_ != 0 || unreadable_ != 0)) passed_[key] = {damages_, unreadable_};
  const auto removed_at = removal_time(record);
  // A zone without records leaves nothing. Records before a fault may be there, and its leaving is
  // the last that tells its serial.
  const Passed before = passed(record.zone);
  const bool may_have_more = damages_ > before.damages || unreadable_ > before.unreadable;
  if (is_purge(record)) purged_[key] = record.position;
  if (is_purge(record) || (removed_at && !zones_.contains(key) && !may_have_more)) {
    zones_.erase(key);
    return;
  }
  ZonePlaces& places = zones_[key];
  places.records.push_back(place);
  places.removed_at = removed_at;
  raise(places.highest, record.from);
  raise(places.highest, record.to);
  // A zone that was sent whole may be another one of the same serial.
  const bool is_sent = record.kind == RecordKind::kTransfer && record.from == record.to;
  if (says_all || is_sent) places.whole_from = record.position;
  if (!says_all) return;
  places.may_lack = false;
  places.is_lost = false;
  places.unreadable.clear();
}

void JournalHistory::damage(const NoteSink& note, const std::string& text, std::uint64_t positions,
                            std::uint64_t up_to) {
  ++damages_;
  lost_up_to_ = std::max(lost_up_to_, up_to);
  missing_ += std::min(positions, kUnknownNumber);
  note({true, text});
}

/// A damaged file counts as damage; a file that cannot be read for now is a problem.
void JournalHistory::take_error(const std::string& path, const Error& error, std::uint64_t up_to,
                                const NoteSink& note) {
  const std::string text = fmt::format("journal file {}: {}", path, error.text);
  if (error.code == Errc::kCorrupt || unread_is_ == Unreadable::kDamage)
    return damage(note, text, kUnknownNumber, up_to);
  ++unreadable_;
  problem_ = text;
}

/// The position counts even if the snapshot is damaged: segments that it replaced are left from a
/// crash at most.
void JournalHistory::read_snapshot(Files& files, const JournalFiles& journal,
                                   const NoteSink& note) {
  last_ = journal.snapshot_position;
  if (journal.snapshot.empty()) return;
  auto opened = SnapshotFile::open(files, journal.snapshot);
  knows_all_zones_ = opened.has_value();
  if (!opened) return take_error(journal.snapshot, opened.error(), last_, note);
  snapshot_ = std::move(*opened);
  folded_ = journal.snapshot_position;
  SnapshotFile::Zones zones = snapshot_->zones();
  knows_all_zones_ = zones.others.has_value();
  if (!zones.others) take_error(journal.snapshot, zones.others.error(), last_, note);
  for (SnapshotFile::Place& place : zones.places) read_snapshot_zone(std::move(place), note);
}

void JournalHistory::read_snapshot_zone(SnapshotFile::Place&& place, const NoteSink& note) {
  ZonePlaces& places = zones_[dns::folded_key(place.name)];
  places.highest = place.serial;
  std::optional<dns::Serial> whole;
  std::optional<dns::Serial> reached;
  bool may_lack = false;
  const auto sound = snapshot_->for_each_item(place, [&](zone::DumpItem&& item) -> Status {
    if (const auto* zone = std::get_if<zone::DumpZone>(&item); zone != nullptr && zone->loaded) {
      reached = whole = zone->serial;
      places.whole_at_primary = zone->primary_serial;
    }
    auto* said = std::get_if<zone::DumpNote>(&item);
    if (said == nullptr) return {};
    const JournalRecord record = record_of(dns::Name(place.name), std::move(*said));
    places.removed_at = removal_time(record);
    // The index may be damaged, and a zone without data has its serial here alone then.
    raise(places.highest, record.to);
    if (changes_zone(record)) raise(reached, record.to);
    if (record.kind != RecordKind::kDynamicChanges) return {};
    MergeBase state;
    if (auto taken = state.take(record); !taken) return taken;
    // Nothing leads to this serial: put_old_zone() in journal_snapshot.cpp.
    may_lack = !state.dynamic_changes.known() && (!reached || record.to.ahead_of(*reached));
    return {};
  });
  if (sound) {
    places.whole = whole;
    places.may_lack = may_lack;
    places.whole_from = may_lack ? 0 : folded_;
    places.snapshot = std::move(place);
    return;
  }
  const std::string text = fmt::format("journal snapshot: {}", sound.error().text);
  places.is_lost = sound.error().code == Errc::kCorrupt || unread_is_ == Unreadable::kDamage;
  has_lost_zones_ = has_lost_zones_ || places.is_lost;
  if (places.is_lost) lost_up_to_ = std::max(lost_up_to_, folded_);
  if (places.is_lost) return note({true, text});
  places.unreadable = problem_ = text;
}

void JournalHistory::read_segments(Files& files, const JournalFiles& journal,
                                   const NoteSink& note) {
  const LostRange lost = journal.health.lost();
  bool left_out = lost.from > journal.snapshot_position;
  const auto take_place_of_damaged = [&](std::uint64_t positions) {
    if (std::exchange(left_out, false))
      damage(
          note,
          fmt::format("a damaged journal file, from position {} on, was left out", lost.from),
          positions, positions == 0 ? 0 : UINT64_MAX);
  };
  for (const JournalFiles::Segment& segment : journal.segments) {
    // Positions between two segments are void, or a file is missing.
    const std::uint64_t next = std::min(segment.header.first, segment.header.void_from);
    if (next > last_ + 1)
      damage(note, fmt::format("journal records {} to {} are missing", last_ + 1, next - 1),
             next - last_ - 1, next - 1);
    last_ = std::max(last_, segment.header.first - 1);
    // A segment that begins at that very position may be damaged from its first record to its end.
    if (segment.header.first > lost.from) take_place_of_damaged(0);
    if (auto done = read_segment(files, segment, journal, note); !done) {
      take_error(segment.path, done.error(), end_of(segment, journal), note);
      if (&segment != &journal.segments.back())  // what follows there is no gap
        last_ = std::max(last_, end_of(segment, journal));
    }
  }
  take_place_of_damaged(kUnknownNumber);
  if (lost.to > last_) {
    is_end_missing_ = true;
    damage(note, fmt::format("journal records {} to {} are missing", last_ + 1, lost.to),
           lost.to - last_, lost.to);
    last_ = lost.to;
  }
  if (!journal.health.is_unreadable()) return;
  if (unread_is_ == Unreadable::kDamage)
    return damage(note, journal.health.reason(), kUnknownNumber, UINT64_MAX);
  ++unreadable_;
  if (problem_.empty()) problem_ = journal.health.reason();
}

Status JournalHistory::read_segment(Files& files, const JournalFiles::Segment& segment,
                                    const JournalFiles& journal, const NoteSink& note) {
  const auto place = static_cast<std::size_t>(&segment - journal.segments.data());
  auto reader = SegmentReader::open(files, segment.path, segment.bytes, synced_end(journal, place));
  if (!reader) return pass(reader);
  auto file = files.open(segment.path, OpenMode::kRead);
  if (!file) return pass(file);
  const auto index = static_cast<std::uint32_t>(files_.size());
  const std::uint32_t before = damages_;
  files_.push_back({std::move(*file), reader->header().nonce});
  for (;;) {
    auto record = reader->next();
    if (!record) return pass(record);
    const bool follows_damage = damages_ != before + reader->damaged_places();
    damages_ = before + reader->damaged_places();
    if (follows_damage)
      lost_up_to_ =
          std::max(lost_up_to_, *record ? (*record)->position - 1 : end_of(segment, journal));
    if (!*record) {
      // A start would have found it: these bytes have changed since.
      if (reader->ends_damaged() && !ends_in_damage(journal)) missing_ += kUnknownNumber;
      break;
    }
    const std::uint64_t position = (*record)->position;
    if (follows_damage)
      missing_ += std::min(position - std::min(position, last_ + 1), kUnknownNumber);
    last_ = std::max(last_, position);
    if (position > folded_ && !is_void(journal, position))
      add_record(**record, {index, damages_, reader->last_offset()});
  }
  if (reader->damaged_places() != 0)
    note({true, fmt::format("journal file {}: {} damaged places, records lost", segment.path,
                            reader->damaged_places())});
  return {};
}

std::shared_ptr<const JournalHistory> JournalHistory::read(Files& files,
                                                           const JournalFiles& journal,
                                                           const NoteSink& note,
                                                           Unreadable unreadable) {
  auto history = std::make_shared<JournalHistory>();
  history->unread_is_ = unreadable;
  history->unread_files_ = journal.health.replaced().files;
  history->read_snapshot(files, journal, note);
  history->read_segments(files, journal, note);
  return history;
}

const JournalHistory::ZonePlaces* JournalHistory::find(dns::NameView zone) const {
  const auto found = zones_.find(dns::folded_key(zone));
  return found == zones_.end() ? nullptr : &found->second;
}

JournalHistory::Passed JournalHistory::passed(dns::NameView zone) const {
  const auto found = passed_.find(dns::folded_key(zone));
  return found == passed_.end() ? Passed{} : found->second;
}

std::string JournalHistory::unreadable(dns::NameView zone, bool may_have_updates) const {
  if (problem_.empty()) return {};
  const ZonePlaces* places = find(zone);
  if (places != nullptr && !places->unreadable.empty()) return places->unreadable;
  const bool may = unreadable_ > passed(zone).unreadable && (places != nullptr || may_have_updates);
  return may ? problem_ : std::string();
}

bool JournalHistory::may_have_lost(dns::NameView zone) const {
  const ZonePlaces* places = find(zone);
  if (snapshot_may_lack(places)) return true;
  return damages_ > passed(zone).damages || (places != nullptr && places->is_lost);
}

/// A snapshot may have taken the place of damaged files, and no position tells what it lacks.
bool JournalHistory::may_have_lost_behind(dns::NameView zone, std::uint64_t position) const {
  return lost_up_to_ > position || snapshot_may_lack(find(zone));
}

/// All faults add up. An earlier start may have raised the serial because of some of them, and the
/// record of that may be among the lost ones.
dns::Serial JournalHistory::unused_serial(dns::NameView zone, dns::Serial present) const {
  std::optional<dns::Serial> highest = present;
  const ZonePlaces* places = find(zone);
  if (places != nullptr && places->highest) raise(highest, *places->highest);
  std::uint64_t lost = missing_;
  // Each unread file may tell of such a step, and so may a snapshot that is damaged.
  const std::uint64_t files = unread_files_ + (knows_all_zones_ ? 0 : 1);
  if (places == nullptr)
    lost += kUnknownSerial * files;
  else if (places->may_lack)
    lost += kUnknownNumber * std::max<std::uint64_t>(files, 1);
  const auto step = static_cast<std::uint32_t>(std::min(lost, kLargestStep));
  return dns::Serial{highest->value + step}.next();
}

std::optional<dns::Serial> JournalHistory::highest_serial(dns::NameView zone) const {
  const ZonePlaces* places = find(zone);
  return places == nullptr ? std::nullopt : places->highest;
}

std::vector<dns::Name> JournalHistory::zone_names() const {
  std::vector<dns::Name> names;
  names.reserve(zones_.size());
  for (const auto& [key, places] : zones_) names.emplace_back(dns::name_of_key(key));
  return names;
}

bool JournalHistory::has_whole(dns::NameView zone) const {
  const ZonePlaces* places = find(zone);
  return places != nullptr && places->whole.has_value();
}

std::optional<std::uint64_t> JournalHistory::removed_at(dns::NameView zone) const {
  const ZonePlaces* places = find(zone);
  return places == nullptr ? std::nullopt : places->removed_at;
}

/// A snapshot of the journal has no zone without records, and none that was purged.
bool JournalHistory::has_all_since(dns::NameView zone, std::uint64_t position) const {
  const auto purged = purged_.find(dns::folded_key(zone));
  if (purged != purged_.end() && purged->second > position) return true;
  const ZonePlaces* places = find(zone);
  if (places != nullptr) return places->whole_from > position;
  return folded_ > position && knows_all_zones_ && unread_files_ == 0;
}

bool JournalHistory::knows(dns::NameView zone) const { return find(zone) != nullptr; }

/// Visits the zone's records up to position `up_to`. Those in the journal snapshot have no
/// position, and are older than any that is asked for.
Status JournalHistory::for_each_zone_record(const ZonePlaces& places, dns::NameView zone,
                                            std::uint64_t up_to,
                                            const ZoneRecordVisit& visit) const {
  if (places.snapshot) {
    const dns::Name name(zone);
    const auto take = [&](zone::DumpItem&& item) -> Status {
      auto* note = std::get_if<zone::DumpNote>(&item);
      return note == nullptr ? Status() : visit(record_of(name, std::move(*note)), 0);
    };
    if (auto done = snapshot_->for_each_note(*places.snapshot, take); !done) return done;
  }
  for (const Place place : places.records) {
    const OpenFile& file = files_[place.file];
    auto record = read_record(*file.file, file.nonce, place.offset);
    if (!record) return pass(record);
    if (record->position > up_to) return {};
    if (auto visited = visit(std::move(*record), place.damages); !visited) return visited;
  }
  return {};
}

Result<MergeBase> JournalHistory::merge_base(dns::NameView zone, std::uint64_t up_to,
                                             Gaps gaps) const {
  MergeBase state;
  std::uint32_t damages = 0;
  const auto lose_after = [&](std::uint32_t now) {
    if (std::exchange(damages, now) != now && gaps == Gaps::kUnknown) state.lose();
  };
  state.passes_gaps = gaps == Gaps::kPassed;
  if (const ZonePlaces* places = find(zone)) {
    if (places->whole) state.take_whole(*places->whole);
    if (places->is_lost && gaps == Gaps::kUnknown) state.lose();
    const auto take = [&](JournalRecord&& record, std::uint32_t before) {
      lose_after(before);
      return state.take(record);
    };
    if (auto taken = for_each_zone_record(*places, zone, up_to, take); !taken) return pass(taken);
  }
  // Whether records are missing after the last one, the serial of a served zone tells the caller.
  lose_after(damages_ - (is_end_missing_ ? 1 : 0));
  return state;
}

Result<JournalHistory::Replay> JournalHistory::replay(dns::NameView zone,
                                                      std::optional<dns::Serial> file_serial,
                                                      std::uint64_t up_to, Gaps gaps) const {
  Replay replay;
  replay.serial = file_serial;
  const ZonePlaces* places = find(zone);
  if (places == nullptr) return replay;
  if (places->whole && (!file_serial || places->whole->ahead_of(*file_serial))) {
    replay.from_snapshot = true;
    replay.serial = places->whole;
  }
  PrimarySerial primary;
  if (places->whole) primary.begin(*places->whole, places->whole_at_primary);
  const RecordReplay rules(RecordReplay::Data::kFile);
  const auto take = [&](JournalRecord&& record, std::uint32_t) -> Status {
    primary.take(record);
    const ReplayStep step = rules.step(record, {replay.serial, gaps == Gaps::kPassed});
    if (step == ReplayStep::kSkip) ++replay.skipped;
    if (step != ReplayStep::kApply && step != ReplayStep::kApplyBehindGap) return {};
    const auto changes = source_changes(record);
    if (!changes) return pass(changes);
    replay.net.updated(*changes);
    replay.serial = record.to;
    ++replay.applied;
    return {};
  };
  if (auto added = for_each_zone_record(*places, zone, up_to, take); !added) return pass(added);
  if (replay.serial) replay.primary_serial = primary.at(*replay.serial);
  return replay;
}

Status JournalHistory::for_each_base_record(
    dns::NameView zone, const std::function<Status(const zone::Record&)>& visit) const {
  const ZonePlaces* places = find(zone);
  if (places == nullptr || !places->snapshot) return {};
  return snapshot_->for_each_item(*places->snapshot, [&](zone::DumpItem&& item) -> Status {
    const auto* part = std::get_if<zone::DumpPart>(&item);
    if (part == nullptr) return {};
    for (const zone::Record& record : part->records.added)
      if (auto visited = visit(record); !visited) return visited;
    return {};
  });
}

Status JournalHistory::for_each_item(dns::NameView zone,
                                     const SnapshotFile::ItemVisit& visit) const {
  const dns::Name name(zone);
  const ZonePlaces* places = find(zone);
  const bool has_snapshot = places != nullptr && places->snapshot;
  const auto without_end = [&](zone::DumpItem&& item) {
    return std::holds_alternative<zone::DumpZoneEnd>(item) ? Status() : visit(std::move(item));
  };
  zone::DumpZone without_data;
  without_data.name = name;
  Status done = has_snapshot ? snapshot_->for_each_item(*places->snapshot, without_end)
                             : visit(std::move(without_data));
  if (!done || places == nullptr) return done;
  ZonePlaces in_segments;
  in_segments.records = places->records;
  return for_each_zone_record(
      in_segments, zone, UINT64_MAX,
      [&](JournalRecord&& record, std::uint32_t) { return visit(note_of(std::move(record))); });
}

/// Compaction may replace files during the read; then the new files are read.
void HistorySource::read(std::uint64_t position) {
  constexpr int kTries = 3;
  std::vector<JournalNote> notes;
  for (int tries = 0; tries < kTries; ++tries) {
    notes.clear();
    history_ = JournalHistory::read(files_, journal_.files(),
                                    [&](const JournalNote& note) { notes.push_back(note); });
    if (history_->problem().empty()) break;
  }
  position_ = position;
  for (const JournalNote& note : notes) note_(note);
  if (!history_->problem().empty()) note_({true, history_->problem()});
}

std::shared_ptr<const JournalHistory> HistorySource::get(std::uint64_t position) {
  const std::lock_guard lock(mutex_);
  if (!history_ || position_ < position) read(position);
  return history_;
}

std::shared_ptr<const JournalHistory> HistorySource::any(std::uint64_t position) {
  const std::lock_guard lock(mutex_);
  if (!history_) read(position);
  return history_;
}

}  // namespace pando::manager
