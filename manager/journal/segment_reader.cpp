#include "manager/journal/segment_reader.h"

#include <algorithm>
#include <utility>

namespace pando::manager {

namespace {
constexpr std::size_t kReadAhead = 256 << 10;
/// The kernel reads files in such pages, so one unreadable sector takes its page along.
constexpr std::uint64_t kPage = 4096;
/// Zeros directly after the last record show that no group follows, because a group begins with a
/// header. One page of them may be a fault of the medium; two are none.
constexpr std::uint64_t kEmptyBehindRecord = 2 * kPage;
/// No written record has as many zeros in one stretch: RDATA have 65,535 bytes at most, and other
/// data lie between two of them.
constexpr std::uint64_t kMoreZerosThanRecords = 128 << 10;
/// A failing disk takes seconds for each unreadable page, and a start waits for that.
constexpr std::size_t kMaxUnread = 32;

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

/// Fills the window from `offset` on. An unreadable page ends the window, because the bytes before
/// the page count; an error concerns one of the first `bytes`.
Status SegmentReader::read_window(std::uint64_t offset, std::size_t bytes) {
  const std::uint64_t rest = file_bytes_ - std::min(file_bytes_, offset);
  window_.resize(std::min<std::uint64_t>(std::max(bytes, kReadAhead), rest));
  window_at_ = offset;
  auto got = file_->read_at(offset, window_);
  std::size_t read = got.value_or(0);
  while (!got && read < window_.size()) {
    const std::size_t length =
        std::min<std::size_t>(kPage - (offset + read) % kPage, window_.size() - read);
    auto page = file_->read_at(offset + read, std::span(window_).subspan(read, length));
    read += page.value_or(0);
    if (page && *page == length) continue;
    got = std::move(page);
    break;
  }
  const bool reached_end = got.has_value() || read == window_.size();
  window_.resize(read);
  return reached_end || read >= bytes ? Status() : Status(pass(got));
}

/// The stretch [offset, offset + bytes), shorter at the end of the file; valid until the next
/// call.
Result<ByteView> SegmentReader::bytes_at(std::uint64_t offset, std::size_t bytes) {
  const bool inside = offset >= window_at_ && offset + bytes <= window_at_ + window_.size();
  if (!inside)
    if (auto read = read_window(offset, bytes); !read) return pass(read);
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

/// Passes over the page at which the window ended with the error `why`. Returns the offset after
/// the page; the error, if an acknowledged record may be there.
Result<std::uint64_t> SegmentReader::pass_over(const Error& why) {
  const std::uint64_t page = window_at_ + window_.size();
  auto reserve = unread_.empty() ? is_reserve(page) : Result<bool>(true);
  if (!reserve) return pass(reserve);
  if (!*reserve || unread_.size() == kMaxUnread) return pass(why);
  unread_.push_back(page);
  return (page / kPage + 1) * kPage;
}

/// Whether `offset` lies after all that has been synced: between the last record and there is a
/// stretch of zeros that synced records do not have.
Result<bool> SegmentReader::is_reserve(std::uint64_t offset) {
  std::uint64_t zeros_from = at_;
  const auto is_long = [&](std::uint64_t end) {
    return end - zeros_from >= (zeros_from == at_ ? kEmptyBehindRecord : kMoreZerosThanRecords);
  };
  for (std::uint64_t place = at_; place < offset;) {
    auto bytes = bytes_at(place, std::min<std::uint64_t>(kReadAhead, offset - place));
    if (!bytes) return pass(bytes);
    if (bytes->empty()) return false;
    for (std::size_t i = 0; i < bytes->size(); ++i) {
      if ((*bytes)[i] == 0) continue;
      if (is_long(place + i)) return true;
      zeros_from = place + i + 1;
    }
    place += bytes->size();
  }
  return is_long(offset);
}

/// Whether all that can be read from `offset` on is zeros. Fails if an acknowledged record may be
/// in a part that cannot be read.
Result<bool> SegmentReader::only_zeros_from(std::uint64_t offset) {
  unread_.clear();
  while (offset < file_bytes_) {
    auto bytes = bytes_at(offset, 1);
    if (!bytes) {
      auto behind = pass_over(bytes.error());
      if (!behind) return pass(behind);
      offset = *behind;
      continue;
    }
    if (bytes->empty()) return true;
    const ByteView ahead = ByteView(window_).subspan(offset - window_at_);
    if (std::any_of(ahead.begin(), ahead.end(), [](std::uint8_t b) { return b != 0; }))
      return false;
    offset += ahead.size();
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

/// For a place without a valid record: finds a record after it that counts, if there is one.
Result<std::optional<JournalRecord>> SegmentReader::skip_damage() {
  const std::uint64_t expected = last_position_ + 1;
  std::optional<std::uint64_t> same;  // the first sound record of the damaged group
  std::optional<Error> unread;
  unread_.clear();
  for (std::uint64_t offset = at_ + 8; offset + kRecordHeaderBytes <= file_bytes_; offset += 8) {
    auto found = record_at(offset);
    if (!found) {
      unread = found.error();
      const bool is_in_body = window_at_ + window_.size() >= offset + kRecordHeaderBytes;
      auto behind = is_in_body ? Result<std::uint64_t>(pass(found)) : pass_over(found.error());
      if (!behind) return pass(behind);
      offset = *behind - 8;
      continue;
    }
    if (!*found) continue;
    // Records of the damaged group count only if the group is known to have been synced: a later
    // group proves it, or the next segment.
    if ((*found)->group_first <= expected && (*found)->position > synced_) {
      if (!same) same = offset;
      continue;
    }
    // So the place before it had been synced, and an unreadable part of it may be sound.
    if (is_behind_unread(offset)) return pass(*unread);
    ++damaged_ahead_;
    at_ = same.value_or(offset);
    return same ? record_at(at_) : std::move(found);
  }
  if (!is_last_) return std::nullopt;  // positions show the rest
  // After a first proof, a record that is not whole is damage as well.
  auto damaged = synced_ != 0 ? Result<bool>(true) : is_written_and_wrong();
  if (!damaged) return pass(damaged);
  if (!*damaged) return std::nullopt;
  if (same && is_behind_unread(*same)) return pass(*unread);
  // Sound records of the last group count then as well.
  ++damaged_ahead_;
  synced_ = UINT64_MAX;
  ends_damaged_ = !same;
  if (!same) return std::nullopt;
  at_ = *same;
  return record_at(at_);
}

/// The record at `at_`, or the first one after it that counts; moves `at_` there.
Result<std::optional<JournalRecord>> SegmentReader::find_record() {
  auto record = record_at(at_);
  if (!record || *record) return record;
  auto zeros = only_zeros_from(at_);
  if (!zeros) return pass(zeros);
  torn_ = !*zeros;
  if (!torn_) return std::nullopt;
  record = skip_damage();
  if (record) torn_ = !record->has_value() && !ends_damaged_;
  return record;
}

/// The next valid record, whether or not its group is whole.
Result<std::optional<SegmentReader::Found>> SegmentReader::read_ahead() {
  if (ended_) return std::nullopt;
  auto record = find_record();
  // The records after the synced end never took place, so nobody needs to read them.
  if (!record && has_all_synced()) record = std::nullopt;
  if (!record) return pass(record);
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
  // The next segment shows that the rest of the group is missing.
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
    // Damage that no record follows: positions do not show how many records are lost. The record
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
