#include "dns/message/message.h"

#include <gtest/gtest.h>

#include <random>

namespace pando::dns {
namespace message_test {

Bytes wire(std::initializer_list<int> octets) {
  Bytes bytes;
  for (const int octet : octets) bytes.push_back(static_cast<std::uint8_t>(octet));
  return bytes;
}

/// A header with one question and one answer announced; reader tests put the rest behind it.
Bytes with_header(std::initializer_list<int> rest) {
  Bytes message = wire({0x12, 0x34, 0x01, 0x00, 0, 1, 0, 1, 0, 0, 0, 0});
  append(message, wire(rest));
  return message;
}

TEST(MessageHeader, EveryFieldIsReadFromItsPlace) {
  const Bytes message = wire({0xBE, 0xEF, 0xAF, 0xB5, 0, 1, 0, 2, 0, 3, 0, 4});
  const auto header = read_header(message);
  ASSERT_TRUE(header);
  EXPECT_EQ(header->id, 0xBEEF);
  EXPECT_TRUE(header->qr && header->aa && header->tc && header->rd);
  EXPECT_EQ(header->opcode, Opcode::kUpdate);
  EXPECT_TRUE(header->ra && header->ad && header->cd);
  EXPECT_EQ(header->rcode, 5);
  EXPECT_EQ(header->qdcount, 1);
  EXPECT_EQ(header->ancount, 2);
  EXPECT_EQ(header->nscount, 3);
  EXPECT_EQ(header->arcount, 4);
}

TEST(MessageHeader, WritingWhatWasReadGivesTheSameOctetsButForTheZBit) {
  std::mt19937 random(1);
  for (int round = 0; round < 1000; ++round) {
    Bytes message(kHeaderOctets);
    for (auto& octet : message) octet = static_cast<std::uint8_t>(random());
    std::uint8_t again[kHeaderOctets];
    write_header(*read_header(message), again);
    message[3] &= 0xBF;  // RFC 1035 §4.1.1: Z must be zero in what we send
    EXPECT_EQ(Bytes(again, again + kHeaderOctets), message);
  }
}

TEST(MessageHeader, ElevenOctetsAreTooFew) {
  const Bytes message(11);
  const auto header = MessageReader(message).header();
  ASSERT_FALSE(header);
  EXPECT_EQ(header.error().code, Errc::kTruncated);
}

TEST(MessageReader, ReadsAQuestionAndARecordWhoseOwnerIsAPointer) {
  const Bytes message =
      with_header({3,    'w', 'W', 'w', 2, 'd', 'k', 0, 0,  1,  0, 1,  // question
                   0xC0, 12,  0,   1,   0, 1,   0,   0, 14, 16, 0, 4, 1, 2, 3, 4});
  MessageReader reader(message);
  ASSERT_TRUE(reader.header());
  const auto question = reader.question();
  ASSERT_TRUE(question);
  EXPECT_EQ(to_text(question->name), "wWw.dk.");
  EXPECT_EQ(question->type, RRType::kA);
  EXPECT_EQ(question->rr_class, RRClass::kIN);
  const auto record = reader.record();
  ASSERT_TRUE(record) << record.error().text;
  EXPECT_EQ(to_text(record->owner), "wWw.dk.");
  EXPECT_EQ(record->ttl, 3600U);
  EXPECT_EQ(record->offset, 24U);
  EXPECT_EQ(record->rdata_offset, 36U);
  EXPECT_EQ(record->rdata_length, 4);
  EXPECT_TRUE(reader.at_end());
}

TEST(MessageReader, EveryTruncationIsAnErrorAndMovesNothing) {
  const Bytes whole = with_header({1,    'a', 0, 0,  1, 0, 1,  //
                                   0xC0, 12,  0, 16, 0, 1, 0, 0, 0, 0, 0, 3, 2, 'h', 'i'});
  for (std::size_t size = kHeaderOctets; size < whole.size(); ++size) {
    const Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    MessageReader reader(cut);
    ASSERT_TRUE(reader.header());
    const std::size_t question_end = 19;
    ASSERT_EQ(static_cast<bool>(reader.question()), size >= question_end);
    const std::size_t before = reader.offset();
    EXPECT_FALSE(reader.record());
    EXPECT_EQ(reader.offset(), before);
  }
}

TEST(MessageReader, APointerToItselfIsAnError) {
  const Bytes message = with_header({0xC0, 12, 0, 1, 0, 1});
  MessageReader reader(message);
  ASSERT_TRUE(reader.header());
  EXPECT_FALSE(reader.question());
}

TEST(MessageReader, APointerForwardsIsAnError) {
  const Bytes message = with_header({0xC0, 18, 0, 1, 0, 1, 1, 'a', 0});
  MessageReader reader(message);
  ASSERT_TRUE(reader.header());
  EXPECT_FALSE(reader.question());
}

TEST(MessageReader, RdataThatRunsOverTheMessageIsTruncated) {
  const Bytes message = with_header({0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 5, 1, 2, 3, 4});
  MessageReader reader(message);
  ASSERT_TRUE(reader.header());
  const auto record = reader.record();
  ASSERT_FALSE(record);
  EXPECT_EQ(record.error().code, Errc::kTruncated);
}

TEST(MessageReader, GarbageIsWalkedWithoutHarm) {
  std::mt19937 random(7);
  std::size_t records = 0;
  for (int round = 0; round < 20000; ++round) {
    Bytes message(random() % 200);
    for (auto& octet : message)  // many small values and pointers, so that walks get somewhere
      octet = static_cast<std::uint8_t>(random() % 8 == 0   ? 0xC0
                                        : random() % 3 == 0 ? random() % 24
                                                            : 0);
    MessageReader reader(message);
    if (!reader.header()) continue;
    while (auto record = reader.record()) {
      EXPECT_LE(record->rdata_offset + record->rdata_length, message.size());
      ++records;
    }
  }
  EXPECT_GT(records, 1000U);
}

}  // namespace message_test
}  // namespace pando::dns
