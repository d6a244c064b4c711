#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"
#include "dns/name.h"
#include "dns/types.h"

/// The names and bytes of journal files; docs/formats/journal.md has the pictures and the reasons.
namespace pando::manager {

inline constexpr std::uint32_t kJournalVersion = 3;
/// Files of this version are read, too: their changesets have no author.
inline constexpr std::uint32_t kOldestJournalVersion = 2;
inline constexpr std::size_t kSegmentHeaderBytes = 64;
inline constexpr std::size_t kRecordHeaderBytes = 40;
/// Limit of one record's body. A whole zone is split into parts far below the limit. The changeset
/// of an edited file may be large, but a length above the limit is a broken field rather than data.
inline constexpr std::uint32_t kMaxRecordBody = 1U << 30;

/// First bytes of each segment.
struct SegmentHeader {
  std::uint64_t first = 0;  ///< position of its first record
  std::uint64_t void_from =
      0;                    ///< earlier segments' records at [void_from, first) never took place
  std::uint64_t nonce = 0;  ///< seed of the records' checksums: a reused block never matches
  std::array<std::uint64_t, 2> identity{};  ///< the journal's (shm::StoreOwner); zeros: not known
};

enum class RecordKind : std::uint8_t {
  kChangeset = 1,  ///< an update: zone::encode(Changeset) from one serial to the next
  kFileEdit = 5,  ///< an edited zone file was merged: FileEdit
  kBase = 6,      ///< the file, with serial `from`, holds exactly version `to`; no payload
  kGone = 7,      ///< the zone left the configuration: u64 time, or empty: earlier records are void
  kDynamicChanges = 8,  ///< the zone's dynamic changes at `to`, over a file with serial `from`
  kSource = 9,          ///< the merge base's time, size and hash, when the zone had serial `to`
  kTransfer = 10,       ///< a transfer: zone::encode(Changeset), empty for a zone sent whole
  kPrimary = 11,  ///< a zone fed by transfers is a primary zone now: u8, 1 = with its merge base
  kSigned = 12,   ///< a change of a zone that this server signs: see SignedRecord
};

struct JournalRecord {
  std::uint64_t position = 0;
  std::uint64_t group_first = 0;  ///< first position of the group that was synced as one
  RecordKind kind = RecordKind::kChangeset;
  dns::Name zone;
  dns::Serial from;
  dns::Serial to;
  Bytes payload;
  bool ends_group = true;  ///< the last record of its group
};

/// One record to append; the journal assigns its position.
struct JournalEntry {
  dns::Name zone;
  dns::Serial from;
  dns::Serial to;
  Bytes payload;
  RecordKind kind = RecordKind::kChangeset;
};

/// kSegmentHeaderBytes bytes.
Bytes encode_segment_header(const SegmentHeader& header);
/// kCorrupt: no journal file, or damaged; kLayout: an intact file of another format or version.
Result<SegmentHeader> decode_segment_header(ByteView bytes);

/// Appends one record, padded to 8 bytes.
void append_record(Bytes& out, const JournalRecord& record, std::uint64_t nonce);

/// Fields of a record's first kRecordHeaderBytes, whose own check is right; nullopt: they are not.
struct RecordFrame {
  std::uint32_t body_bytes = 0;
  std::uint64_t position = 0;
  std::uint64_t group_first = 0;
  RecordKind kind = RecordKind::kChangeset;
};
std::optional<RecordFrame> decode_frame(ByteView header) noexcept;

/// Checks and takes apart a whole record (header and body, padding allowed after it).
Result<JournalRecord> decode_record(ByteView bytes, std::uint64_t nonce);

// Names of the files in the journal's folder.

inline constexpr std::string_view kSegmentSuffix = ".journal";
inline constexpr std::string_view kSnapshotSuffix = ".snapshot";
/// Suffix of a file that is being written, after its name.
inline constexpr std::string_view kPartialSuffix = ".partial";
/// Suffix of a segment that is kept for its damaged header, after its name.
inline constexpr std::string_view kDamagedSuffix = ".damaged";

/// Suffix of a replaced file that is kept, since a part of it could not be read.
inline constexpr std::string_view kUnreadSuffix = ".unread";
/// While a file of this name is there, replaced files are kept.
inline constexpr std::string_view kKeepName = "keep-replaced";

/// 0xa1 and kSegmentSuffix → "00000000000000a1.journal".
[[nodiscard]] std::string journal_file_name(std::uint64_t number, std::string_view suffix);

/// "00000000000000a1.journal" and kSegmentSuffix → 0xa1; nullopt for names of another form.
[[nodiscard]] std::optional<std::uint64_t> journal_file_number(std::string_view name,
                                                               std::string_view suffix);

/// "00000000000000a1.journal.damaged" or "00000000000000a1.journal.damaged.2" → 0xa1.
[[nodiscard]] std::optional<std::uint64_t> damaged_file_number(std::string_view name);

}  // namespace pando::manager
