#include "zone/dump/dump_writer.h"

#include <algorithm>

#include "base/random.h"
#include "zone/history/history.h"
#include "zone/read/each_record.h"

namespace pando::zone {

namespace {

std::size_t bytes_of(const dns::NameView owner, ByteView rdata) noexcept {
  return owner.size() + rdata.size() + 16;
}

/// A zone with damaged settings counts as a primary's.
bool is_secondary(const ZoneView& zone) {
  const auto settings = decode_zone_settings(zone.settings_bytes());
  return settings && settings->is_secondary;
}

DumpZone head_of(const ZoneView& zone, const shm::Store::SideEntry* side) {
  DumpZone head;
  head.name = dns::Name(zone.apex());
  head.loaded = zone.loaded();
  head.is_secondary = is_secondary(zone);
  if (head.loaded) head.serial = zone.serial();
  if (head.loaded) head.records = zone.record_count();
  if (head.loaded) head.primary_serial = primary_serial(zone);
  const ZoneFileInfo source = zone.source();
  head.source = {source.file_mtime_ns, source.file_bytes, source.hash};
  if (side == nullptr) return head;
  head.expires_at = side->expires_at.load(std::memory_order_relaxed);
  head.next_refresh = side->next_refresh.load(std::memory_order_relaxed);
  head.last_ok = side->last_ok.load(std::memory_order_relaxed);
  return head;
}

/// Number of first entries of `snapshots` that belong to the oldest archived data, snapshots lost
/// before included. 0: no snapshot has archived data.
std::size_t of_oldest_archive(std::span<const ZoneSnapshot> snapshots) noexcept {
  const auto first = std::find_if(snapshots.begin(), snapshots.end(), [](const ZoneSnapshot& one) {
    return one.held() && one.archive != 0;
  });
  if (first == snapshots.end()) return 0;
  const auto last = std::find_if(
      snapshots.rbegin(), snapshots.rend(),
      [&](const ZoneSnapshot& one) { return one.held() && one.archive == first->archive; });
  return static_cast<std::size_t>(last.base() - snapshots.begin());
}

Status damaged(const ZoneSnapshot& snapshots, const dns::Name& apex) {
  return fail(Errc::kCorrupt, "snapshot '{}' of {} is damaged", snapshots.label, to_text(apex));
}

}  // namespace

DumpWriter::DumpWriter(Sink sink, DumpHeader header, Contents contents)
    : sink_(std::move(sink)), header_(header), contents_(contents) {
  header_.nonce = random_number<std::uint64_t>();
  buffer_ = encode(header_);
}

Status DumpWriter::put_zone(const ZoneView& zone, const shm::Store::SideEntry* side,
                            std::span<const DumpNote> notes) {
  const DumpZone head = head_of(zone, side);
  Status done = put(head);
  if (done && contents_ == Contents::kStore) done = put_all(zone, head);
  if (done && contents_ == Contents::kZones && head.loaded) done = put_records(zone, head.name);
  for (const DumpNote& note : notes)
    if (done) done = put(note);
  return done ? put(DumpZoneEnd{}) : done;
}

/// Writes the archived data, oldest first, then the zone's own data; each with its snapshots.
Status DumpWriter::put_all(const ZoneView& zone, const DumpZone& head) {
  const std::vector<ZoneSnapshot> all = snapshots_of(zone);
  Snapshots snapshots(all);
  while (const std::size_t count = of_oldest_archive(snapshots)) {
    const ZoneView data = data_of(zone, snapshots[count - 1]);
    if (!data) return damaged(snapshots[count - 1], head.name);
    if (auto done = put_data(data, head.name, snapshots.first(count)); !done) return done;
    if (auto done = put(DumpArchive{data.serial(), data.record_count()}); !done) return done;
    snapshots = snapshots.subspan(count);
  }
  if (head.loaded) return put_data(zone, head.name, snapshots);
  auto done = put_snapshots(snapshots, std::nullopt);
  return done && !snapshots.empty() ? damaged(snapshots.front(), head.name) : done;
}

Status DumpWriter::put_data(const ZoneView& data, const dns::Name& apex, Snapshots snapshots) {
  Status done = put_records(data, apex);
  if (done) done = put_history(data, apex, snapshots);
  if (done) done = put_snapshots(snapshots, data.serial());
  return done && !snapshots.empty() ? damaged(snapshots.front(), apex) : done;
}

/// Writes the leading snapshots that are lost or of serial `at`, in their order.
Status DumpWriter::put_snapshots(Snapshots& snapshots, std::optional<dns::Serial> at) {
  while (!snapshots.empty() && (!snapshots.front().held() || snapshots.front().serial == at)) {
    ++counts_.snapshots;
    if (auto done = put(DumpSnapshot{snapshots.front()}); !done) return done;
    snapshots = snapshots.subspan(1);
  }
  return {};
}

Status DumpWriter::put_records(const ZoneView& data, const dns::Name& apex) {
  DumpPart part{{apex, {}, {}}};
  std::uint64_t records = 0;
  std::size_t bytes = 0;
  const auto flush_part = [&]() -> Status {
    records += part.records.added.size();
    bytes = 0;
    auto done = part.records.added.empty() ? Status() : put(part);
    part.records.added.clear();
    return done;
  };
  auto done = for_each_record(
      data, [&](dns::NameView owner, dns::RRType type, dns::Ttl ttl, ByteView rdata) -> Status {
        part.records.added.push_back(
            {dns::Name(owner), type, ttl, Bytes(rdata.begin(), rdata.end())});
        bytes += bytes_of(owner, rdata);
        return bytes < kDumpPartBytes ? Status() : flush_part();
      });
  if (done) done = flush_part();
  if (!done) return done;
  if (records != data.record_count())
    return fail(Errc::kCorrupt, "{} has {} records where {} are counted", to_text(apex), records,
                data.record_count());
  return {};
}

/// Each snapshot stands before the changeset that starts from it.
Status DumpWriter::put_history(const ZoneView& data, const dns::Name& apex, Snapshots& snapshots) {
  auto reader = HistoryReader::from_oldest(data);
  if (!reader) return {};
  if (auto done = put_snapshots(snapshots, reader->from()); !done) return done;
  DumpChangeset part{reader->from(), reader->to(), false, {apex, {}, {}}};
  std::size_t bytes = 0;
  const auto flush_part = [&](bool last) {
    part.last = last;
    bytes = 0;
    if (last) ++counts_.changesets;
    auto done = put(part);
    part.records.removed.clear();
    part.records.added.clear();
    return done;
  };
  while (const HistoryRecord* record = reader->next()) {
    if (!(reader->from() == part.from)) {
      if (auto done = flush_part(true); !done) return done;
      if (auto done = put_snapshots(snapshots, reader->from()); !done) return done;
      part.from = reader->from();
      part.to = reader->to();
    }
    auto& list = record->added ? part.records.added : part.records.removed;
    list.push_back({dns::Name(record->owner), record->type, record->ttl,
                    Bytes(record->rdata.begin(), record->rdata.end())});
    bytes += bytes_of(record->owner, record->rdata);
    if (bytes < kDumpPartBytes) continue;
    if (auto done = flush_part(false); !done) return done;
  }
  if (reader->damaged())
    return fail(Errc::kCorrupt, "the change history of {} is damaged", to_text(apex));
  return flush_part(true);
}

/// Called before the item is written.
void DumpWriter::add_to_index(const DumpItem& item) {
  const std::uint64_t offset = bytes_ + buffer_.size();
  if (const auto* zone = std::get_if<DumpZone>(&item))
    return index_.push_back(
        {dns::HeapName(zone->name), zone->loaded, zone->serial, offset, number_ + 1, 0, 0});
  const auto* note = std::get_if<DumpNote>(&item);
  if (index_.empty() || (note == nullptr && !std::holds_alternative<DumpZoneEnd>(item))) return;
  DumpPlace& place = index_.back();
  if (place.notes_offset == 0) {
    place.notes_offset = offset;
    place.notes_number = number_ + 1;
  }
  if (note != nullptr) raise_serial(place, *note);
}

Status DumpWriter::put(const DumpItem& item) {
  if (const auto* zone = std::get_if<DumpZone>(&item)) {
    ++counts_.zones;
    counts_.records += zone->records;
  }
  if (contents_ == Contents::kZones) add_to_index(item);
  append_dump_record(buffer_, item, ++number_, header_.nonce);
  return buffer_.size() < kDumpPartBytes ? Status() : flush();
}

Status DumpWriter::flush() {
  auto done = sink_(buffer_);
  bytes_ += buffer_.size();
  buffer_.clear();
  return done;
}

Status DumpWriter::finish() {
  if (auto done = put(counts_); !done) return done;
  if (contents_ == Contents::kZones)
    append(buffer_, encode_dump_index(header_, index_, bytes_ + buffer_.size()));
  return buffer_.empty() ? Status() : flush();
}

}  // namespace pando::zone
