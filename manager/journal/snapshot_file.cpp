#include "manager/journal/snapshot_file.h"

#include <algorithm>
#include <optional>

namespace pando::manager {

namespace {

constexpr std::uint64_t kSearchBytes = 256 << 10;
/// The first bytes of journal files of all formats.
constexpr std::string_view kJournalMagic = "PANDOJ";

bool is_older_format(ByteView head) noexcept {
  return std::equal(kJournalMagic.begin(), kJournalMagic.end(), head.begin(),
                    head.begin() + static_cast<std::ptrdiff_t>(
                                       std::min(head.size(), kJournalMagic.size())));
}

}  // namespace

Result<SnapshotFile> SnapshotFile::open(Files& files, const std::string& path) {
  auto file = files.open(path, OpenMode::kRead);
  if (!file) return pass(file);
  auto size = (*file)->size();
  if (!size) return pass(size);
  SnapshotFile snapshot(std::move(*file), path, *size);
  auto header = snapshot.read_header();
  if (!header) return fail(header.error().code, "{}: {}", path, header.error().text);
  snapshot.header_ = *header;
  return snapshot;
}

/// Exactly so many bytes; kCorrupt where the file ends before.
Result<Bytes> SnapshotFile::read(std::uint64_t offset, std::uint64_t bytes) const {
  if (offset > bytes_ || bytes > bytes_ - offset) return fail(Errc::kCorrupt, "cut off");
  Bytes out(bytes);
  auto got = file_->read_at(offset, out);
  if (!got) return pass(got);
  if (*got != bytes) return fail(Errc::kCorrupt, "cut off");
  return out;
}

/// The header at the beginning, else its copy in the trailer. Of two errors the first is reported,
/// unless the second says that only reading failed.
Result<zone::DumpHeader> SnapshotFile::read_header() const {
  auto head = read(0, zone::kDumpHeaderBytes);
  if (head && is_older_format(*head))
    return fail(Errc::kLayout, "its format is not the one that this build reads, version {}",
                zone::kDumpVersion);
  Result<zone::DumpHeader> first = head ? zone::decode_dump_header(*head) : pass(head);
  if (first || first.error().code == Errc::kLayout || bytes_ < zone::kDumpTrailerBytes)
    return first;
  auto tail = read(bytes_ - zone::kDumpTrailerBytes, zone::kDumpTrailerBytes);
  Result<zone::DumpHeader> second = tail ? zone::decode_dump_trailer_header(*tail) : pass(tail);
  return second || second.error().code == Errc::kIo ? second : first;
}

Result<std::vector<SnapshotFile::Place>> SnapshotFile::read_index() const {
  if (bytes_ < zone::kDumpTrailerBytes) return fail(Errc::kCorrupt, "cut off");
  auto trailer = read(bytes_ - zone::kDumpTrailerBytes, zone::kDumpTrailerBytes);
  if (!trailer) return pass(trailer);
  auto place = zone::decode_dump_trailer(*trailer, header_.nonce);
  if (!place) return pass(place);
  auto index = read(place->offset, place->bytes);
  if (!index) return pass(index);
  return zone::decode_dump_index(*index, header_.nonce);
}

Result<zone::DumpItem> SnapshotFile::next(Cursor& cursor, const dns::Name& zone) const {
  auto bytes = read(cursor.offset, zone::kDumpFrameBytes);
  if (!bytes) return pass(bytes);
  const auto frame = zone::decode_dump_frame(*bytes);
  if (!frame || frame->number != cursor.number) return fail(Errc::kCorrupt, "not the next record");
  auto body = read(cursor.offset + zone::kDumpFrameBytes, frame->body_bytes);
  if (!body) return pass(body);
  auto item = zone::decode_dump_record(*bytes, *body, header_.nonce, zone);
  if (!item) return item;
  cursor.offset += zone::kDumpFrameBytes + frame->body_bytes;
  ++cursor.number;
  return item;
}

/// Visits items up to the zone's end. An error names file and place.
Status SnapshotFile::walk(Cursor cursor, const dns::Name& zone, const ItemVisit& visit) const {
  for (;;) {
    const std::uint64_t offset = cursor.offset;
    auto item = next(cursor, zone);
    if (!item)
      return fail(item.error().code, "{}: byte {}: {}", path_, offset, item.error().text);
    const bool ends = std::holds_alternative<zone::DumpZoneEnd>(*item);
    if (auto visited = visit(std::move(*item)); !visited || ends) return visited;
  }
}

Status SnapshotFile::for_each_item(const Place& place, const ItemVisit& visit) const {
  std::uint64_t records = 0;
  bool begins = true;
  const auto count = [&](zone::DumpItem&& item) -> Status {
    const auto* zone = std::get_if<zone::DumpZone>(&item);
    if (std::exchange(begins, false) != (zone != nullptr))
      return fail(Errc::kCorrupt, "{}: byte {}: {} is elsewhere", path_, place.offset,
                  to_text(dns::Name(place.name)));
    if (zone != nullptr) records = zone->records;
    if (const auto* part = std::get_if<zone::DumpPart>(&item))
      records -= part->records.added.size();
    if (std::holds_alternative<zone::DumpZoneEnd>(item) && records != 0)
      return fail(Errc::kCorrupt, "{}: byte {}: the zone has another number of records", path_,
                  place.offset);
    return visit(std::move(item));
  };
  return walk({place.offset, place.number}, dns::Name(place.name.view()), count);
}

Status SnapshotFile::for_each_note(const Place& place, const ItemVisit& visit) const {
  return walk({place.notes_offset, place.notes_number}, dns::Name(place.name.view()), visit);
}

SnapshotFile::Zones SnapshotFile::zones() const {
  auto places = read_index();
  if (places) return {std::move(*places), {}};
  Zones found = search();
  // An index that may be read later may name the zones that the search has not found.
  if (!found.others && places.error().code != Errc::kCorrupt) found.others = pass(places);
  return found;
}

namespace {
/// Damage is reported only if all is readable, because unreadable parts may come back.
void note_others(SnapshotFile::Zones& found, Status why) {
  if (found.others || found.others.error().code == Errc::kCorrupt) found.others = std::move(why);
}
}  // namespace

/// Goes through the records, for a file whose index is damaged.
SnapshotFile::Zones SnapshotFile::search() const {
  Zones found;
  Cursor cursor{zone::kDumpHeaderBytes, 1};
  std::optional<Place> place;  // the open zone
  for (;;) {
    const Cursor begin = cursor;
    auto item = next(cursor, place ? dns::Name(place->name.view()) : dns::Name());
    if (!item) {
      note_others(found, fail(item.error().code, "{}: byte {}: {}", path_, begin.offset,
                              item.error().text));
      // A zone that is damaged further on is named all the same: its serial was used.
      if (place) found.places.push_back(std::move(*place));
      place.reset();
      const auto zone = find_zone(begin.offset + 1);
      if (!zone && zone.error().code != Errc::kNotFound) note_others(found, pass(zone));
      if (!zone) return found;
      cursor = *zone;
    } else if (const auto* counts = std::get_if<zone::DumpCounts>(&*item)) {
      if (counts->zones != found.places.size() && found.others)
        found.others = fail(Errc::kCorrupt, "{}: zones are missing", path_);
      return found;
    } else if (const auto* zone = std::get_if<zone::DumpZone>(&*item)) {
      place = Place{dns::HeapName(zone->name), zone->loaded,  zone->serial, begin.offset,
                    begin.number,              0,             0};
    } else if (place) {
      const auto* note = std::get_if<zone::DumpNote>(&*item);
      const bool ends = std::holds_alternative<zone::DumpZoneEnd>(*item);
      if (place->notes_offset == 0 && (note != nullptr || ends)) {
        place->notes_offset = begin.offset;
        place->notes_number = begin.number;
      }
      if (note != nullptr) zone::raise_serial(*place, *note);
      if (ends) found.places.push_back(std::move(*place));
      if (ends) place.reset();
    }
  }
}

/// The first sound beginning of a zone at or after `offset`. An error: there is none.
Result<SnapshotFile::Cursor> SnapshotFile::find_zone(std::uint64_t offset) const {
  for (; offset + zone::kDumpFrameBytes <= bytes_; offset += kSearchBytes) {
    const std::uint64_t count =
        std::min<std::uint64_t>(kSearchBytes + zone::kDumpFrameBytes, bytes_ - offset);
    auto window = read(offset, count);
    if (!window) return pass(window);
    for (std::uint64_t at = 0; at < kSearchBytes && at + zone::kDumpFrameBytes <= count; ++at) {
      const auto frame = zone::decode_dump_frame(ByteView(*window).subspan(at));
      if (!frame) continue;
      Cursor cursor{offset + at, frame->number};
      const auto item = next(cursor, dns::Name());
      if (item && std::holds_alternative<zone::DumpZone>(*item))
        return Cursor{offset + at, frame->number};
    }
  }
  return fail(Errc::kNotFound, "no zone");
}

JournalRecord record_of(const dns::Name& zone, zone::DumpNote&& note) {
  return {0, 0, static_cast<RecordKind>(note.kind), zone, note.from, note.to,
          std::move(note.payload)};
}

}  // namespace pando::manager
