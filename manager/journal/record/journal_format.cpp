#include "manager/journal/record/journal_format.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <charconv>

namespace pando::manager {

namespace {

constexpr std::size_t kNameDigits = 16;
constexpr std::uint64_t kFileMagic = 0x50414E444F4A524EU;  // "PANDOJRN"
/// "PANDOJ", the first bytes of journal files of all formats.
constexpr std::uint64_t kFamilyMagic = kFileMagic >> 16;
constexpr std::uint32_t kSegmentKind = 1U << 24;
constexpr std::uint32_t kRecordMagic = 0x504A5243U;  // "PJRC"
constexpr std::size_t kEndsGroupAt = 25;             // in the record header
constexpr std::size_t kCheckAt = 28;                 // in the record header
constexpr std::size_t kChecksumAt = 32;              // in the record header
constexpr std::size_t kHeaderChecksumAt = 56;        // in the segment header

/// Checksum of the header's fields before the checksum. It proves a record's length without the
/// record's body, which may be damaged or absent.
std::uint32_t frame_check(const std::uint8_t* header) noexcept {
  return static_cast<std::uint32_t>(XXH3_64bits(header, kCheckAt));
}

/// Checksum of the whole record except the checksum itself and the padding.
std::uint64_t record_checksum(ByteView record, std::uint64_t nonce) noexcept {
  const std::uint64_t head = XXH3_64bits_withSeed(record.data(), kChecksumAt, nonce);
  const ByteView body = record.subspan(kRecordHeaderBytes);
  return XXH3_64bits_withSeed(body.data(), body.size(), head);
}

}  // namespace

//  0      8        12     13      16      24          32      40         56
//  | magic | version | 1    | zeros | first | void_from | nonce | identity | checksum |
Bytes encode_segment_header(const SegmentHeader& header) {
  Bytes out;
  out.reserve(kSegmentHeaderBytes);
  append_be64(out, kFileMagic);
  append_be32(out, kJournalVersion);
  append_be32(out, kSegmentKind);
  append_be64(out, header.first);
  append_be64(out, header.void_from);
  append_be64(out, header.nonce);
  for (const std::uint64_t word : header.identity) append_be64(out, word);
  append_be64(out, XXH3_64bits(out.data(), kHeaderChecksumAt));
  return out;
}

Result<SegmentHeader> decode_segment_header(ByteView bytes) {
  if (bytes.size() < kSegmentHeaderBytes || load_be64(bytes.data()) >> 16 != kFamilyMagic)
    return fail(Errc::kCorrupt, "not a journal file");
  if (load_be64(bytes.data() + kHeaderChecksumAt) != XXH3_64bits(bytes.data(), kHeaderChecksumAt))
    return fail(Errc::kCorrupt, "journal file header has a wrong checksum");
  const std::uint32_t version = load_be32(bytes.data() + 8);
  if (load_be64(bytes.data()) != kFileMagic || version < kOldestJournalVersion ||
      version > kJournalVersion)
    return fail(Errc::kLayout, "its format is not the one that this build reads, version {}",
                kJournalVersion);
  SegmentHeader header;
  header.first = load_be64(bytes.data() + 16);
  header.void_from = load_be64(bytes.data() + 24);
  header.nonce = load_be64(bytes.data() + 32);
  header.identity = {load_be64(bytes.data() + 40), load_be64(bytes.data() + 48)};
  return header;
}

//  0      4      8          16            24     25    26      28      32         40
//  | magic | body | position | group_first | kind | end | zeros | check | checksum | name ... | pad
void append_record(Bytes& out, const JournalRecord& record, std::uint64_t nonce) {
  const std::size_t start = out.size();
  const std::size_t body = record.zone.size() + 8 + record.payload.size();
  append_be32(out, kRecordMagic);
  append_be32(out, static_cast<std::uint32_t>(body));
  append_be64(out, record.position);
  append_be64(out, record.group_first);
  append_be64(out, static_cast<std::uint64_t>(record.kind) << 56 |
                       static_cast<std::uint64_t>(record.ends_group ? 1 : 0) << 48);
  store_be32(out.data() + start + kCheckAt, frame_check(out.data() + start));
  append_be64(out, 0);
  append(out, record.zone.view().bytes());
  append_be32(out, record.from.value);
  append_be32(out, record.to.value);
  append(out, record.payload);
  const ByteView whole(out.data() + start, out.size() - start);
  store_be64(out.data() + start + kChecksumAt, record_checksum(whole, nonce));
  out.resize(start + (whole.size() + 7) / 8 * 8);
}

std::optional<RecordFrame> decode_frame(ByteView header) noexcept {
  if (header.size() < kRecordHeaderBytes || load_be32(header.data()) != kRecordMagic ||
      load_be32(header.data() + kCheckAt) != frame_check(header.data()))
    return std::nullopt;
  RecordFrame frame;
  frame.body_bytes = load_be32(header.data() + 4);
  frame.position = load_be64(header.data() + 8);
  frame.group_first = load_be64(header.data() + 16);
  frame.kind = static_cast<RecordKind>(header[24]);
  const bool known = frame.kind == RecordKind::kChangeset ||
                     (frame.kind >= RecordKind::kFileEdit && frame.kind <= RecordKind::kSigned);
  if (!known || frame.body_bytes > kMaxRecordBody || frame.group_first > frame.position)
    return std::nullopt;
  return frame;
}

Result<JournalRecord> decode_record(ByteView bytes, std::uint64_t nonce) {
  const auto frame = decode_frame(bytes);
  if (!frame || bytes.size() < kRecordHeaderBytes + frame->body_bytes)
    return fail(Errc::kCorrupt, "not a journal record");
  const ByteView whole = bytes.first(kRecordHeaderBytes + frame->body_bytes);
  if (record_checksum(whole, nonce) != load_be64(bytes.data() + kChecksumAt))
    return fail(Errc::kCorrupt, "journal record has a wrong checksum");
  const ByteView body = whole.subspan(kRecordHeaderBytes);
  const std::size_t name = dns::wire_name_length(body);
  if (name == 0 || body.size() < name + 8)
    return fail(Errc::kCorrupt, "journal record without a zone");
  JournalRecord record;
  record.position = frame->position;
  record.group_first = frame->group_first;
  record.kind = frame->kind;
  record.ends_group = bytes[kEndsGroupAt] != 0;
  record.zone = dns::Name(dns::NameView(body.data(), name));
  record.from.value = load_be32(body.data() + name);
  record.to.value = load_be32(body.data() + name + 4);
  record.payload.assign(body.begin() + static_cast<std::ptrdiff_t>(name + 8), body.end());
  return record;
}

std::string journal_file_name(std::uint64_t number, std::string_view suffix) {
  return fmt::format("{:016x}{}", number, suffix);
}

std::optional<std::uint64_t> journal_file_number(std::string_view name, std::string_view suffix) {
  if (name.size() != kNameDigits + suffix.size() || !name.ends_with(suffix)) return std::nullopt;
  std::uint64_t number = 0;
  const char* const end = name.data() + kNameDigits;
  if (std::from_chars(name.data(), end, number, 16).ptr != end) return std::nullopt;
  return number;
}

std::optional<std::uint64_t> damaged_file_number(std::string_view name) {
  const auto end = name.find(kDamagedSuffix);
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view behind = name.substr(end + kDamagedSuffix.size());
  if (!behind.empty() && behind.front() != '.') return std::nullopt;
  return journal_file_number(name.substr(0, end), kSegmentSuffix);
}

}  // namespace pando::manager
