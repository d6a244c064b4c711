#include "manager/notify/notify_message.h"

#include <gtest/gtest.h>

#include "tests/unit/manager/zone_support.h"

namespace pando::manager {
namespace notify_message_test {

using dns::Rcode;
using testing::name;

constexpr std::uint64_t kNow = 1'800'000'000;
constexpr std::uint16_t kId = 0x1234;

class Notify : public ::testing::Test {
 protected:
  Notify() {
    EXPECT_TRUE(keys_.add({name("key"), dns::TsigAlgorithm::kSha256, Bytes(32, 7), 0}).has_value());
  }
  NotifyMessage make(bool with_key = false) {
    auto made = NotifyMessage::make(name("example"), soa_, dns::Ttl{300}, kId,
                                    with_key ? keys_.find(name("key")) : nullptr, kNow);
    return std::move(*made);
  }
  static Bytes answer(std::uint16_t id, std::string_view zone, Rcode rcode = Rcode::kNoError,
                      dns::Opcode opcode = dns::Opcode::kNotify, bool qr = true) {
    Bytes space(512);
    dns::MessageWriter writer(space, space.size());
    dns::Header header;
    header.id = id;
    header.qr = qr;
    header.opcode = opcode;
    header.rcode = static_cast<std::uint8_t>(rcode);
    writer.put_header(header);
    const bool whole =
        zone.empty() || writer.put_question(name(zone), dns::RRType::kSOA, dns::RRClass::kIN);
    EXPECT_TRUE(whole);
    space.resize(writer.finish().size());
    return space;
  }

  dns::TsigKeyring keys_;
  Bytes soa_ = [] {
    Bytes rdata{0, 0};
    append_be32(rdata, 77);
    for (int i = 0; i < 4; ++i) append_be32(rdata, 1);
    return rdata;
  }();
};

TEST_F(Notify, CarriesTheSoaAsAHint) {
  const NotifyMessage notify = make();
  dns::MessageReader reader(notify.octets());
  const auto header = reader.header();
  ASSERT_TRUE(header.has_value());
  EXPECT_EQ(header->opcode, dns::Opcode::kNotify);
  EXPECT_TRUE(header->aa);
  EXPECT_FALSE(header->qr);
  const auto question = reader.question();
  ASSERT_TRUE(question.has_value());
  EXPECT_EQ(question->name, name("example"));
  EXPECT_EQ(question->type, dns::RRType::kSOA);
  ASSERT_EQ(header->ancount, 1);
  const auto record = reader.record();
  ASSERT_TRUE(record.has_value());
  EXPECT_EQ(record->type, dns::RRType::kSOA);
  EXPECT_EQ(record->ttl, 300U);
  EXPECT_EQ(load_be32(notify.octets().data() + record->rdata_offset + 2), 77U);
  EXPECT_TRUE(reader.at_end());
}

TEST_F(Notify, LeavesOutAHintThatDoesNotFit) {
  Bytes rdata;
  for (const char first : {'a', 'n'}) {  // MNAME and RNAME of 193 octets that share no label
    for (int i = 0; i < 3; ++i) {
      rdata.push_back(63);
      rdata.insert(rdata.end(), 63, static_cast<std::uint8_t>(first + i));
    }
    rdata.push_back(0);
  }
  append(rdata, ByteView(soa_).subspan(2));
  auto made = NotifyMessage::make(name("example"), rdata, dns::Ttl{300}, kId,
                                  keys_.find(name("key")), kNow);
  ASSERT_TRUE(made.has_value());
  const auto header = dns::read_header(made->octets());
  EXPECT_EQ(header->ancount, 0);
  EXPECT_EQ(header->arcount, 1) << "signed";
  EXPECT_LE(made->octets().size(), 512U);
}

TEST_F(Notify, TakesItsAnswerAndNoOther) {
  NotifyMessage notify = make();
  EXPECT_FALSE(notify.read_answer(answer(kId + 1, "example"), kNow)) << "other ID";
  EXPECT_FALSE(notify.read_answer(answer(kId, "other"), kNow)) << "other zone";
  EXPECT_FALSE(notify.read_answer(answer(kId, ""), kNow)) << "no question";
  EXPECT_FALSE(
      notify.read_answer(answer(kId, "example", Rcode::kNoError, dns::Opcode::kQuery), kNow));
  EXPECT_FALSE(notify.read_answer(
      answer(kId, "example", Rcode::kNoError, dns::Opcode::kNotify, false), kNow))
      << "a question is no answer";
  EXPECT_FALSE(notify.read_answer(Bytes(5, 0), kNow)) << "too short";
  const auto good = notify.read_answer(answer(kId, "EXAMPLE"), kNow);
  ASSERT_TRUE(good.has_value());
  EXPECT_EQ(*good, Rcode::kNoError);
}

TEST_F(Notify, TakesAnErrorWithoutAQuestion) {
  NotifyMessage notify = make();
  const auto rcode = notify.read_answer(answer(kId, "", Rcode::kNotImp), kNow);
  ASSERT_TRUE(rcode.has_value());
  EXPECT_EQ(*rcode, Rcode::kNotImp);
}

TEST_F(Notify, AnswerToASignedOneMustBeSigned) {
  NotifyMessage notify = make(true);
  auto record = dns::find_tsig(notify.octets());
  ASSERT_TRUE(record && *record);
  const auto verdict = dns::TsigSession::verify_request(notify.octets(), **record, keys_, kNow);
  ASSERT_EQ(verdict.rcode, Rcode::kNoError);
  EXPECT_FALSE(notify.read_answer(answer(kId, "example"), kNow)) << "unsigned";
  Bytes reply = answer(kId, "example", Rcode::kRefused);
  ASSERT_TRUE(dns::TsigSession::for_response(verdict).sign(reply, kNow).has_value());
  Bytes changed = reply;
  changed[3] = 0;  // NOERROR
  EXPECT_FALSE(notify.read_answer(changed, kNow)) << "not what was signed";
  const auto rcode = notify.read_answer(reply, kNow);
  ASSERT_TRUE(rcode.has_value()) << rcode.error().text;
  EXPECT_EQ(*rcode, Rcode::kRefused);
}

}  // namespace notify_message_test
}  // namespace pando::manager
