#pragma once

#include "manager/journal/dynamic_changes.h"
#include "manager/journal/journal.h"
#include "zone/build/draft.h"
#include "zone/record/changeset.h"

/// What journal records carry beside plain differences; docs/journal-format.md has the pictures.
namespace pando::manager {

/// An edited zone file that was merged (RecordKind::kEdit).
struct FileEdit {
  dns::Serial file_serial;  ///< the SOA's in the file
  zone::Changeset live;     ///< what changed in the served zone; empty: nothing
  zone::Changeset held;     ///< how the file changed where the served zone did not follow
};
Bytes encode(const FileEdit& edit);
/// The same of parts that are elsewhere.
Bytes encode_file_edit(dns::Serial file_serial, const zone::Changeset& live,
                       const zone::Changeset& held);
Result<FileEdit> decode_file_edit(ByteView bytes);

/// Whether a record stands for a difference in the served zone.
[[nodiscard]] bool changes_zone(const JournalRecord& record) noexcept;
/// That difference; `record` is one of them.
Result<zone::Changeset> served_changes(const JournalRecord& record);

/// A zone's overlay with what is known of its file. The *noted* file is the one from which the
/// journal leads to what is served: merged last, or a secondary's copy.
struct MergeBase {
  DynamicChanges overlay;  ///< over the noted file: what came by update, and by IXFR after the copy
  std::optional<dns::Serial> file_serial;    ///< of the file as it was merged last
  std::optional<zone::ZoneFileInfo> source;  ///< that file's time, size and hash
  std::optional<dns::Serial> serial;         ///< of the last record
  /// Of a zone that a primary has sent, wholly or in part: what came by update since then.
  std::optional<DynamicChanges> own = std::nullopt;

  /// Takes the zone's next record, of any kind. A difference that does not start where the one
  /// before ended means that some are missing: the overlay is not known any more.
  Status take(const JournalRecord& record);
  /// Records are missing.
  void lose();
  /// Whether `other`, with that serial, is the noted file. One of another serial than the overlay
  /// begins at is none: a copy that was written while differences came in.
  [[nodiscard]] bool is_noted(dns::Serial serial, const zone::ZoneFileInfo& other) const noexcept;
  /// A zone that transfers fed has a file of its own from here on. With the noted one it goes on as
  /// it is; another one has the word over all that a primary sent, and updates alone stay.
  void become_primary(bool with_noted_file);
  /// Whether the file with `serial` and `other` is the one that was merged last, as far as the
  /// journal can tell.
  [[nodiscard]] bool is_merged(dns::Serial serial, const zone::ZoneFileInfo& other) const noexcept;

 private:
  Status take_delta(const JournalRecord& record, bool follows);
  Status take_transfer(const JournalRecord& record, bool follows);
  Status take_edit(const JournalRecord& record, bool follows);
  Status take_overlay(const JournalRecord& record);
  void settle(dns::Serial file);
};
/// Payload of RecordKind::kOverlay; the serials stand in the record itself. `own`: it is
/// MergeBase::own.
Bytes encode(const dns::Name& zone, const DynamicChanges& overlay, bool own = false);
Status decode_overlay(ByteView bytes, DynamicChanges& overlay);
/// Payload of RecordKind::kSource.
Bytes encode(const zone::ZoneFileInfo& source);
/// The same with the file's stamp, for dumps: a journal has no use for it, as it is worth nothing
/// on another disk. Earlier builds pass it over.
Bytes encode_stamped(const zone::ZoneFileInfo& source);
/// Of either.
Result<zone::ZoneFileInfo> decode_source(ByteView bytes);
/// By their hashes; by time and size where one is not known.
[[nodiscard]] bool same_source(const zone::ZoneFileInfo& a, const zone::ZoneFileInfo& b) noexcept;

/// The file that a zone in the store was loaded from, merged with last, or written to.
[[nodiscard]] zone::ZoneFileInfo noted_source(const zone::ZoneView& zone);

[[nodiscard]] bool is_secondary(const zone::ZoneView& zone);
/// Whether a zone without records in a damaged journal may have had some.
[[nodiscard]] bool may_have_updates(const zone::ZoneView& zone);

/// The record that says: the zone's file (or a secondary's copy) is what the zone is now.
[[nodiscard]] JournalEntry base_entry(const zone::ZoneView& zone);
/// The record that says: all of the zone is what a primary sent.
[[nodiscard]] JournalEntry transfer_entry(const zone::ZoneView& zone);
/// The record of MergeBase::become_primary(), of a zone that has serial `serial` now.
[[nodiscard]] JournalEntry primary_entry(const dns::Name& zone, dns::Serial serial,
                                         bool with_noted_file);
/// Which file was merged last into a zone that has serial `serial` now.
[[nodiscard]] JournalEntry source_entry(const dns::Name& zone, dns::Serial serial,
                                        const zone::ZoneFileInfo& source);
/// The zone's overlay at `serial`, over a file with serial `file`.
[[nodiscard]] JournalEntry overlay_entry(const dns::Name& zone, dns::Serial file,
                                         dns::Serial serial, const DynamicChanges& overlay,
                                         bool own = false);

}  // namespace pando::manager
