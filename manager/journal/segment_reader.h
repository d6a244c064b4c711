#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "manager/io/store_file.h"
#include "manager/journal/record/journal_format.h"

namespace pando::manager {

/// Media write at least so many bytes as one. A cache line of persistent memory has these; a sector
/// of a disk has more.
inline constexpr std::uint64_t kWrittenPiece = 64;

/// Reads one journal file front to back. A place without a valid record is the end, a torn tail (a
/// group that was never synced), or damage. A record of a *later* group after the place proves
/// damage, since that group was written only after the damaged place had been synced.
///
/// So does a record that was written whole and is wrong all the same: a loss of power leaves zeros
/// where something was not written, in pieces of kWrittenPiece bytes or more.
///
/// The reader continues after damage, where records may belong to other zones. A group whose end
/// is torn has no valid record, however sound each is: the group was written to be there as a
/// whole.
///
/// A read error ends the reading, because acknowledged records may be there. Two places cannot have
/// such records, so an error there is passed over: the space that was never written (see
/// unread_reserve()), and positions above `synced` in a segment that another follows.
class SegmentReader {
 public:
  /// Reads no more than `bytes` of a file that is being written. A group that appears there during
  /// the read would make the place before it look damaged. Positions up to `synced` had been synced,
  /// as the next segment proves: what is sound of a torn group counts there.
  static Result<SegmentReader> open(Files& files, const std::string& path,
                                    std::uint64_t bytes = UINT64_MAX, std::uint64_t synced = 0);

  /// The next valid record; nullopt at the end.
  Result<std::optional<JournalRecord>> next();

  [[nodiscard]] const SegmentHeader& header() const noexcept { return header_; }
  /// Offset after the last valid record, where a torn tail begins.
  [[nodiscard]] std::uint64_t valid_bytes() const noexcept { return at_; }
  /// Offset of the record that next() returned last; see read_record().
  [[nodiscard]] std::uint64_t last_offset() const noexcept { return last_offset_; }
  /// Whether a group that was never synced stood after the last record (known after the end).
  [[nodiscard]] bool torn() const noexcept { return torn_; }
  /// Whether damage stood there instead: nobody knows how many records are lost.
  [[nodiscard]] bool ends_damaged() const noexcept { return ends_damaged_; }
  /// Places skipped so far because they hold damage.
  [[nodiscard]] std::uint32_t damaged_places() const noexcept { return damaged_; }
  /// Bytes up to the first unreadable place after the records; the file's bytes without one.
  [[nodiscard]] std::uint64_t readable_bytes() const noexcept {
    return unread_.empty() ? file_bytes_ : unread_.front();
  }
  /// Unreadable pages after the last record, by their offsets (known after the end). They have no
  /// acknowledged record, because a long stretch of zeros lies before them: records are synced in
  /// order without gaps, and none has such a stretch.
  [[nodiscard]] const std::vector<std::uint64_t>& unread_reserve() const noexcept {
    return unread_;
  }

 private:
  SegmentReader(std::unique_ptr<StoreFile> file, SegmentHeader header, std::uint64_t bytes)
      : file_(std::move(file)), header_(header), file_bytes_(bytes), at_(kSegmentHeaderBytes) {}

  Result<ByteView> bytes_at(std::uint64_t offset, std::size_t bytes);
  struct Found {
    JournalRecord record;
    std::uint64_t offset = 0;
    std::uint32_t damaged = 0;  // places before it
  };
  Result<std::optional<JournalRecord>> record_at(std::uint64_t offset);
  Result<std::optional<Found>> read_ahead();
  Status read_group();
  Result<std::optional<JournalRecord>> find_record();
  Result<std::optional<JournalRecord>> skip_damage();
  Status read_window(std::uint64_t offset, std::size_t bytes);
  Result<bool> only_zeros_from(std::uint64_t offset);
  Result<std::uint64_t> pass_over(const Error& why);
  Result<bool> is_reserve(std::uint64_t offset);
  [[nodiscard]] bool is_behind_unread(std::uint64_t offset) const noexcept {
    return !unread_.empty() && offset > unread_.front();
  }
  [[nodiscard]] bool has_all_synced() const noexcept {
    return !is_last_ && last_position_ >= synced_;
  }
  Result<ByteView> pieces_at(std::size_t bytes);
  Result<bool> is_written_and_wrong();

  std::unique_ptr<StoreFile> file_;
  SegmentHeader header_;
  std::uint64_t file_bytes_;
  std::uint64_t synced_ = 0;
  bool is_last_ = true;  // no later segment tells where the synced part ends
  std::uint64_t at_;
  std::uint64_t last_position_ = 0;
  std::uint64_t last_offset_ = 0;
  std::uint32_t damaged_ = 0;
  std::deque<Found> ready_;     // records of one group, not returned yet
  std::optional<Found> ahead_;  // the first record of the next group
  std::uint32_t damaged_ahead_ = 0;
  bool torn_ = false;
  bool ends_damaged_ = false;
  bool ended_ = false;
  Bytes window_;  // a stretch of the file, so that small records cost no system call each
  std::uint64_t window_at_ = 0;
  std::vector<std::uint64_t> unread_;
};

/// Reads one record at an offset found before.
Result<JournalRecord> read_record(StoreFile& file, std::uint64_t nonce, std::uint64_t offset);

}  // namespace pando::manager
