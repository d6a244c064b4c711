#include "manager/signing/ds_question.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

namespace pando::manager {
namespace ds_question_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::uint16_t kId = 4711;

dns::Name ds_zone(const char* text = "example.org.") { return dns::Name::from_text(text).value(); }

/// An answer that the test's arguments make wrong in one respect.
struct Answer {
  std::uint16_t id = kId;
  dns::Name zone = ds_zone();
  dns::RRType type = dns::RRType::kDS;
  dns::Rcode rcode = dns::Rcode::kNoError;
  bool is_answer = true, is_validated = true, is_cut = false;
  std::vector<std::pair<dns::Name, Bytes>> records{};

  [[nodiscard]] Bytes octets() const {
    std::array<std::uint8_t, 1232> space;
    dns::MessageWriter writer(space, space.size());
    dns::Header header;
    header.id = id;
    header.qr = is_answer;
    header.ad = is_validated;
    header.tc = is_cut;
    header.rcode = static_cast<std::uint8_t>(rcode);
    writer.put_header(header);
    EXPECT_TRUE(writer.put_question(zone, type, dns::RRClass::kIN));
    for (const auto& [owner, rdata] : records)
      EXPECT_TRUE(writer.put_record(dns::Section::kAnswer, owner, dns::RRType::kDS,
                                    dns::RRClass::kIN, 60, rdata));
    const ByteView message = writer.finish();
    return {message.begin(), message.end()};
  }
};

Result<ParentDs> read(const Answer& answer) {
  return DsQuestion(ds_zone(), kId).read_answer(answer.octets());
}

TEST(DsQuestionTest, AsksForValidation) {
  const DsQuestion question(ds_zone(), kId);
  dns::MessageReader reader(question.octets());
  const auto header = reader.header();
  EXPECT_TRUE(header->rd && header->ad && !header->qr);
  EXPECT_EQ(reader.question()->type, dns::RRType::kDS);
}

TEST(DsQuestionTest, TakesTheZonesRecordsAlone) {
  const Bytes ds{1, 2, 13, 2, 9};
  const auto found = read({.records = {{ds_zone(), ds}, {ds_zone("other."), {7, 7, 13, 2, 9}}}});
  ASSERT_TRUE(found) << found.error().text;
  EXPECT_TRUE(found->is_validated);
  EXPECT_THAT(found->records, ElementsAre(ds));
  EXPECT_FALSE(read({.is_validated = false})->is_validated);
  EXPECT_THAT(read({})->records, IsEmpty());
}

TEST(DsQuestionTest, OtherMessagesAreNoAnswer) {
  EXPECT_FALSE(read({.id = kId + 1}));
  EXPECT_FALSE(read({.is_answer = false}));
  EXPECT_FALSE(read({.zone = ds_zone("other.")}));
  EXPECT_FALSE(read({.type = dns::RRType::kA}));
  EXPECT_THAT(read({.rcode = dns::Rcode::kServFail}).error().text, HasSubstr("SERVFAIL"));
  EXPECT_THAT(read({.rcode = dns::Rcode::kNXDomain}).error().text, HasSubstr("NXDOMAIN"));
  EXPECT_THAT(read({.is_cut = true}).error().text, HasSubstr("cut off"));
  Bytes cut = Answer{.records = {{ds_zone(), {1, 2, 13, 2, 9}}}}.octets();
  cut.resize(cut.size() - 3);
  EXPECT_FALSE(DsQuestion(ds_zone(), kId).read_answer(cut));
}

}  // namespace ds_question_test
}  // namespace pando::manager
