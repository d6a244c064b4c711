#include "manager/journal_history.h"

#include "dns/rdata.h"

namespace pando::manager {

bool NetChanges::Less::operator()(const Key& a, const Key& b) const noexcept {
  if (const int order = dns::compare_canonical(a.owner, b.owner); order != 0) return order < 0;
  if (a.type != b.type) return a.type < b.type;
  return dns::compare_rdata_canonical(a.type, a.rdata, b.rdata) < 0;
}

void NetChanges::apply(const zone::Changes& changes) {
  for (const zone::Record& record : changes.removed)
    records_[{record.owner, record.type, record.rdata}] = std::nullopt;
  for (const zone::Record& record : changes.added)
    records_[{record.owner, record.type, record.rdata}] = record.ttl;
}

bool NetChanges::replaces(dns::NameView owner, dns::RRType type, ByteView rdata) const {
  if (records_.empty()) return false;
  return records_.contains({dns::Name(owner), type, Bytes(rdata.begin(), rdata.end())});
}

Status NetChanges::for_each_added(const std::function<Status(const zone::Record&)>& visit) const {
  for (const auto& [key, ttl] : records_) {
    if (!ttl) continue;
    if (auto visited = visit({key.owner, key.type, *ttl, key.rdata}); !visited) return visited;
  }
  return {};
}

std::string JournalHistory::key_of(dns::NameView zone) {
  const dns::Name folded = dns::Name(zone).folded();
  return {reinterpret_cast<const char*>(folded.data()), folded.size()};
}

void JournalHistory::note_record(const JournalRecord& record, Place place) {
  ZonePlaces& places = zones_[key_of(record.zone)];
  switch (record.kind) {
    case RecordKind::kZonePart:
      places.parts.push_back(place);
      break;
    case RecordKind::kZoneEnd:
      places.whole = record.to;
      places.records.push_back(place);
      break;
    case RecordKind::kDelta:
    case RecordKind::kEdit:
    case RecordKind::kBase:
    case RecordKind::kOverlay:
      places.records.push_back(place);
      break;
    case RecordKind::kGone:
      zones_.erase(key_of(record.zone));
      break;
    case RecordKind::kFileEnd:
      break;
  }
}

Status JournalHistory::read_file(Files& files, const std::string& path, const JournalFiles& journal,
                                 const NoteSink& note) {
  auto reader = SegmentReader::open(files, path);
  if (!reader) return pass(reader);
  auto file = files.open(path, OpenMode::kRead);
  if (!file) return pass(file);
  const bool snapshot = reader->header().kind == FileKind::kSnapshot;
  const auto index = static_cast<std::uint32_t>(files_.size());
  files_.push_back({std::move(*file), reader->header().nonce, snapshot});
  for (;;) {
    auto record = reader->next();
    if (!record) return pass(record);
    if (!*record) break;
    if ((*record)->kind == RecordKind::kFileEnd) break;
    if (snapshot || !is_void(journal, (*record)->position))
      note_record(**record, {index, reader->last_offset()});
  }
  if (reader->damaged_places() != 0)
    note({true, fmt::format("journal file {}: {} damaged places, records lost", path,
                            reader->damaged_places())});
  return {};
}

std::shared_ptr<const JournalHistory> JournalHistory::read(Files& files,
                                                           const JournalFiles& journal,
                                                           const NoteSink& note) {
  auto history = std::make_shared<JournalHistory>();
  const auto take = [&](const std::string& path) {
    auto done = history->read_file(files, path, journal, note);
    if (!done) history->problem_ = fmt::format("{}: {}", path, done.error().text);
  };
  if (!journal.snapshot.empty()) take(journal.snapshot);
  for (const JournalFiles::Segment& segment : journal.segments) take(segment.path);
  return history;
}

bool JournalHistory::has_whole(dns::NameView zone) const {
  const auto found = zones_.find(key_of(zone));
  return found != zones_.end() && found->second.whole.has_value();
}

bool JournalHistory::knows(dns::NameView zone) const { return zones_.contains(key_of(zone)); }

Result<JournalRecord> JournalHistory::read(Place place) const {
  const OpenFile& file = files_[place.file];
  return read_record(*file.file, file.nonce, place.offset);
}

Result<FileState> JournalHistory::file_state(dns::NameView zone, std::uint64_t up_to) const {
  FileState state;
  const auto found = zones_.find(key_of(zone));
  if (found == zones_.end()) return state;
  for (const Place place : found->second.records) {
    auto record = read(place);
    if (!record) return pass(record);
    // A snapshot's records are numbered by themselves and older than any position asked for.
    if (!files_[place.file].snapshot && record->position > up_to) break;
    if (auto taken = state.take(*record); !taken) return pass(taken);
  }
  return state;
}

Status JournalHistory::add_deltas(const ZonePlaces& places, Replay& replay) const {
  for (const Place place : places.records) {
    auto record = read(place);
    if (!record) return pass(record);
    const bool edits = record->kind == RecordKind::kEdit && !(record->from == record->to);
    if (record->kind != RecordKind::kDelta && !edits) continue;
    if (!replay.serial || !(record->from == *replay.serial)) {
      ++replay.skipped;
      continue;
    }
    auto changes = served_changes(*record);
    if (!changes) return pass(changes);
    replay.net.apply(*changes);
    replay.serial = record->to;
    ++replay.applied;
  }
  return {};
}

Result<JournalHistory::Replay> JournalHistory::replay(
    dns::NameView zone, std::optional<dns::Serial> file_serial) const {
  Replay replay;
  replay.serial = file_serial;
  const auto found = zones_.find(key_of(zone));
  if (found == zones_.end()) return replay;
  const ZonePlaces& places = found->second;
  if (places.whole && (!file_serial || places.whole->ahead_of(*file_serial))) {
    replay.from_snapshot = true;
    replay.serial = places.whole;
  }
  if (auto added = add_deltas(places, replay); !added) return pass(added);
  return replay;
}

Status JournalHistory::for_each_base_record(
    dns::NameView zone, const std::function<Status(const zone::Record&)>& visit) const {
  const auto found = zones_.find(key_of(zone));
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

/// Compaction may replace files while they are read: then there are others to read.
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
