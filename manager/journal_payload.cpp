#include "manager/journal_payload.h"

namespace pando::manager {

namespace {

constexpr std::uint8_t kLost = 1;  // flag of an overlay: not known

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

Status FileState::take(const JournalRecord& record) {
  if (!file_serial) file_serial = record.from;
  serial = record.to;
  switch (record.kind) {
    case RecordKind::kDelta: {
      auto changes = zone::decode_changes(record.payload);
      if (!changes) return pass(changes);
      overlay.updated(steps_of(*changes));
      return {};
    }
    case RecordKind::kEdit: {
      auto edit = decode_file_edit(record.payload);
      if (!edit) return pass(edit);
      file_serial = edit->file_serial;
      overlay.edited(steps_of(edit->live), steps_of(edit->held));
      return {};
    }
    case RecordKind::kBase:
      file_serial = record.from;
      overlay.settle();
      return {};
    case RecordKind::kOverlay:
      file_serial = record.from;
      return decode_overlay(record.payload, overlay);
    case RecordKind::kZoneEnd:
      // A snapshot of version 1 says no more about the zone than what it holds.
      file_serial.reset();
      overlay.lose();
      return {};
    case RecordKind::kGone:
    case RecordKind::kZonePart:
    case RecordKind::kFileEnd:
      return {};
  }
  return {};
}

}  // namespace pando::manager
