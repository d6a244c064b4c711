#include "manager/journal_payload.h"

namespace pando::manager {

namespace {

constexpr std::uint8_t kLost = 1;  // flag of an overlay: not known
constexpr std::size_t kSourceOctets = 16;

Overlay::Entries entries_of(const Steps& steps) {
  Overlay::Entries entries;
  for (const auto& [key, step] : steps)
    entries.emplace(key, Overlay::Entry{step.before, step.after});
  return entries;
}

}  // namespace

//  0             4                        8
//  | file serial | octets of the first    | changes of the zone | changes held back |
Bytes encode(const FileEdit& edit) {
  const Bytes live = zone::encode(edit.live);
  Bytes out;
  append_be32(out, edit.file_serial.value);
  append_be32(out, static_cast<std::uint32_t>(live.size()));
  append(out, live);
  append(out, zone::encode(edit.held));
  return out;
}

Result<FileEdit> decode_file_edit(ByteView bytes) {
  if (bytes.size() < 8) return fail(Errc::kCorrupt, "stored file edit is cut off");
  const std::uint32_t octets = load_be32(bytes.data() + 4);
  if (octets > bytes.size() - 8) return fail(Errc::kCorrupt, "stored file edit is cut off");
  auto live = zone::decode_changes(bytes.subspan(8, octets));
  if (!live) return pass(live);
  auto held = zone::decode_changes(bytes.subspan(8 + octets));
  if (!held) return pass(held);
  return FileEdit{{load_be32(bytes.data())}, std::move(*live), std::move(*held)};
}

Result<zone::Changes> served_changes(const JournalRecord& record) {
  if (record.kind != RecordKind::kEdit) return zone::decode_changes(record.payload);
  auto edit = decode_file_edit(record.payload);
  if (!edit) return pass(edit);
  return std::move(edit->live);
}

//  0       1
//  | flags | records as in the file (removed) and as served (added)
Bytes encode(const dns::Name& zone, const Overlay& overlay) {
  Steps steps;
  for (const auto& [key, entry] : overlay.entries())
    steps.emplace(key, Step{entry.file, entry.live});
  Bytes out;
  out.push_back(overlay.known() ? 0 : kLost);
  append(out, zone::encode(changes_of(zone, steps)));
  return out;
}

Status decode_overlay(ByteView bytes, Overlay& overlay) {
  if (bytes.empty()) return fail(Errc::kCorrupt, "stored overlay is cut off");
  auto changes = zone::decode_changes(bytes.subspan(1));
  if (!changes) return pass(changes);
  if ((bytes[0] & kLost) != 0)
    overlay.lose();
  else
    overlay.assign(entries_of(steps_of(*changes)));
  return {};
}

//  0                 8        16
//  | modification time | octets |
Bytes encode(const zone::ZoneSource& source) {
  Bytes out(kSourceOctets);
  store_be64(out.data(), static_cast<std::uint64_t>(source.file_mtime_ns));
  store_be64(out.data() + 8, source.file_octets);
  return out;
}

Result<zone::ZoneSource> decode_source(ByteView bytes) {
  if (bytes.size() < kSourceOctets)
    return fail(Errc::kCorrupt, "stored file's identity is cut off");
  return zone::ZoneSource{static_cast<std::int64_t>(load_be64(bytes.data())),
                          load_be64(bytes.data() + 8)};
}

bool same_source(const zone::ZoneSource& a, const zone::ZoneSource& b) noexcept {
  return a.file_mtime_ns == b.file_mtime_ns && a.file_octets == b.file_octets;
}

bool may_have_updates(const zone::ZoneView& zone) {
  const auto settings = zone::decode_zone_settings(zone.settings_bytes());
  return !settings || settings->is_secondary || !settings->allow_update.empty();
}

JournalEntry base_entry(const zone::ZoneView& zone) {
  return {dns::Name(zone.apex()), zone.serial(), zone.serial(), {}, RecordKind::kBase};
}

JournalEntry source_entry(const dns::Name& zone, dns::Serial serial,
                          const zone::ZoneSource& source) {
  return {zone, serial, serial, encode(source), RecordKind::kSource};
}

JournalEntry overlay_entry(const dns::Name& zone, dns::Serial file, dns::Serial serial,
                           const Overlay& overlay) {
  return {zone, file, serial, encode(zone, overlay), RecordKind::kOverlay};
}

bool FileState::is_merged(dns::Serial file, const zone::ZoneSource& other) const noexcept {
  return file_serial == file && (!source || same_source(*source, other));
}

Status FileState::take(const JournalRecord& record) {
  if (!file_serial) file_serial = record.from;
  const bool follows = !serial || *serial == record.from;
  if (record.kind != RecordKind::kSource || !serial) serial = record.to;
  switch (record.kind) {
    case RecordKind::kDelta: {
      auto changes = zone::decode_changes(record.payload);
      if (!changes) return pass(changes);
      if (!follows) overlay.lose();
      overlay.updated(steps_of(*changes));
      return {};
    }
    case RecordKind::kEdit: {
      auto edit = decode_file_edit(record.payload);
      if (!edit) return pass(edit);
      file_serial = edit->file_serial;
      source.reset();
      if (!follows) overlay.lose();
      overlay.edited(steps_of(edit->live), steps_of(edit->held));
      return {};
    }
    case RecordKind::kBase:
      file_serial = record.from;
      source.reset();
      overlay.settle();
      return {};
    case RecordKind::kOverlay:
      file_serial = record.from;
      source.reset();
      return decode_overlay(record.payload, overlay);
    case RecordKind::kSource: {
      auto merged = decode_source(record.payload);
      if (!merged) return pass(merged);
      source = *merged;
      return {};
    }
    case RecordKind::kZoneEnd:
      // A snapshot of version 1 says no more about the zone than what it holds.
      file_serial.reset();
      source.reset();
      overlay.lose();
      return {};
    case RecordKind::kGone:
      *this = {};
      return {};
    case RecordKind::kZonePart:
    case RecordKind::kFileEnd:
      return {};
  }
  return {};
}

}  // namespace pando::manager
