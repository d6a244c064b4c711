#pragma once

#include "manager/journal_format.h"
#include "manager/overlay.h"
#include "zone/changes.h"

/// What journal records carry beside plain differences; docs/journal-format.md has the pictures.
namespace pando::manager {

/// An edited zone file that was merged (RecordKind::kEdit).
struct FileEdit {
  dns::Serial file_serial;  ///< the SOA's in the file
  zone::Changes live;       ///< what changed in the served zone; empty: nothing
  zone::Changes held;       ///< how the file changed where the served zone did not follow
};
Bytes encode(const FileEdit& edit);
Result<FileEdit> decode_file_edit(ByteView bytes);

/// The difference in the served zone that a kDelta or kEdit record stands for.
Result<zone::Changes> served_changes(const JournalRecord& record);

/// A zone's overlay with what is known of its file.
struct FileState {
  Overlay overlay;
  std::optional<dns::Serial> file_serial;  ///< of the file as it was merged last
  std::optional<dns::Serial> serial;       ///< of the last record

  /// Takes the zone's next record, of any kind.
  Status take(const JournalRecord& record);
};
/// Payload of RecordKind::kOverlay; the serials stand in the record itself.
Bytes encode(const dns::Name& zone, const Overlay& overlay);
Status decode_overlay(ByteView bytes, Overlay& overlay);

}  // namespace pando::manager
