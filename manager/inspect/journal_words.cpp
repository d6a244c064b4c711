#include "manager/inspect/journal_words.h"

#include <algorithm>
#include <vector>

#include "dns/rdata/rdata.h"
#include "manager/journal/record/journal_payload.h"

namespace pando::manager {

namespace {

std::string_view kind_word(RecordKind kind) {
  switch (kind) {
    case RecordKind::kChangeset:
      return "changeset";
    case RecordKind::kFileEdit:
      return "file-edit";
    case RecordKind::kBase:
      return "base";
    case RecordKind::kGone:
      return "gone";
    case RecordKind::kDynamicChanges:
      return "dynamic-changes";
    case RecordKind::kSource:
      return "source";
    case RecordKind::kTransfer:
      return "transfer";
    case RecordKind::kPrimary:
      return "primary";
    case RecordKind::kSigned:
      return "signed";
  }
  return "unknown";
}

std::vector<ipc::RecordRow> record_rows(const std::vector<zone::Record>& records, std::size_t most) {
  std::vector<ipc::RecordRow> rows;
  for (std::size_t i = 0; i < std::min(most, records.size()); ++i) {
    const zone::Record& record = records[i];
    rows.push_back({dns::to_text(record.owner), record.ttl.seconds, dns::to_text(record.type),
                    dns::rdata_to_text(record.type, record.rdata)});
  }
  return rows;
}

class Describer {
 public:
  Describer(const JournalRecord& record, std::size_t rows) : record_(record), rows_(rows) {}

  ipc::JournalRecordRow describe() {
    row_.position = record_.position;
    row_.zone = dns::to_text(record_.zone);
    row_.kind = kind_word(record_.kind);
    row_.from = record_.from.value;
    row_.to = record_.to.value;
    if (const Status taken = take_payload(); !taken)
      row_.note = fmt::format("cannot be decoded: {}", taken.error().text);
    return std::move(row_);
  }

 private:
  Status take_payload() {
    switch (record_.kind) {
      case RecordKind::kChangeset:
        return take_changes(record_.payload);
      case RecordKind::kTransfer:
        if (record_.from == record_.to) row_.note = "all of the zone was transferred";
        return record_.payload.empty() ? Status() : take_changes(record_.payload);
      case RecordKind::kFileEdit:
        return take_edit(record_.payload);
      case RecordKind::kBase:
        row_.note = "the zone's file has the zone as it is";
        return {};
      case RecordKind::kGone:
        return take_removal();
      case RecordKind::kDynamicChanges:
        return take_dynamic_changes();
      case RecordKind::kSource:
        return take_source();
      case RecordKind::kPrimary:
        row_.note = "a zone that transfers fed has a file of its own now";
        return {};
      case RecordKind::kSigned:
        return take_signed();
    }
    return {};
  }

  Status take_changes(ByteView payload) {
    const auto changes = zone::decode_changes(payload);
    if (!changes) return pass(changes);
    show(*changes);
    return {};
  }

  void show(const zone::Changeset& changes) {
    row_.removed_count = changes.removed.size();
    row_.added_count = changes.added.size();
    row_.removed = record_rows(changes.removed, rows_);
    row_.added = record_rows(changes.added, rows_);
    row_.by = changes.author.name;
    row_.client = changes.author.client;
  }

  Status take_signed() {
    const auto inner = decode_signed(record_.payload);
    if (!inner) return pass(inner);
    if (inner->kind == RecordKind::kFileEdit) return take_edit(inner->payload);
    row_.note = inner->kind ? "with the signer's records" : "the whole zone was signed";
    if (inner->primary_serial)
      row_.note += fmt::format(", serial {} of the primary", inner->primary_serial->value);
    return take_changes(inner->payload);
  }

  Status take_edit(ByteView payload) {
    const auto edit = decode_file_edit(payload);
    if (!edit) return pass(edit);
    row_.note = fmt::format("an edited file with serial {} was merged", edit->file_serial.value);
    if (!edit->held.empty())
      row_.note += fmt::format("; the zone did not follow {} removed and {} added records",
                               edit->held.removed.size(), edit->held.added.size());
    show(edit->live);
    return {};
  }

  Status take_removal() {
    row_.time = removal_time(record_).value_or(0);
    row_.note = row_.time != 0 ? "the zone left the configuration; earlier records wait"
                               : "earlier records of the zone concern nobody any more";
    return {};
  }

  /// The first byte has flags: docs/formats/journal.md.
  Status take_dynamic_changes() {
    constexpr std::uint8_t kUnknown = 1;
    constexpr std::uint8_t kSinceTransfer = 2;
    if (record_.payload.empty()) return fail(Errc::kCorrupt, "cut off");
    const std::uint8_t flags = record_.payload[0];
    row_.note = fmt::format("changes over a file with serial {}", record_.from.value);
    if ((flags & kUnknown) != 0) row_.note += ", unknown";
    if ((flags & kSinceTransfer) != 0) row_.note += ", since the last transfer only";
    return take_changes(ByteView(record_.payload).subspan(1));
  }

  Status take_source() {
    const auto source = decode_source(record_.payload);
    if (!source) return pass(source);
    constexpr std::int64_t kNsPerSecond = 1'000'000'000;
    row_.note = fmt::format("the merge base is a file of {} bytes, written at {} s, with hash {:016x}",
                            source->file_bytes, source->file_mtime_ns / kNsPerSecond,
                            source->hash);
    return {};
  }

  const JournalRecord& record_;
  std::size_t rows_;
  ipc::JournalRecordRow row_;
};

std::size_t rows_bytes(const std::vector<ipc::RecordRow>& rows) noexcept {
  constexpr std::size_t kMembers = 64;  // names of members, quotes and the TTL
  std::size_t bytes = 0;
  for (const ipc::RecordRow& row : rows)
    bytes += row.owner.size() + row.type.size() + row.rdata.size() + kMembers;
  return bytes;
}

}  // namespace

ipc::JournalRecordRow words_of(const JournalRecord& record, std::size_t rows) {
  return Describer(record, rows).describe();
}

std::size_t text_bytes(const ipc::JournalRecordRow& row) noexcept {
  constexpr std::size_t kMembers = 200;
  return row.zone.size() + row.note.size() + rows_bytes(row.removed) + rows_bytes(row.added) +
         kMembers;
}

}  // namespace pando::manager
