#include "manager/journal/record/journal_format.h"

#include <gtest/gtest.h>

namespace pando::manager {
namespace journal_format_test {

constexpr std::uint64_t kNonce = 7;

JournalRecord record() {
  JournalRecord record;
  record.position = 12;
  record.group_first = 11;
  record.kind = RecordKind::kTransfer;
  record.zone = dns::Name::from_text("example.com.").value();
  record.from = dns::Serial{1};
  record.to = dns::Serial{2};
  record.payload = {1, 2, 3};
  record.ends_group = false;
  return record;
}

Bytes encoded(const JournalRecord& record) {
  Bytes out;
  append_record(out, record, kNonce);
  return out;
}

TEST(JournalFormat, AHeaderIsReadAsItWasWritten) {
  const SegmentHeader header{5, 3, kNonce, {8, 9}};
  const Bytes bytes = encode_segment_header(header);
  ASSERT_EQ(bytes.size(), kSegmentHeaderBytes);
  const auto read = decode_segment_header(bytes);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->first, 5U);
  EXPECT_EQ(read->void_from, 3U);
  EXPECT_EQ(read->nonce, kNonce);
  EXPECT_EQ(read->identity, (std::array<std::uint64_t, 2>{8, 9}));
}

TEST(JournalFormat, AFlippedBitOfAHeaderIsDamage) {
  const Bytes sound = encode_segment_header({5, 3, kNonce, {8, 9}});
  for (std::size_t bit = 0; bit < sound.size() * 8; ++bit) {
    Bytes bytes = sound;
    bytes[bit / 8] ^= static_cast<std::uint8_t>(1U << bit % 8);
    const auto read = decode_segment_header(bytes);
    ASSERT_FALSE(read) << bit;
    EXPECT_EQ(read.error().code, Errc::kCorrupt) << bit;
  }
  EXPECT_FALSE(decode_segment_header(ByteView(sound).first(kSegmentHeaderBytes - 1)));
}

TEST(JournalFormat, ARecordIsReadAsItWasWritten) {
  const JournalRecord written = record();
  const Bytes bytes = encoded(written);
  EXPECT_EQ(bytes.size() % 8, 0U) << "padded";
  const auto read = decode_record(bytes, kNonce);
  ASSERT_TRUE(read) << read.error().text;
  EXPECT_EQ(read->position, written.position);
  EXPECT_EQ(read->group_first, written.group_first);
  EXPECT_EQ(read->kind, written.kind);
  EXPECT_EQ(read->zone, written.zone);
  EXPECT_EQ(read->from, written.from);
  EXPECT_EQ(read->to, written.to);
  EXPECT_EQ(read->payload, written.payload);
  EXPECT_EQ(read->ends_group, written.ends_group);
}

/// Its length stays known while the body is damaged: the reader can go on after it.
TEST(JournalFormat, ADamagedBodyLeavesTheFrame) {
  const Bytes sound = encoded(record());
  const std::size_t end = kRecordHeaderBytes + record().zone.size() + 8 + record().payload.size();
  for (std::size_t at = 0; at < end; ++at) {
    Bytes bytes = sound;
    bytes[at] ^= 1;
    EXPECT_FALSE(decode_record(bytes, kNonce)) << at;
    if (at >= kRecordHeaderBytes) {
      EXPECT_EQ(decode_frame(bytes)->position, 12U) << at;
    }
  }
  EXPECT_FALSE(decode_record(ByteView(sound).first(end - 1), kNonce)) << "cut short";
}

/// A block of the disk may hold records of an earlier file.
TEST(JournalFormat, ARecordOfAnotherNonceIsNone) {
  const Bytes bytes = encoded(record());
  EXPECT_TRUE(decode_frame(bytes));
  const auto read = decode_record(bytes, kNonce + 1);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, Errc::kCorrupt);
}

TEST(JournalFormat, FilesHaveTheNumberOfTheirFirstRecord) {
  EXPECT_EQ(journal_file_name(0xa1, kSegmentSuffix), "00000000000000a1.journal");
  EXPECT_EQ(journal_file_number("00000000000000a1.journal", kSegmentSuffix), 0xa1U);
  EXPECT_EQ(journal_file_number("00000000000000a1.journal", kSnapshotSuffix), std::nullopt);
  EXPECT_EQ(journal_file_number("a1.journal", kSegmentSuffix), std::nullopt);
  EXPECT_EQ(journal_file_number("000000000000000g.journal", kSegmentSuffix), std::nullopt);
}

TEST(JournalFormat, DamagedFilesHaveTheirNumberAndACount) {
  EXPECT_EQ(damaged_file_number("00000000000000a1.journal.damaged"), 0xa1U);
  EXPECT_EQ(damaged_file_number("00000000000000a1.journal.damaged.2"), 0xa1U);
  EXPECT_EQ(damaged_file_number("00000000000000a1.journal.damaged2"), std::nullopt);
  EXPECT_EQ(damaged_file_number("00000000000000a1.journal"), std::nullopt);
}

}  // namespace journal_format_test
}  // namespace pando::manager
