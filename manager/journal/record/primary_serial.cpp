#include "manager/journal/record/primary_serial.h"

#include "manager/journal/record/journal_payload.h"

namespace pando::manager {

void PrimarySerial::begin(dns::Serial served, std::optional<dns::Serial> primary) noexcept {
  served_ = served;
  primary_ = primary;
}

void PrimarySerial::take(const JournalRecord& record) {
  switch (record.kind) {
    case RecordKind::kSigned:
      return take_signed(record);
    case RecordKind::kTransfer:
      // A zone sent whole has a record before this one that tells its serials.
      return keep_if(!changes_zone(record) && record.to == served_);
    case RecordKind::kChangeset:
    case RecordKind::kFileEdit:
    case RecordKind::kPrimary:
    case RecordKind::kGone:
      return primary_.reset();
    case RecordKind::kBase:
    case RecordKind::kDynamicChanges:
    case RecordKind::kSource:
      break;
  }
}

/// Renewed signatures move our serial alone.
void PrimarySerial::take_signed(const JournalRecord& record) {
  const auto inner = decode_signed(record.payload);
  if (inner && inner->primary_serial)
    primary_ = inner->primary_serial;
  else
    keep_if(inner && inner->kind == RecordKind::kChangeset && record.from == served_);
  served_ = record.to;
}

std::optional<dns::Serial> PrimarySerial::at(dns::Serial served) const noexcept {
  return served == served_ ? primary_ : std::nullopt;
}

}  // namespace pando::manager
