#pragma once

#include "manager/journal.h"
#include "manager/overlay.h"
#include "zone/changes.h"
#include "zone/draft.h"

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
  std::optional<zone::ZoneSource> source;  ///< that file's time and size
  std::optional<dns::Serial> serial;       ///< of the last record

  /// Takes the zone's next record, of any kind. A difference that does not start where the one
  /// before ended means that some are missing: the overlay is not known any more.
  Status take(const JournalRecord& record);
  /// Whether the file with `serial` and `other` is the one that was merged last, as far as the
  /// journal can tell.
  [[nodiscard]] bool is_merged(dns::Serial serial, const zone::ZoneSource& other) const noexcept;
};
/// Payload of RecordKind::kOverlay; the serials stand in the record itself.
Bytes encode(const dns::Name& zone, const Overlay& overlay);
Status decode_overlay(ByteView bytes, Overlay& overlay);
/// Payload of RecordKind::kSource.
Bytes encode(const zone::ZoneSource& source);
Result<zone::ZoneSource> decode_source(ByteView bytes);
[[nodiscard]] bool same_source(const zone::ZoneSource& a, const zone::ZoneSource& b) noexcept;

/// Whether a zone without records in a damaged journal may have had some.
[[nodiscard]] bool may_have_updates(const zone::ZoneView& zone);

/// The record that says: the zone's file (or a secondary's copy) is what the zone is now.
[[nodiscard]] JournalEntry base_entry(const zone::ZoneView& zone);
/// Which file was merged last into a zone that has serial `serial` now.
[[nodiscard]] JournalEntry source_entry(const dns::Name& zone, dns::Serial serial,
                                        const zone::ZoneSource& source);
/// The zone's overlay at `serial`, over a file with serial `file`.
[[nodiscard]] JournalEntry overlay_entry(const dns::Name& zone, dns::Serial file,
                                         dns::Serial serial, const Overlay& overlay);

}  // namespace pando::manager
