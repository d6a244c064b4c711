#include "manager/journal/record/journal_payload.h"

#include "dns/dnssec/derived_types.h"
#include "manager/support/soa.h"

namespace pando::manager {

namespace {

// Flags of stored dynamic changes.
constexpr std::uint8_t kLost = 1;  // unknown
constexpr std::uint8_t kOwn = 2;   // MergeBase::own
constexpr std::size_t kSourceBytes = 24;
constexpr std::size_t kStampedBytes = 28;
constexpr std::size_t kTimeBytes = 8;
// Flag in the kind of a signed record.
constexpr std::uint8_t kHasPrimarySerial = 0x80;

}  // namespace

//  0             4                        8
//  | file serial | bytes of the first    | changes of the zone | changes held back |
Bytes encode_file_edit(dns::Serial file_serial, const zone::Changeset& live,
                       const zone::Changeset& held) {
  Bytes out;
  append_be32(out, file_serial.value);
  append_be32(out, 0);
  zone::encode(live, out);
  store_be32(out.data() + 4, static_cast<std::uint32_t>(out.size() - 8));
  zone::encode(held, out);
  return out;
}

Result<FileEdit> decode_file_edit(ByteView bytes) {
  if (bytes.size() < 8) return fail(Errc::kCorrupt, "stored file edit is cut off");
  const std::uint32_t length = load_be32(bytes.data() + 4);
  if (length > bytes.size() - 8) return fail(Errc::kCorrupt, "stored file edit is cut off");
  auto live = zone::decode_changes(bytes.subspan(8, length));
  if (!live) return pass(live);
  auto held = zone::decode_changes(bytes.subspan(8 + length));
  if (!held) return pass(held);
  return FileEdit{{load_be32(bytes.data())}, std::move(*live), std::move(*held)};
}

namespace {

//  0                          1
//  | kind, 0 = whole          | payload of that kind |
//  0                          1                  5
//  | kind + kHasPrimarySerial | primary's serial | payload of that kind |
Bytes head_of_signed(std::uint8_t kind, std::optional<dns::Serial> primary_serial) {
  if (!primary_serial) return {kind};
  Bytes head{static_cast<std::uint8_t>(kind | kHasPrimarySerial)};
  append_be32(head, primary_serial->value);
  return head;
}

}  // namespace

void wrap_signed(JournalEntry& entry, std::optional<dns::Serial> primary_serial) {
  const Bytes head = head_of_signed(static_cast<std::uint8_t>(entry.kind), primary_serial);
  entry.payload.insert(entry.payload.begin(), head.begin(), head.end());
  entry.kind = RecordKind::kSigned;
}

JournalEntry signed_entry(const zone::ZoneView& zone, dns::Serial from) {
  const dns::Name apex(zone.apex());
  const zone::RRsetView soa = zone.soa();
  const ByteView rdata = soa.first_rdata();
  zone::Record now{apex, dns::RRType::kSOA, soa.ttl(), Bytes(rdata.begin(), rdata.end())};
  zone::Record before = now;
  set_soa_serial(before.rdata, from);
  Bytes payload = head_of_signed(0, zone::primary_serial(zone));
  zone::encode({apex, {std::move(before)}, {std::move(now)}}, payload);
  return {apex, from, zone.serial(), std::move(payload), RecordKind::kSigned};
}

Result<SignedRecord> decode_signed(ByteView bytes) {
  if (bytes.empty()) return fail(Errc::kCorrupt, "stored signed change is cut off");
  SignedRecord record{std::nullopt, bytes.subspan(1)};
  if ((bytes[0] & kHasPrimarySerial) != 0) {
    if (record.payload.size() < sizeof(std::uint32_t))
      return fail(Errc::kCorrupt, "stored signed change is cut off");
    record.primary_serial = dns::Serial{load_be32(record.payload.data())};
    record.payload = record.payload.subspan(sizeof(std::uint32_t));
  }
  const auto kind = static_cast<std::uint8_t>(bytes[0] & ~kHasPrimarySerial);
  if (kind == 0) return record;
  record.kind = static_cast<RecordKind>(kind);
  if (record.kind != RecordKind::kChangeset && record.kind != RecordKind::kFileEdit &&
      record.kind != RecordKind::kTransfer)
    return fail(Errc::kCorrupt, "stored signed change of kind {}", kind);
  return record;
}

bool is_whole_signing(const JournalRecord& record) noexcept {
  return record.kind == RecordKind::kSigned && !record.payload.empty() &&
         (record.payload[0] & ~kHasPrimarySerial) == 0;
}

bool changes_zone(const JournalRecord& record) noexcept {
  if (record.kind == RecordKind::kChangeset) return true;
  const bool may = record.kind == RecordKind::kFileEdit || record.kind == RecordKind::kTransfer ||
                   record.kind == RecordKind::kSigned;
  return may && !(record.from == record.to);
}

namespace {

Result<zone::Changeset> changes_in(RecordKind kind, ByteView payload) {
  if (kind != RecordKind::kFileEdit) return zone::decode_changes(payload);
  auto edit = decode_file_edit(payload);
  if (!edit) return pass(edit);
  return std::move(edit->live);
}

}  // namespace

RecordChanges without_derived(RecordChanges changes, dns::NameView apex) {
  std::erase_if(changes, [&](const auto& entry) {
    return dns::is_dropped_by_signing(entry.first.type(), entry.first.owner() == apex);
  });
  return changes;
}

Result<zone::Changeset> served_changes(const JournalRecord& record) {
  if (record.kind != RecordKind::kSigned) return changes_in(record.kind, record.payload);
  const auto inner = decode_signed(record.payload);
  if (!inner) return pass(inner);
  return changes_in(inner->kind.value_or(RecordKind::kChangeset), inner->payload);
}

Result<RecordChanges> source_changes(const JournalRecord& record) {
  auto changes = served_changes(record);
  if (!changes) return pass(changes);
  RecordChanges by_record = record_changes_of(std::move(*changes));
  if (record.kind != RecordKind::kSigned) return by_record;
  return without_derived(std::move(by_record), record.zone);
}

//  0       1
//  | flags | records as in the file (removed) and as served (added)
Bytes encode(const dns::Name& zone, const DynamicChanges& dynamic_changes, bool own) {
  Bytes out;
  out.push_back(
      static_cast<std::uint8_t>((dynamic_changes.known() ? 0 : kLost) | (own ? kOwn : 0)));
  append(out, zone::encode(changeset_of(zone, dynamic_changes.entries())));
  return out;
}

Status decode_dynamic_changes(ByteView bytes, DynamicChanges& dynamic_changes) {
  if (bytes.empty()) return fail(Errc::kCorrupt, "stored dynamic changes are cut off");
  auto changes = zone::decode_changes(bytes.subspan(1));
  if (!changes) return pass(changes);
  if ((bytes[0] & kLost) != 0)
    dynamic_changes.lose();
  else
    dynamic_changes.assign(record_changes_of(std::move(*changes)));
  return {};
}

//  0                   8        16     24      28
//  | modification time | bytes | hash | stamp |
Bytes encode(const zone::ZoneFileInfo& source) {
  Bytes out(kSourceBytes);
  store_be64(out.data(), static_cast<std::uint64_t>(source.file_mtime_ns));
  store_be64(out.data() + 8, source.file_bytes);
  store_be64(out.data() + 16, source.hash);
  return out;
}

Bytes encode_stamped(const zone::ZoneFileInfo& source) {
  Bytes out = encode(source);
  append_be32(out, source.stamp);
  return out;
}

Result<zone::ZoneFileInfo> decode_source(ByteView bytes) {
  if (bytes.size() < kSourceBytes) return fail(Errc::kCorrupt, "stored file's identity is cut off");
  return zone::ZoneFileInfo{static_cast<std::int64_t>(load_be64(bytes.data())),
                            load_be64(bytes.data() + 8), load_be64(bytes.data() + 16),
                            bytes.size() < kStampedBytes ? 0 : load_be32(bytes.data() + 24)};
}

bool same_source(const zone::ZoneFileInfo& a, const zone::ZoneFileInfo& b) noexcept {
  if (a.file_bytes != b.file_bytes) return false;
  if (a.hash != 0 && b.hash != 0) return a.hash == b.hash;
  return a.file_mtime_ns == b.file_mtime_ns;
}

bool is_secondary(const zone::ZoneView& zone) {
  const auto settings = zone::decode_zone_settings(zone.settings_bytes());
  return settings && settings->is_secondary;
}

bool is_signed_here(const zone::ZoneView& zone) {
  const auto settings = zone::decode_zone_settings(zone.settings_bytes());
  return settings && settings->is_signed_here;
}

bool may_have_updates(const zone::ZoneView& zone) {
  const auto settings = zone::decode_zone_settings(zone.settings_bytes());
  return !settings || settings->is_secondary || !settings->allow_update.empty();
}

JournalEntry base_entry(const zone::ZoneView& zone) {
  return {dns::Name(zone.apex()), zone.serial(), zone.serial(), {}, RecordKind::kBase};
}

JournalEntry removed_entry(const dns::Name& zone, dns::Serial serial, std::uint64_t time) {
  Bytes payload(kTimeBytes);
  store_be64(payload.data(), time);
  return {zone, serial, serial, std::move(payload), RecordKind::kGone};
}

JournalEntry purged_entry(const dns::Name& zone, dns::Serial serial) {
  return {zone, serial, serial, {}, RecordKind::kGone};
}

std::optional<std::uint64_t> removal_time(const JournalRecord& record) noexcept {
  if (record.kind != RecordKind::kGone || record.payload.size() < kTimeBytes) return std::nullopt;
  return load_be64(record.payload.data());
}

bool is_purge(const JournalRecord& record) noexcept {
  return record.kind == RecordKind::kGone && !removal_time(record);
}

JournalEntry transfer_entry(const zone::ZoneView& zone) {
  const dns::Name apex(zone.apex());
  return {apex, zone.serial(), zone.serial(), zone::encode(zone::Changeset{apex, {}, {}}),
          RecordKind::kTransfer};
}

JournalEntry primary_entry(const dns::Name& zone, dns::Serial serial, bool with_base_file) {
  return {zone, serial, serial, Bytes{with_base_file ? std::uint8_t{1} : std::uint8_t{0}},
          RecordKind::kPrimary};
}

JournalEntry source_entry(const dns::Name& zone, dns::Serial serial,
                          const zone::ZoneFileInfo& source) {
  return {zone, serial, serial, encode(source), RecordKind::kSource};
}

JournalEntry dynamic_changes_entry(const dns::Name& zone, dns::Serial file, dns::Serial serial,
                                   const DynamicChanges& dynamic_changes, bool own) {
  return {zone, file, serial, encode(zone, dynamic_changes, own), RecordKind::kDynamicChanges};
}

bool MergeBase::is_merged(dns::Serial file, const zone::ZoneFileInfo& other) const noexcept {
  return file_serial == file && (!source || same_source(*source, other));
}

bool MergeBase::is_base_file(dns::Serial file, const zone::ZoneFileInfo& other) const noexcept {
  return source && same_source(*source, other) && (!file_serial || *file_serial == file);
}

void MergeBase::lose() {
  dynamic_changes.lose();
  if (own) own->lose();
}

void MergeBase::take_whole(dns::Serial whole) {
  serial = whole;
  set_base_serial({});
  file_serial.reset();
  dynamic_changes.lose();
}

void MergeBase::become_primary(bool with_base_file) {
  if (own && !with_base_file) {
    dynamic_changes = std::move(*own);
    file_serial.reset();
    source.reset();
  }
  own.reset();
}

/// The merge base is a file with serial `file`; earlier knowledge of its file ends.
void MergeBase::set_base_serial(dns::Serial file) {
  file_serial = file;
  source.reset();
  own.reset();
}

Status MergeBase::take_changeset(ByteView payload, bool follows, bool is_signed_here) {
  auto changes = zone::decode_changes(payload);
  if (!changes) return pass(changes);
  const dns::Name apex = changes->zone;
  RecordChanges by_record = record_changes_of(std::move(*changes));
  if (is_signed_here) by_record = without_derived(std::move(by_record), apex);
  if (!follows && !passes_gaps) lose();
  dynamic_changes.updated(by_record);
  if (own) own->updated(by_record);
  return {};
}

/// A transfer ends earlier updates: the zone has the primary's data now. Relative to the merge base
/// a transfer is a changeset like others.
Status MergeBase::take_transfer(ByteView payload, bool follows, bool is_signed_here) {
  auto changes = zone::decode_changes(payload);
  if (!changes) return pass(changes);
  const dns::Name apex = changes->zone;
  RecordChanges by_record = record_changes_of(std::move(*changes));
  if (is_signed_here) by_record = without_derived(std::move(by_record), apex);
  if (!follows) {
    dynamic_changes.lose();
    source.reset();
  }
  dynamic_changes.updated(by_record);
  own.emplace();
  return {};
}

Status MergeBase::take_file_edit(ByteView payload, bool follows, bool is_signed_here) {
  auto edit = decode_file_edit(payload);
  if (!edit) return pass(edit);
  const dns::Name apex = edit->live.zone;
  set_base_serial(edit->file_serial);
  if (!follows && !passes_gaps) dynamic_changes.lose();
  RecordChanges live = record_changes_of(std::move(edit->live));
  if (is_signed_here) live = without_derived(std::move(live), apex);
  dynamic_changes.edited(live, record_changes_of(std::move(edit->held)));
  return {};
}

/// A zone that is signed as a whole has the same source under another serial.
Status MergeBase::take_signed(const JournalRecord& record, bool follows) {
  const auto inner = decode_signed(record.payload);
  if (!inner) return pass(inner);
  if (inner->kind == RecordKind::kFileEdit) return take_file_edit(inner->payload, follows, true);
  if (inner->kind == RecordKind::kTransfer) return take_transfer(inner->payload, follows, true);
  // Records of another signer, which updates have brought, went when the zone was signed here.
  if (!inner->kind && dynamic_changes.known())
    dynamic_changes.assign(without_derived(dynamic_changes.entries(), record.zone));
  return take_changeset(inner->payload, follows, true);
}

Status MergeBase::take_dynamic_changes(const JournalRecord& record) {
  if (!record.payload.empty() && (record.payload[0] & kOwn) != 0)
    return decode_dynamic_changes(record.payload, own.emplace());
  set_base_serial(record.from);
  return decode_dynamic_changes(record.payload, dynamic_changes);
}

/// The zone waits with its dynamic changes. A serial that does not follow proves that records are
/// missing; no later serial of the zone may be after it.
void MergeBase::take_removal(const JournalRecord& record) {
  if (is_purge(record)) {
    *this = {};
    return;
  }
  if (!serial || *serial == record.to) return;
  if (!passes_gaps) lose();
  if (record.to.ahead_of(*serial)) serial = record.to;
}

Status MergeBase::take(const JournalRecord& record) {
  if (record.kind == RecordKind::kGone) {
    take_removal(record);
    return {};
  }
  if (!file_serial) file_serial = record.from;
  const bool follows = !serial || *serial == record.from;
  if (record.kind != RecordKind::kSource || !serial) serial = record.to;
  switch (record.kind) {
    case RecordKind::kChangeset:
      return take_changeset(record.payload, follows, false);
    case RecordKind::kTransfer:
      return take_transfer(record.payload, follows, false);
    case RecordKind::kFileEdit:
      return take_file_edit(record.payload, follows, false);
    case RecordKind::kSigned:
      return take_signed(record, follows);
    case RecordKind::kBase:
      set_base_serial(record.from);
      dynamic_changes.reset();
      return {};
    case RecordKind::kDynamicChanges:
      return take_dynamic_changes(record);
    case RecordKind::kSource: {
      auto merged = decode_source(record.payload);
      if (!merged) return pass(merged);
      source = *merged;
      return {};
    }
    case RecordKind::kPrimary:
      if (record.payload.empty()) return fail(Errc::kCorrupt, "stored change of role is cut off");
      become_primary(record.payload[0] != 0);
      return {};
    case RecordKind::kGone:
      return {};
  }
  return {};
}

}  // namespace pando::manager
