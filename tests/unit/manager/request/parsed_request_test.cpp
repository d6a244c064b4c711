#include "manager/request/parsed_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/manager/update_builder.h"

namespace pando::manager {
namespace parsed_request_test {

using dns::Rcode;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::name;
using testing::UpdateBuilder;

Bytes update(std::uint16_t id = 7) {
  UpdateBuilder builder;
  builder.add("new 60 A 192.0.2.9");
  return builder.message(id);
}

Bytes with_opt(Bytes message) {
  append(message, Bytes{0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 0});
  store_be16(message.data() + 10, static_cast<std::uint16_t>(load_be16(message.data() + 10) + 1));
  return message;
}

TEST(ParsedRequest, HasTheHeaderAndTheZone) {
  const ParsedRequest request(update());
  EXPECT_TRUE(request.is_request());
  EXPECT_EQ(request.header()->id, 7U);
  ASSERT_TRUE(request.question().has_value());
  EXPECT_EQ(request.question()->type, dns::RRType::kSOA);
  EXPECT_EQ(request.zone(), name("@"));
  EXPECT_EQ(request.octets(), update());
  ASSERT_TRUE(request.tsig().has_value());
  EXPECT_FALSE(request.tsig()->has_value());
}

TEST(ParsedRequest, KeepsItsRecordsInPlaceWhenItMoves) {
  ParsedRequest first(update());
  const std::uint8_t* const octets = first.octets().data();
  const ParsedRequest second(std::move(first));
  EXPECT_EQ(second.octets().data(), octets);
  dns::MessageReader reader = second.records();
  const auto record = reader.record();
  ASSERT_TRUE(record.has_value());
  EXPECT_EQ(record->type, dns::RRType::kA);
  EXPECT_EQ(second.records().record()->offset, record->offset) << "each reader starts anew";
}

TEST(ParsedRequest, OfAResponseOrAStubGetsNoAnswer) {
  Bytes response = update();
  response[2] |= 0x80;
  Bytes stub = update();
  stub.resize(dns::kHeaderOctets - 1);
  for (const Bytes& message : {response, stub, Bytes()}) {
    const ParsedRequest request{Bytes(message)};
    EXPECT_FALSE(request.is_request());
    EXPECT_THAT(make_reply(request, Rcode::kFormErr, false), IsEmpty());
  }
}

TEST(ParsedRequest, WithoutExactlyOneQuestionHasNone) {
  for (const std::uint8_t count : Bytes{0, 2}) {
    Bytes message = update();
    message[5] = count;
    const ParsedRequest request(std::move(message));
    ASSERT_FALSE(request.question().has_value());
    EXPECT_THAT(request.question().error().text, HasSubstr("records in the zone section"));
    EXPECT_EQ(request.zone(), dns::Name());
  }
  Bytes cut = update();
  cut.resize(dns::kHeaderOctets + 3);
  EXPECT_FALSE(ParsedRequest(std::move(cut)).question().has_value());
}

TEST(ParsedRequest, WithAMisplacedTsigIsAnErrorThatIsKept) {
  Bytes message = update();
  append(message, Bytes{0, 0, 250, 0, 255, 0, 0, 0, 0, 0, 0});  // no RDATA
  message[11] = 1;
  EXPECT_FALSE(ParsedRequest(std::move(message)).tsig().has_value());
}

TEST(Reply, RepeatsIdOpcodeAndZone) {
  const Bytes reply = make_reply(ParsedRequest(update(99)), Rcode::kRefused, true);
  dns::MessageReader reader(reply);
  const auto header = reader.header();
  ASSERT_TRUE(header.has_value());
  EXPECT_EQ(header->id, 99U);
  EXPECT_TRUE(header->qr && header->aa);
  EXPECT_EQ(header->opcode, dns::Opcode::kUpdate);
  EXPECT_EQ(static_cast<Rcode>(header->rcode), Rcode::kRefused);
  EXPECT_EQ(reader.question()->name, name("@"));
  EXPECT_TRUE(reader.at_end());
}

TEST(Reply, HasAnOptRecordWhereTheRequestHasOne) {
  const ReplyDetail detail{dns::ExtendedError::kProhibited, "because"};
  const Bytes plain = make_reply(ParsedRequest(update()), Rcode::kRefused, false, detail);
  EXPECT_EQ(dns::read_header(plain)->arcount, 0U);
  const Bytes reply = make_reply(ParsedRequest(with_opt(update())), Rcode::kRefused, false, detail);
  dns::MessageReader reader(reply);
  EXPECT_EQ(reader.header()->arcount, 1U);
  EXPECT_TRUE(reader.question());
  EXPECT_EQ(reader.record()->type, dns::RRType::kOPT);
  EXPECT_THAT(std::string(reply.begin(), reply.end()), HasSubstr("because"));
}

TEST(Reply, ToSeveralQuestionsRepeatsNone) {
  Bytes message = with_opt(update());
  message[5] = 2;
  const Bytes reply = make_reply(ParsedRequest(std::move(message)), Rcode::kFormErr, false);
  EXPECT_EQ(reply.size(), dns::kHeaderOctets);
}

}  // namespace parsed_request_test
}  // namespace pando::manager
