#include "manager/journal/segment_reader.h"

#include <algorithm>
#include <utility>

namespace pando::manager {

namespace {
constexpr std::size_t kReadAhead = 256 << 10;

/// Whether `bytes`, which begin at `offset` of a file, have a piece of zeros that may not have been
/// written. The first and the last piece count as far as they belong to `bytes`.
bool has_unwritten_piece(ByteView bytes, std::uint64_t offset) noexcept {
  while (!bytes.empty()) {
    const std::size_t length =
        std::min<std::size_t>(kWrittenPiece - offset % kWrittenPiece, bytes.size());
    const ByteView piece = bytes.first(length);
    if (std::all_of(piece.begin(), piece.end(), [](std::uint8_t b) { return b == 0; })) return true;
    bytes = bytes.subspan(length);
    offset += length;
  }
  return false;
}
}  // namespace

Result<SegmentReader> SegmentReader::open(Files& files, const std::string& path,
                                          std::uint64_t bytes, std::uint64_t synced) {
  auto file = files.open(path, OpenMode::kRead);
  if (!file) return pass(file);
  std::uint8_t head[kSegmentHeaderBytes];
  auto got = (*file)->read_at(0, head);
  if (!got) return pass(got);
  auto header = decode_segment_header({head, *got});
  if (!header) return fail(header.error().code, "{}: {}", path, header.error().text);
  auto size = (*file)->size();
  if (!size) return pass(size);
  SegmentReader reader(std::move(*file), *header, std::min(*size, bytes));
  reader.last_position_ = header->first - 1;
  reader.synced_ = synced;
  reader.is_last_ = synced == 0;
  return reader;
}

/// The stretch [offset, offset + bytes), shorter at the end of the file; valid until the next
/// call.
Result<ByteView> SegmentReader::bytes_at(std::uint64_t offset, std::size_t bytes) {
  const bool inside = offset >= window_at_ && offset + bytes <= window_at_ + window_.size();
  if (!inside) {
    window_.resize(std::max(bytes, kReadAhead));
    auto got = file_->read_at(offset, window_);
    if (!got) return pass(got);
    window_.resize(*got);
    window_at_ = offset;
  }
  const std::size_t skip = static_cast<std::size_t>(offset - window_at_);
  return ByteView(window_).subspan(skip, std::min(bytes, window_.size() - skip));
}

/// The record at `offset`, if a valid one is there.
Result<std::optional<JournalRecord>> SegmentReader::record_at(std::uint64_t offset) {
  auto head = bytes_at(offset, kRecordHeaderBytes);
  if (!head) return pass(head);
  const auto frame = decode_frame(*head);
  if (!frame || frame->position <= last_position_) return std::nullopt;
  if (offset + kRecordHeaderBytes + frame->body_bytes > file_bytes_) return std::nullopt;
  auto whole = bytes_at(offset, kRecordHeaderBytes + frame->body_bytes);
  if (!whole) return pass(whole);
  auto record = decode_record(*whole, header_.nonce);
  if (!record) return std::nullopt;
  return std::optional<JournalRecord>(std::move(*record));
}

Result<bool> SegmentReader::only_zeros_from(std::uint64_t offset) {
  while (offset < file_bytes_) {
    auto bytes = bytes_at(offset, std::min<std::uint64_t>(kReadAhead, file_bytes_ - offset));
    if (!bytes) return pass(bytes);
    if (bytes->empty()) return true;
    if (std::any_of(bytes->begin(), bytes->end(), [](std::uint8_t b) { return b != 0; }))
      return false;
    offset += bytes->size();
  }
  return true;
}

/// The first bytes of the record at `at_`, up to the end of the last one's piece: what follows there
/// was written with them.
Result<ByteView> SegmentReader::pieces_at(std::size_t bytes) {
  const std::uint64_t end = (at_ + bytes + kWrittenPiece - 1) / kWrittenPiece * kWrittenPiece;
  return bytes_at(at_, std::max<std::size_t>(bytes, std::min(end, file_bytes_) - at_));
}

/// Whether all bytes of the record at `at_`, which is not valid, have been written.
Result<bool> SegmentReader::is_written_and_wrong() {
  auto head = pieces_at(kRecordHeaderBytes);
  if (!head) return pass(head);
  if (head->size() < kRecordHeaderBytes || has_unwritten_piece(*head, at_)) return false;
  const auto frame = decode_frame(head->first(kRecordHeaderBytes));
  if (!frame) return true;
  const std::size_t length = kRecordHeaderBytes + frame->body_bytes;
  auto whole = pieces_at(length);
  if (!whole) return pass(whole);
  return whole->size() >= length && !has_unwritten_piece(*whole, at_) &&
         !decode_record(whole->first(length), header_.nonce);
}

/// For a place without a valid record: finds a record behind it that counts, if there is one.
Result<std::optional<JournalRecord>> SegmentReader::skip_damage() {
  const std::uint64_t expected = last_position_ + 1;
  std::optional<std::uint64_t> same;  // the first sound record of the damaged group
  for (std::uint64_t offset = at_ + 8; offset + kRecordHeaderBytes <= file_bytes_; offset += 8) {
    auto found = record_at(offset);
    if (!found) return pass(found);
    if (!*found) continue;
    // Records of the damaged group count only if the group is known to have been synced: a later
    // group proves it, or the next segment.
    if ((*found)->group_first <= expected && (*found)->position > synced_) {
      if (!same) same = offset;
      continue;
    }
    ++damaged_ahead_;
    at_ = same.value_or(offset);
    return same ? record_at(at_) : std::move(found);
  }
  if (!is_last_) return std::nullopt;  // positions tell the rest
  // Behind a first proof, a record that is not whole is damage as well.
  auto damaged = synced_ != 0 ? Result<bool>(true) : is_written_and_wrong();
  if (!damaged) return pass(damaged);
  if (!*damaged) return std::nullopt;
  // Sound records of the last group count then as well.
  ++damaged_ahead_;
  synced_ = UINT64_MAX;
  ends_damaged_ = !same;
  if (!same) return std::nullopt;
  at_ = *same;
  return record_at(at_);
}

/// The next valid record, whether or not its group is whole.
Result<std::optional<SegmentReader::Found>> SegmentReader::read_ahead() {
  if (ended_) return std::nullopt;
  auto record = record_at(at_);
  if (!record) return pass(record);
  if (!*record) {
    auto zeros = only_zeros_from(at_);
    if (!zeros) return pass(zeros);
    torn_ = !*zeros;
    if (torn_) {
      record = skip_damage();
      if (!record) return pass(record);
      torn_ = !record->has_value() && !ends_damaged_;
    }
  }
  if (!*record) {
    ended_ = true;
    return std::nullopt;
  }
  Found found{std::move(**record), at_, damaged_ahead_};
  last_position_ = found.record.position;
  const std::uint64_t body = found.record.zone.size() + 8 + found.record.payload.size();
  at_ += (kRecordHeaderBytes + body + 7) / 8 * 8;
  return std::optional<Found>(std::move(found));
}

/// Reads all records of the next group; none at the end, or when the group's end is torn. When
/// damage hit the group's end instead, a later group proves that the group had been synced.
Status SegmentReader::read_group() {
  for (;;) {
    if (!ahead_) {
      auto found = read_ahead();
      if (!found) return pass(found);
      if (!*found) break;
      ahead_ = std::move(*found);
    }
    if (!ready_.empty() && ahead_->record.group_first != ready_.front().record.group_first)
      return {};
    const bool ends = ahead_->record.ends_group;
    ready_.push_back(std::move(*ahead_));
    ahead_.reset();
    if (ends) return {};
  }
  // The next segment tells that the rest of the group is missing.
  if (ready_.empty() || ready_.back().record.position <= synced_) return {};
  torn_ = true;
  at_ = ready_.front().offset;
  ready_.clear();
  return {};
}

Result<std::optional<JournalRecord>> SegmentReader::next() {
  if (ready_.empty())
    if (auto read = read_group(); !read) return pass(read);
  if (ready_.empty()) {
    // Damage that no record follows: positions do not tell how many records are lost. The record
    // that proves the damage may be of a torn group.
    const bool is_behind_all = damaged_ahead_ != std::exchange(damaged_, damaged_ahead_);
    ends_damaged_ = ends_damaged_ || (is_behind_all && is_last_);
    torn_ = torn_ && !ends_damaged_;
    return std::nullopt;
  }
  Found found = std::move(ready_.front());
  ready_.pop_front();
  last_offset_ = found.offset;
  damaged_ = found.damaged;
  return std::optional<JournalRecord>(std::move(found.record));
}

Result<JournalRecord> read_record(StoreFile& file, std::uint64_t nonce, std::uint64_t offset) {
  Bytes bytes(kRecordHeaderBytes);
  auto got = file.read_at(offset, bytes);
  if (!got) return pass(got);
  const auto frame = *got == bytes.size() ? decode_frame(bytes) : std::nullopt;
  if (!frame) return fail(Errc::kCorrupt, "journal record is gone");
  bytes.resize(kRecordHeaderBytes + frame->body_bytes);
  got = file.read_at(offset, bytes);
  if (!got) return pass(got);
  if (*got != bytes.size()) return fail(Errc::kCorrupt, "journal record is cut off");
  return decode_record(bytes, nonce);
}

}  // namespace pando::manager
