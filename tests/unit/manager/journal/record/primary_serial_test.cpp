#include "manager/journal/record/primary_serial.h"

#include <gtest/gtest.h>

#include "manager/journal/record/journal_payload.h"
#include "tests/unit/manager/zone_support.h"

namespace pando::manager {
namespace primary_serial_test {

using shm::test::must;
using testing::name;
using Known = std::optional<dns::Serial>;

JournalRecord record(RecordKind kind, std::uint32_t from, std::uint32_t to, Bytes payload = {}) {
  JournalRecord record;
  record.kind = kind;
  record.zone = name("@");
  record.from = {from};
  record.to = {to};
  record.payload = std::move(payload);
  return record;
}

JournalRecord signed_record(RecordKind inner, std::uint32_t from, std::uint32_t to,
                            Known primary = std::nullopt) {
  JournalEntry entry{name("@"), {from}, {to}, zone::encode(zone::Changeset{name("@"), {}, {}}), inner};
  wrap_signed(entry, primary);
  return record(entry.kind, from, to, entry.payload);
}

/// The zone was sent whole with serial 40, and has 8 here.
PrimarySerial sent_whole() {
  PrimarySerial serial;
  serial.begin({8}, dns::Serial{40});
  return serial;
}

TEST(PrimarySerial, FollowsTransfersAndRenewals) {
  PrimarySerial serial = sent_whole();
  EXPECT_EQ(serial.at({8}), Known({40}));
  serial.take(signed_record(RecordKind::kTransfer, 8, 9, dns::Serial{41}));
  EXPECT_EQ(serial.at({9}), Known({41}));
  EXPECT_EQ(serial.at({8}), std::nullopt) << "of the newest data alone";
  serial.take(signed_record(RecordKind::kChangeset, 9, 10));
  EXPECT_EQ(serial.at({10}), Known({41})) << "renewed signatures";
  for (const RecordKind kind : {RecordKind::kBase, RecordKind::kTransfer, RecordKind::kSource})
    serial.take(record(kind, 10, 10));
  EXPECT_EQ(serial.at({10}), Known({41})) << "records about the copy";
}

TEST(PrimarySerial, IsUnknownBehindAGap) {
  PrimarySerial serial = sent_whole();
  serial.take(signed_record(RecordKind::kChangeset, 9, 10));
  EXPECT_EQ(serial.at({10}), std::nullopt);
  serial.take(signed_record(RecordKind::kTransfer, 10, 11, dns::Serial{50}));
  EXPECT_EQ(serial.at({11}), Known({50})) << "a record that tells it ends the doubt";
}

TEST(PrimarySerial, EndsWithOtherSources) {
  const JournalRecord others[] = {
      record(RecordKind::kChangeset, 8, 9), record(RecordKind::kTransfer, 8, 9),
      record(RecordKind::kTransfer, 9, 9),  record(RecordKind::kPrimary, 8, 8),
      record(RecordKind::kGone, 8, 8),      signed_record(RecordKind::kFileEdit, 8, 9),
      record(RecordKind::kSigned, 8, 9, {0})};
  for (const JournalRecord& other : others) {
    PrimarySerial serial = sent_whole();
    serial.take(other);
    EXPECT_EQ(serial.at(other.to), std::nullopt) << static_cast<int>(other.kind);
    EXPECT_EQ(serial.at({8}), std::nullopt) << static_cast<int>(other.kind);
  }
}

TEST(PrimarySerial, OfAZoneWithOneSerialIsNone) {
  PrimarySerial serial;
  serial.begin({8}, std::nullopt);
  serial.take(record(RecordKind::kTransfer, 8, 9));
  EXPECT_EQ(serial.at({9}), std::nullopt);
}

TEST(PrimarySerial, StandsBehindTheKindOfASignedRecord) {
  const JournalRecord transfer = signed_record(RecordKind::kTransfer, 8, 9, dns::Serial{41});
  const SignedRecord inner = must(decode_signed(transfer.payload));
  EXPECT_EQ(inner.kind, RecordKind::kTransfer);
  EXPECT_EQ(inner.primary_serial, Known({41}));
  EXPECT_TRUE(served_changes(transfer));
  for (std::size_t bytes = 0; bytes < 5; ++bytes)
    EXPECT_FALSE(decode_signed(ByteView(transfer.payload).first(bytes))) << bytes;
  EXPECT_FALSE(must(decode_signed(signed_record(RecordKind::kTransfer, 8, 9).payload)).primary_serial);
}

}  // namespace primary_serial_test
}  // namespace pando::manager
