#include "manager/journal/journal_history.h"

#include "dns/folded_key.h"

namespace pando::manager {

void JournalHistory::add_record(const JournalRecord& record, Place place) {
  ZonePlaces& places = zones_[dns::folded_key(record.zone)];
  switch (record.kind) {
    case RecordKind::kZonePart:
      places.parts.push_back(place);
      break;
    case RecordKind::kZoneEnd:
      places.whole = record.to;
      places.records.push_back(place);
      break;
    case RecordKind::kChangeset:
    case RecordKind::kFileEdit:
    case RecordKind::kBase:
    case RecordKind::kDynamicChanges:
    case RecordKind::kSource:
    case RecordKind::kTransfer:
    case RecordKind::kPrimary:
      places.records.push_back(place);
      break;
    case RecordKind::kGone:
      zones_.erase(dns::folded_key(record.zone));
      break;
    case RecordKind::kFileEnd:
      break;
  }
}

void JournalHistory::damage(const NoteSink& note, const std::string& text) {
  ++damages_;
  note({true, text});
}

/// A damaged file counts as damage; a file that cannot be read for now is a problem.
void JournalHistory::read_files(Files& files, const JournalFiles& journal, const NoteSink& note) {
  const auto take = [&](const std::string& path, std::uint64_t bytes) {
    auto done = read_file(files, path, bytes, journal, note);
    if (done) return;
    if (done.error().code == Errc::kCorrupt)
      damage(note, fmt::format("journal file {}: {}", path, done.error().text));
    else
      problem_ = fmt::format("{}: {}", path, done.error().text);
  };
  bool left_out = journal.damaged > journal.snapshot_position;
  const auto take_place_of_damaged = [&] {
    if (std::exchange(left_out, false))
      damage(note, fmt::format("a damaged journal file, from position {} on, was left out",
                               journal.damaged));
  };
  if (!journal.snapshot.empty()) take(journal.snapshot, UINT64_MAX);
  // An intact journal snapshot has the records of these positions; a segment with them is left from
  // a crash.
  if (damages_ == 0 && problem_.empty()) folded_ = last_ = journal.snapshot_position;
  for (const JournalFiles::Segment& segment : journal.segments) {
    // Positions between two segments are void, or a file is missing.
    const bool first = &segment == &journal.segments.front() && !journal.snapshot.empty();
    if (!first && segment.header.first > last_ + 1 && segment.header.void_from > last_ + 1)
      damage(note, fmt::format("journal records {} to {} are missing", last_ + 1,
                               segment.header.void_from - 1));
    last_ = std::max(last_, segment.header.first - 1);
    if (segment.header.first >= journal.damaged) take_place_of_damaged();
    take(segment.path, segment.bytes);
  }
  take_place_of_damaged();
}

Status JournalHistory::read_file(Files& files, const std::string& path, std::uint64_t bytes,
                                 const JournalFiles& journal, const NoteSink& note) {
  auto reader = SegmentReader::open(files, path, bytes);
  if (!reader) return pass(reader);
  auto file = files.open(path, OpenMode::kRead);
  if (!file) return pass(file);
  const bool snapshot = reader->header().kind == FileKind::kSnapshot;
  const auto index = static_cast<std::uint32_t>(files_.size());
  const std::uint32_t before = damages_;
  files_.push_back({std::move(*file), reader->header().nonce, snapshot});
  bool ended = !snapshot;
  for (;;) {
    auto record = reader->next();
    if (!record) return pass(record);
    damages_ = before + reader->damaged_places();
    if (!*record) break;
    ended = ended || (*record)->kind == RecordKind::kFileEnd;
    const std::uint64_t position = (*record)->position;
    if (!snapshot) last_ = std::max(last_, position);
    if (snapshot || (position > folded_ && !is_void(journal, position)))
      add_record(**record, {index, damages_, reader->last_offset()});
  }
  if (reader->damaged_places() != 0)
    note({true, fmt::format("journal file {}: {} damaged places, records lost", path,
                            reader->damaged_places())});
  return ended ? Status() : Status(fail(Errc::kCorrupt, "its end is missing"));
}

std::shared_ptr<const JournalHistory> JournalHistory::read(Files& files,
                                                           const JournalFiles& journal,
                                                           const NoteSink& note) {
  auto history = std::make_shared<JournalHistory>();
  history->read_files(files, journal, note);
  return history;
}

std::vector<dns::Name> JournalHistory::zone_names() const {
  std::vector<dns::Name> names;
  names.reserve(zones_.size());
  for (const auto& [key, places] : zones_) names.emplace_back(dns::name_of_key(key));
  return names;
}

bool JournalHistory::has_whole(dns::NameView zone) const {
  const auto found = zones_.find(dns::folded_key(zone));
  return found != zones_.end() && found->second.whole.has_value();
}

bool JournalHistory::knows(dns::NameView zone) const {
  return zones_.contains(dns::folded_key(zone));
}

Result<JournalRecord> JournalHistory::read(Place place) const {
  const OpenFile& file = files_[place.file];
  return read_record(*file.file, file.nonce, place.offset);
}

/// A journal snapshot's records have numbers of their own, and are older than any position asked
/// for.
bool JournalHistory::is_later(const JournalRecord& record, Place place, std::uint64_t up_to) const {
  return !files_[place.file].snapshot && record.position > up_to;
}

Result<MergeBase> JournalHistory::merge_base(dns::NameView zone, std::uint64_t up_to) const {
  MergeBase state;
  std::uint32_t damages = 0;
  const auto lose_after = [&](std::uint32_t now) {
    if (std::exchange(damages, now) != now) state.lose();
  };
  if (const auto found = zones_.find(dns::folded_key(zone)); found != zones_.end()) {
    for (const Place place : found->second.records) {
      auto record = read(place);
      if (!record) return pass(record);
      if (is_later(*record, place, up_to)) break;
      lose_after(place.damages);
      if (auto taken = state.take(*record); !taken) return pass(taken);
    }
  }
  lose_after(damages_);
  return state;
}

Status JournalHistory::add_deltas(const ZonePlaces& places, std::uint64_t up_to,
                                  Replay& replay) const {
  for (const Place place : places.records) {
    auto record = read(place);
    if (!record) return pass(record);
    if (is_later(*record, place, up_to)) break;
    if (!changes_zone(*record)) continue;
    if (!replay.serial || !(record->from == *replay.serial)) {
      ++replay.skipped;
      continue;
    }
    auto changes = served_changes(*record);
    if (!changes) return pass(changes);
    replay.net.updated(steps_of(*changes));
    replay.serial = record->to;
    ++replay.applied;
  }
  return {};
}

Result<JournalHistory::Replay> JournalHistory::replay(dns::NameView zone,
                                                      std::optional<dns::Serial> file_serial,
                                                      std::uint64_t up_to) const {
  Replay replay;
  replay.serial = file_serial;
  const auto found = zones_.find(dns::folded_key(zone));
  if (found == zones_.end()) return replay;
  const ZonePlaces& places = found->second;
  if (places.whole && (!file_serial || places.whole->ahead_of(*file_serial))) {
    replay.from_snapshot = true;
    replay.serial = places.whole;
  }
  if (auto added = add_deltas(places, up_to, replay); !added) return pass(added);
  return replay;
}

Status JournalHistory::for_each_base_record(
    dns::NameView zone, const std::function<Status(const zone::Record&)>& visit) const {
  const auto found = zones_.find(dns::folded_key(zone));
  if (found == zones_.end()) return {};
  for (const Place place : found->second.parts) {
    auto stored = read(place);
    if (!stored) return pass(stored);
    auto part = zone::decode_changes(stored->payload);
    if (!part) return pass(part);
    for (const zone::Record& record : part->added)
      if (auto visited = visit(record); !visited) return visited;
  }
  return {};
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
