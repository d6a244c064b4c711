#include "zone/dump/dump_format.h"

#include <xxhash.h>

#include "dns/field_reader.h"
#include "dns/rdata/rdata.h"

namespace pando::zone {

namespace {

using dns::FieldReader;

constexpr std::uint64_t kFileMagic = 0x50414E444F444D31U;  // "PANDODM1"
constexpr std::uint32_t kRecordMagic = 0x50445243U;        // "PDRC"
constexpr std::size_t kHeaderChecksumAt = kDumpHeaderBytes - 8;
constexpr std::size_t kFrameChecksumAt = kDumpFrameBytes - 8;

enum Kind : std::uint8_t {
  kZone = 1,
  kPart,
  kChangeset,
  kNote,
  kZoneEnd,
  kEnd,
  kSnapshot,
  kArchive,
};

constexpr std::uint8_t kLoaded = 1;  // flags of a zone
constexpr std::uint8_t kSecondaryBit = 2;
constexpr std::uint8_t kPrimarySerialBit = 4;
constexpr std::uint8_t kLast = 1;  // flag of a changeset

std::uint64_t record_checksum(ByteView frame, ByteView body, std::uint64_t nonce) noexcept {
  const std::uint64_t head = XXH3_64bits_withSeed(frame.data(), kFrameChecksumAt, nonce);
  return XXH3_64bits_withSeed(body.data(), body.size(), head);
}

Kind put_body(Bytes& out, const DumpZone& zone) {
  append(out, zone.name.view().bytes());
  out.push_back(static_cast<std::uint8_t>((zone.loaded ? kLoaded : 0) |
                                          (zone.is_secondary ? kSecondaryBit : 0) |
                                          (zone.primary_serial ? kPrimarySerialBit : 0)));
  append_be32(out, zone.serial.value);
  append_be64(out, zone.records);
  append_be64(out, static_cast<std::uint64_t>(zone.source.file_mtime_ns));
  append_be64(out, zone.source.file_bytes);
  append_be64(out, zone.expires_at);
  append_be64(out, zone.next_refresh);
  append_be64(out, zone.last_ok);
  append_be64(out, zone.source.hash);
  if (zone.primary_serial) append_be32(out, zone.primary_serial->value);
  return kZone;
}

Kind put_body(Bytes& out, const DumpPart& part) {
  append(out, encode(part.records));
  return kPart;
}

Kind put_body(Bytes& out, const DumpChangeset& changeset) {
  append_be32(out, changeset.from.value);
  append_be32(out, changeset.to.value);
  out.push_back(changeset.last ? kLast : std::uint8_t{0});
  append(out, encode(changeset.records));
  return kChangeset;
}

Kind put_body(Bytes& out, const DumpNote& note) {
  out.push_back(note.kind);
  append_be32(out, note.from.value);
  append_be32(out, note.to.value);
  append(out, note.payload);
  return kNote;
}

Kind put_body(Bytes&, const DumpZoneEnd&) { return kZoneEnd; }

Kind put_body(Bytes& out, const DumpCounts& counts) {
  append_be64(out, counts.zones);
  append_be64(out, counts.records);
  append_be64(out, counts.changesets);
  append_be64(out, counts.snapshots);
  return kEnd;
}

Kind put_body(Bytes& out, const DumpSnapshot& snapshot) {
  const ZoneSnapshot& version = snapshot.version;
  append_be32(out, version.serial.value);
  append_be64(out, version.taken);
  append_be64(out, version.records);
  out.push_back(static_cast<std::uint8_t>(version.state));
  out.insert(out.end(), version.label.begin(), version.label.end());
  return kSnapshot;
}

Kind put_body(Bytes& out, const DumpArchive& archive) {
  append_be32(out, archive.serial.value);
  append_be64(out, archive.records);
  return kArchive;
}

Status check_records(const Changeset& changes, const dns::Name& zone) {
  if (!(changes.zone == zone))
    return fail(Errc::kCorrupt, "records of {} in {}", to_text(changes.zone), to_text(zone));
  for (const auto* list : {&changes.removed, &changes.added})
    for (const Record& record : *list) {
      if (!record.owner.view().is_at_or_below(zone.view()))
        return fail(Errc::kCorrupt, "{} is not in {}", to_text(record.owner), to_text(zone));
      if (dns::is_meta_type(record.type))
        return fail(Errc::kCorrupt, "{} {} cannot be in a zone", to_text(record.owner),
                    to_text(record.type));
      if (auto checked = dns::check_stored_rdata(record.type, record.rdata); !checked)
        return fail(Errc::kCorrupt, "{} {}: {}", to_text(record.owner), to_text(record.type),
                    checked.error().text);
    }
  return {};
}

Result<Changeset> take_records(ByteView bytes, const dns::Name& zone) {
  auto changes = decode_changes(bytes);
  if (!changes) return changes;
  if (auto checked = check_records(*changes, zone); !checked) return pass(checked);
  return changes;
}

Result<DumpItem> cut_off() { return fail(Errc::kCorrupt, "the record is too short or too long"); }

Result<DumpItem> take_zone(ByteView body) {
  FieldReader fields(body);
  DumpZone zone;
  zone.name = fields.wire_name();
  if (!fields.ok()) return fail(Errc::kCorrupt, "no name of a zone");
  const std::uint8_t flags = fields.u8();
  zone.loaded = (flags & kLoaded) != 0;
  zone.is_secondary = (flags & kSecondaryBit) != 0;
  zone.serial = {fields.u32()};
  zone.records = fields.u64();
  zone.source.file_mtime_ns = static_cast<std::int64_t>(fields.u64());
  zone.source.file_bytes = fields.u64();
  zone.expires_at = fields.u64();
  zone.next_refresh = fields.u64();
  zone.last_ok = fields.u64();
  zone.source.hash = fields.u64();
  if ((flags & kPrimarySerialBit) != 0) zone.primary_serial = dns::Serial{fields.u32()};
  if (!fields.done()) return cut_off();
  return DumpItem(std::move(zone));
}

Result<DumpItem> take_part(ByteView body, const dns::Name& zone) {
  auto records = take_records(body, zone);
  if (!records) return pass(records);
  if (!records->removed.empty()) return fail(Errc::kCorrupt, "a part of a zone removes records");
  return DumpItem(DumpPart{std::move(*records)});
}

Result<DumpItem> take_changeset(ByteView body, const dns::Name& zone) {
  FieldReader fields(body);
  DumpChangeset changeset;
  changeset.from = {fields.u32()};
  changeset.to = {fields.u32()};
  changeset.last = (fields.u8() & kLast) != 0;
  if (!fields.ok()) return cut_off();
  if (!changeset.to.ahead_of(changeset.from))
    return fail(Errc::kCorrupt, "serial {} is not ahead of {}", changeset.to.value,
                changeset.from.value);
  auto records = take_records(fields.left(), zone);
  if (!records) return pass(records);
  changeset.records = std::move(*records);
  return DumpItem(std::move(changeset));
}

Result<DumpItem> take_note(ByteView body) {
  FieldReader fields(body);
  DumpNote note;
  note.kind = fields.u8();
  note.from = {fields.u32()};
  note.to = {fields.u32()};
  if (!fields.ok()) return cut_off();
  note.payload.assign(fields.left().begin(), fields.left().end());
  return DumpItem(std::move(note));
}

Result<DumpItem> take_counts(ByteView body) {
  FieldReader fields(body);
  DumpCounts counts;
  counts.zones = fields.u64();
  counts.records = fields.u64();
  counts.changesets = fields.u64();
  counts.snapshots = fields.u64();
  if (!fields.done()) return cut_off();
  return DumpItem(counts);
}

Result<DumpItem> take_snapshot(ByteView body) {
  FieldReader fields(body);
  ZoneSnapshot version;
  version.serial = {fields.u32()};
  version.taken = fields.u64();
  version.records = fields.u64();
  const std::uint8_t state = fields.u8();
  if (!fields.ok()) return cut_off();
  if (state > static_cast<std::uint8_t>(ZoneSnapshot::State::kStoreFull))
    return fail(Errc::kCorrupt, "a snapshot in state {}", state);
  version.state = static_cast<ZoneSnapshot::State>(state);
  version.label.assign(fields.left().begin(), fields.left().end());
  if (auto fine = check_label(version.label); !fine)
    return fail(Errc::kCorrupt, "{}", fine.error().text);
  return DumpItem(DumpSnapshot{std::move(version)});
}

Result<DumpItem> take_archive(ByteView body) {
  FieldReader fields(body);
  DumpArchive archive;
  archive.serial = {fields.u32()};
  archive.records = fields.u64();
  if (!fields.done()) return cut_off();
  return DumpItem(archive);
}

}  // namespace

bool looks_like_dump(ByteView head) noexcept {
  return head.size() >= kDumpMagicBytes && load_be64(head.data()) == kFileMagic;
}

//   0       8         12      16      24      40        48        56         64        72
//  | magic | version | zeros | nonce | owner | written | version | position | lineage | checksum |
Bytes encode(const DumpHeader& header) {
  Bytes out;
  out.reserve(kDumpHeaderBytes);
  append_be64(out, kFileMagic);
  append_be32(out, kDumpVersion);
  append_be32(out, 0);
  append_be64(out, header.nonce);
  append_be64(out, header.owner[0]);
  append_be64(out, header.owner[1]);
  append_be64(out, header.written);
  append_be64(out, header.version);
  append_be64(out, header.position);
  append_be64(out, header.lineage);
  append_be64(out, XXH3_64bits(out.data(), kHeaderChecksumAt));
  return out;
}

Result<DumpHeader> decode_dump_header(ByteView bytes) {
  if (!looks_like_dump(bytes)) return fail(Errc::kCorrupt, "not a dump");
  if (bytes.size() < kDumpHeaderBytes) return fail(Errc::kCorrupt, "cut off in its header");
  if (load_be64(bytes.data() + kHeaderChecksumAt) != XXH3_64bits(bytes.data(), kHeaderChecksumAt))
    return fail(Errc::kCorrupt, "the header has a wrong checksum");
  if (const std::uint32_t version = load_be32(bytes.data() + 8); version != kDumpVersion)
    return fail(Errc::kLayout, "a dump of version {}, this build reads version {}", version,
                kDumpVersion);
  FieldReader fields(bytes.subspan(16));
  DumpHeader header;
  header.nonce = fields.u64();
  header.owner = {fields.u64(), fields.u64()};
  header.written = fields.u64();
  header.version = fields.u64();
  header.position = fields.u64();
  header.lineage = fields.u64();
  return header;
}

//  0       4      8        16     17      24         32
//  | magic | body | number | kind | zeros | checksum | body …
void append_dump_record(Bytes& out, const DumpItem& item, std::uint64_t number,
                        std::uint64_t nonce) {
  const std::size_t start = out.size();
  out.resize(start + kDumpFrameBytes);
  const Kind kind = std::visit([&](const auto& body) { return put_body(out, body); }, item);
  std::uint8_t* const frame = out.data() + start;
  const std::size_t body = out.size() - start - kDumpFrameBytes;
  store_be32(frame, kRecordMagic);
  store_be32(frame + 4, static_cast<std::uint32_t>(body));
  store_be64(frame + 8, number);
  frame[16] = kind;
  store_be64(frame + kFrameChecksumAt,
             record_checksum({frame, kDumpFrameBytes}, {frame + kDumpFrameBytes, body}, nonce));
}

std::optional<DumpFrame> decode_dump_frame(ByteView bytes) noexcept {
  if (bytes.size() < kDumpFrameBytes || load_be32(bytes.data()) != kRecordMagic)
    return std::nullopt;
  DumpFrame frame{load_be32(bytes.data() + 4), load_be64(bytes.data() + 8), bytes[16]};
  if (frame.kind < kZone || frame.kind > kArchive || frame.body_bytes > kMaxDumpBody)
    return std::nullopt;
  return frame;
}

Result<DumpItem> decode_dump_record(ByteView frame, ByteView body, std::uint64_t nonce,
                                    const dns::Name& zone) {
  if (record_checksum(frame, body, nonce) != load_be64(frame.data() + kFrameChecksumAt))
    return fail(Errc::kCorrupt, "the record has a wrong checksum");
  switch (frame[16]) {
    case kZone:
      return take_zone(body);
    case kPart:
      return take_part(body, zone);
    case kChangeset:
      return take_changeset(body, zone);
    case kNote:
      return take_note(body);
    case kZoneEnd:
      return body.empty() ? Result<DumpItem>(DumpZoneEnd{}) : cut_off();
    case kSnapshot:
      return take_snapshot(body);
    case kArchive:
      return take_archive(body);
    default:
      return take_counts(body);
  }
}

}  // namespace pando::zone
