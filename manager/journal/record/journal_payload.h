#pragma once

#include "manager/journal/record/dynamic_changes.h"
#include "manager/journal/record/journal_format.h"
#include "zone/draft/draft.h"
#include "zone/record/changeset.h"

/// Payloads of journal records other than plain changesets; docs/formats/journal.md has the
/// pictures.
namespace pando::manager {

/// An edited zone file that was merged (RecordKind::kFileEdit).
struct FileEdit {
  dns::Serial file_serial;  ///< serial of the file's SOA
  zone::Changeset live;     ///< changes of the served zone; may be empty
  zone::Changeset held;     ///< changes of the file that the served zone did not follow
};
Bytes encode_file_edit(dns::Serial file_serial, const zone::Changeset& live,
                       const zone::Changeset& held);
Result<FileEdit> decode_file_edit(ByteView bytes);

/// A change of a zone that this server signs (RecordKind::kSigned). It is a record of another kind,
/// whose changeset includes what the signer made. Records of the signer
/// (dns/dnssec/derived_types.h) are no dynamic changes.
struct SignedRecord {
  /// kChangeset, kFileEdit or kTransfer; nullopt: the zone was signed as a whole. Then the payload is
  /// the changeset of the SOA, and the other records are in no journal: they are made anew.
  std::optional<RecordKind> kind;
  ByteView payload;
  /// The serial that the zone's data have at the primary after this record.
  std::optional<dns::Serial> primary_serial = std::nullopt;
};
/// Makes a record of kind kSigned of another one.
void wrap_signed(JournalEntry& entry, std::optional<dns::Serial> primary_serial = std::nullopt);
/// Records that `zone`, which had serial `from`, was signed as a whole. With `from` = its serial the
/// record leads from no other data to these: a primary has sent them.
[[nodiscard]] JournalEntry signed_entry(const zone::ZoneView& zone, dns::Serial from);
/// The result refers to `bytes`. kCorrupt.
Result<SignedRecord> decode_signed(ByteView bytes);
/// Whether the record tells that the whole zone was signed.
[[nodiscard]] bool is_whole_signing(const JournalRecord& record) noexcept;

/// Whether a record changes the served zone.
[[nodiscard]] bool changes_zone(const JournalRecord& record) noexcept;
/// The changeset of a record that changes the served zone.
Result<zone::Changeset> served_changes(const JournalRecord& record);
/// The same without the records that a signer of this server made.
Result<RecordChanges> source_changes(const JournalRecord& record);

/// A zone's merge base: the file from which the journal leads to the served zone, and the dynamic
/// changes since. The file is the one merged last, or a secondary's copy.
struct MergeBase {
  DynamicChanges
      dynamic_changes;  ///< since the merge base's file: by updates, and by IXFR after the copy
  std::optional<dns::Serial> file_serial;    ///< of the file merged last
  std::optional<zone::ZoneFileInfo> source;  ///< time, size and hash of that file
  std::optional<dns::Serial> serial;         ///< after the last record
  /// For a zone sent by a primary, wholly or in part: the changes by updates since then.
  std::optional<DynamicChanges> own = std::nullopt;
  /// Ignores gaps: the dynamic changes are computed from the surviving records.
  bool passes_gaps = false;

  /// Takes the zone's next record, of any kind. A changeset that does not start where the last one
  /// ended proves that records are missing: the dynamic changes become unknown.
  Status take(const JournalRecord& record);
  /// Begins with a whole zone at `whole`, from a journal snapshot. The merge base is unknown until
  /// the next record tells it.
  void take_whole(dns::Serial whole);
  /// Marks the dynamic changes as unknown, since records are missing.
  void lose();
  /// Whether `other`, with that serial, is the merge base's file. A file of another serial than the
  /// dynamic changes begin at does not count: changesets came in while the copy was written.
  [[nodiscard]] bool is_base_file(dns::Serial serial,
                                  const zone::ZoneFileInfo& other) const noexcept;
  /// A zone fed by transfers has a file of its own from here on. With the merge base's file the
  /// dynamic changes stay as they are. Another file replaces all data of the primary, and updates
  /// alone stay.
  void become_primary(bool with_base_file);
  /// Whether the file with `serial` and `other` is the one that was merged last, as far as the
  /// journal can tell.
  [[nodiscard]] bool is_merged(dns::Serial serial, const zone::ZoneFileInfo& other) const noexcept;

 private:
  void take_removal(const JournalRecord& record);
  Status take_changeset(ByteView payload, bool follows, bool is_signed_here);
  Status take_transfer(ByteView payload, bool follows, bool is_signed_here);
  Status take_file_edit(ByteView payload, bool follows, bool is_signed_here);
  Status take_signed(const JournalRecord& record, bool follows);
  Status take_dynamic_changes(const JournalRecord& record);
  void set_base_serial(dns::Serial file);
};
/// Payload of RecordKind::kDynamicChanges; the serials are in the record itself. `own`: the changes
/// are those of MergeBase::own.
Bytes encode(const dns::Name& zone, const DynamicChanges& dynamic_changes, bool own = false);
Status decode_dynamic_changes(ByteView bytes, DynamicChanges& dynamic_changes);
/// Payload of RecordKind::kSource.
Bytes encode(const zone::ZoneFileInfo& source);
/// The same with the file's stamp, for dumps. A journal has no use for the stamp, which is
/// worthless on another disk.
Bytes encode_stamped(const zone::ZoneFileInfo& source);
/// Decodes the payload of either.
Result<zone::ZoneFileInfo> decode_source(ByteView bytes);
/// Compares sizes and hashes; times instead, where a hash is unknown.
[[nodiscard]] bool same_source(const zone::ZoneFileInfo& a, const zone::ZoneFileInfo& b) noexcept;

[[nodiscard]] bool is_secondary(const zone::ZoneView& zone);
/// Whether this server makes the zone's signatures: `zones[].dnssec`.
[[nodiscard]] bool is_signed_here(const zone::ZoneView& zone);
/// The changes without what a signer makes. Type and place decide, never a key: a record then means
/// the same under other keys.
[[nodiscard]] RecordChanges without_derived(RecordChanges changes, dns::NameView apex);
/// Whether a zone without records in a damaged journal may have had some.
[[nodiscard]] bool may_have_updates(const zone::ZoneView& zone);

/// The record that the zone's file (or a secondary's copy) equals the zone now.
[[nodiscard]] JournalEntry base_entry(const zone::ZoneView& zone);
/// The record that the zone left the configuration at `time` (seconds since 1970, never 0). Its
/// earlier records are kept: they count again when the zone comes back.
[[nodiscard]] JournalEntry removed_entry(const dns::Name& zone, dns::Serial serial,
                                         std::uint64_t time);
/// The record that the zone's earlier records concern nobody any more.
[[nodiscard]] JournalEntry purged_entry(const dns::Name& zone, dns::Serial serial);
/// The time in a removed_entry(); nullopt for any other record.
[[nodiscard]] std::optional<std::uint64_t> removal_time(const JournalRecord& record) noexcept;
/// Whether the record is a purged_entry().
[[nodiscard]] bool is_purge(const JournalRecord& record) noexcept;
/// The record that a primary has sent the whole zone.
[[nodiscard]] JournalEntry transfer_entry(const zone::ZoneView& zone);
/// The record of MergeBase::become_primary(), for a zone that has serial `serial` now.
[[nodiscard]] JournalEntry primary_entry(const dns::Name& zone, dns::Serial serial,
                                         bool with_base_file);
/// The record of the file merged last, for a zone that has serial `serial` now.
[[nodiscard]] JournalEntry source_entry(const dns::Name& zone, dns::Serial serial,
                                        const zone::ZoneFileInfo& source);
/// The record of the zone's dynamic changes at `serial`, over a file with serial `file`.
[[nodiscard]] JournalEntry dynamic_changes_entry(const dns::Name& zone, dns::Serial file,
                                                 dns::Serial serial,
                                                 const DynamicChanges& dynamic_changes,
                                                 bool own = false);

}  // namespace pando::manager
