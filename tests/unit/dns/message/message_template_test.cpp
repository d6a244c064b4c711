#include "dns/message/message_template.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "dns/message/message_reader.h"

namespace pando::dns {
namespace message_template_test {

Name name(const char* text) { return Name::from_text(text).value(); }

/// A referral at "sub.example." with one server below it and its addresses, as `ends` tell.
class MessageTemplateTest : public ::testing::Test {
 protected:
  MessageTemplateTest() {
    MessageWriter writer(space_, 512);
    writer.put_header({});
    const Name cut = name("sub.example.");
    const Name host = name("ns.sub.example.");
    const Bytes target(host.data(), host.data() + host.size());
    bool fits = writer.put_question(cut, RRType::kNS, RRClass::kIN) &&
                writer.put_record(Section::kAuthority, cut, RRType::kNS, RRClass::kIN, 300, target);
    note_end(writer);
    fits =
        fits && writer.put_record(Section::kAdditional, host, RRType::kA, RRClass::kIN, 300, kV4);
    note_end(writer);
    fits = fits &&
           writer.put_record(Section::kAdditional, host, RRType::kAAAA, RRClass::kIN, 300, kV6);
    note_end(writer);
    EXPECT_TRUE(fits);
    const ByteView message = writer.finish();
    message_.assign(message.begin(), message.end());
  }
  void note_end(const MessageWriter& writer) {
    ends_.push_back(
        {static_cast<std::uint16_t>(writer.size()), writer.count(Section::kAdditional)});
  }
  /// The template behind a question for `qname`, in a message of at most `limit` octets.
  MessageTemplate::Put put(const Bytes& block, const char* qname, std::size_t limit) {
    MessageWriter writer(space_, limit);
    writer.put_header({});
    EXPECT_TRUE(writer.put_question(name(qname), RRType::kA, RRClass::kIN));
    const auto done = MessageTemplate(block.data()).put(writer);
    is_crowded_ = writer.is_crowded();
    const ByteView message = writer.finish();
    result_.assign(message.begin(), message.end());
    return done;
  }
  /// Owners of the records of the last result; "?" ends what cannot be read.
  std::vector<std::string> owners() const {
    std::vector<std::string> found;
    MessageReader reader(result_);
    const auto header = reader.header();
    if (!header || !reader.question()) return {"?"};
    for (int left = header->nscount + header->arcount; left > 0; --left) {
      const auto record = reader.record();
      if (!record) return {"?"};
      found.push_back(to_text(record->owner));
    }
    if (!reader.at_end()) found.emplace_back("?");
    return found;
  }

  static constexpr std::uint8_t kV4[4] = {192, 0, 2, 1};
  static constexpr std::uint8_t kV6[16] = {0x20, 0x01};
  std::uint8_t space_[512];
  std::vector<RRsetEnd> ends_;
  Bytes message_, result_;
  bool is_crowded_ = false;
};

TEST(PointersInRecords, AreLeftOutBehindTheEnd) {
  const std::uint16_t places[] = {0, 7, 20};
  const std::uint16_t values[] = {1, 2, 3};
  const PointersInRecords all{places, values};
  for (const auto& [octets, count] :
       {std::pair(0, 0), {1, 1}, {7, 1}, {8, 2}, {20, 2}, {21, 3}, {99, 3}})
    EXPECT_EQ(all.within(static_cast<std::size_t>(octets)).places.size(),
              static_cast<std::size_t>(count))
        << octets;
  EXPECT_TRUE(PointersInRecords{}.within(9).places.empty());
}

TEST_F(MessageTemplateTest, StandsBehindLongerQuestions) {
  const auto referral = MessageTemplate::make(message_, ends_, 2);
  ASSERT_TRUE(referral);
  for (const char* qname : {"sub.example.", "a.sub.example.", "www.much.longer.sub.example."}) {
    EXPECT_EQ(put(*referral, qname, 512), MessageTemplate::Put::kComplete);
    EXPECT_EQ(owners(),
              (std::vector<std::string>{"sub.example.", "ns.sub.example.", "ns.sub.example."}));
  }
}

/// Answers are kept for other rooms only if nothing was left out.
TEST_F(MessageTemplateTest, TellsTheWriterThatSomethingWasLeftOut) {
  const auto referral = MessageTemplate::make(message_, ends_, 0);
  ASSERT_TRUE(referral);
  const std::size_t whole = ends_.back().size;
  for (std::size_t limit = ends_.front().size; limit <= whole; ++limit) {
    EXPECT_EQ(put(*referral, "sub.example.", limit), MessageTemplate::Put::kComplete) << limit;
    EXPECT_EQ(is_crowded_, limit < whole) << limit;
    const auto fitting =
        std::ranges::count_if(ends_, [&](const RRsetEnd& end) { return end.size <= limit; });
    EXPECT_EQ(std::ssize(owners()), fitting) << limit;
  }
  EXPECT_EQ(put(*referral, "sub.example.", ends_.front().size - 1U),
            MessageTemplate::Put::kNothing);
  EXPECT_TRUE(is_crowded_);
}

/// The NS RRset of a zone's apex and its servers' addresses, as shared by the zone's cuts.
class ServerSetTemplateTest : public MessageTemplateTest {
 protected:
  std::optional<ServerSetTemplate> make(const char* apex_text, const char* host_text) {
    MessageWriter writer(space_, 512);
    writer.put_header({});
    const Name apex = name(apex_text);
    const Name host = name(host_text);
    const Bytes target(host.data(), host.data() + host.size());
    EXPECT_TRUE(
        writer.put_question(apex, RRType::kNS, RRClass::kIN) &&
        writer.put_record(Section::kAuthority, apex, RRType::kNS, RRClass::kIN, 300, target));
    ends_.clear();
    note_end(writer);
    EXPECT_TRUE(writer.put_record(Section::kAdditional, host, RRType::kA, RRClass::kIN, 300, kV4));
    note_end(writer);
    return ServerSetTemplate::from(writer.finish(), ends_);
  }
  /// A referral of the question's name without its first `labels` labels, with a DS in between.
  bool refer(const ServerSetTemplate& servers, const char* qname, std::size_t labels,
             std::size_t limit) {
    MessageWriter writer(space_, limit);
    writer.put_header({});
    EXPECT_TRUE(writer.put_question(name(qname), RRType::kA, RRClass::kIN));
    const NameView cut = writer.question_name().ancestor(labels);
    bool done = servers.put_servers(writer, cut);
    done = done && writer.put_record(Section::kAuthority, cut, RRType::kDS, RRClass::kIN, 300, kV6);
    if (done) servers.put_addresses(writer);
    const ByteView message = writer.finish();
    result_.assign(message.begin(), message.end());
    return done;
  }
};

TEST_F(ServerSetTemplateTest, StandsAtEveryCut) {
  for (const char* host : {"ns.example.", "ns.servers.example.", "ns.elsewhere.test."}) {
    const auto servers = make("example.", host);
    ASSERT_TRUE(servers);
    EXPECT_TRUE(servers->has_addresses());
    for (const char* qname : {"a.example.", "long-label.example."}) {
      EXPECT_TRUE(refer(*servers, qname, 0, 512));
      EXPECT_EQ(owners(), (std::vector<std::string>{qname, qname, host}));
    }
    EXPECT_TRUE(refer(*servers, "x.y.cut.example.", 2, 512));
    EXPECT_EQ(owners(), (std::vector<std::string>{"cut.example.", "cut.example.", host}));
    EXPECT_TRUE(refer(*servers, "x.deeper.cut.example.", 1, 512));
    EXPECT_EQ(owners(),
              (std::vector<std::string>{"deeper.cut.example.", "deeper.cut.example.", host}));
  }
}

TEST_F(ServerSetTemplateTest, AddressesThatDoNotFitAreLeftOut) {
  const auto servers = make("example.", "ns.example.");
  ASSERT_TRUE(servers);
  ASSERT_TRUE(refer(*servers, "cut.example.", 0, 512));
  const std::size_t whole = result_.size();
  EXPECT_TRUE(refer(*servers, "cut.example.", 0, whole));
  EXPECT_EQ(owners().size(), 3U);
  EXPECT_TRUE(refer(*servers, "cut.example.", 0, whole - 1));
  EXPECT_EQ(owners().size(), 2U);
  EXPECT_FALSE(refer(*servers, "cut.example.", 0, 40));
  EXPECT_TRUE(owners().empty()) << "nothing is left of what did not fit";
}

TEST_F(ServerSetTemplateTest, MessagesOfAnotherFormGiveNone) {
  EXPECT_FALSE(make(".", "ns.example."));
  EXPECT_FALSE(ServerSetTemplate::from(message_, {}));
  EXPECT_FALSE(ServerSetTemplate::from(ByteView(message_).first(20), ends_));
}

TEST_F(MessageTemplateTest, LeavesOutFromTheEndWhatDoesNotFit) {
  const auto all = MessageTemplate::make(message_, ends_, 2);
  const auto first = MessageTemplate::make(message_, ends_, 1);
  ASSERT_TRUE(all && first);
  const std::size_t without_last = ends_[1].size;
  EXPECT_EQ(put(*first, "sub.example.", without_last), MessageTemplate::Put::kComplete);
  EXPECT_EQ(owners().size(), 2U);
  EXPECT_EQ(put(*all, "sub.example.", without_last), MessageTemplate::Put::kTruncated);
  EXPECT_EQ(owners().size(), 2U);
  EXPECT_EQ(put(*first, "sub.example.", ends_[0].size), MessageTemplate::Put::kTruncated);
  EXPECT_EQ(put(*first, "sub.example.", ends_[0].size - 1U), MessageTemplate::Put::kNothing);
  EXPECT_TRUE(owners().empty());
}

TEST_F(MessageTemplateTest, IsNotMadeOfOtherMessages) {
  EXPECT_FALSE(MessageTemplate::make(message_, ends_, 3)) << "more required than there are";
  EXPECT_FALSE(MessageTemplate::make(ByteView(message_).first(message_.size() - 1), ends_, 1));
  Bytes answered = message_;
  answered[7] = 1;  // ANCOUNT
  answered[9] = 0;  // NSCOUNT
  EXPECT_FALSE(MessageTemplate::make(answered, ends_, 1));
  Bytes other = message_;
  constexpr std::size_t kTypeOfTheFirst = 12 + 13 + 4 + 2 + 1;
  other[kTypeOfTheFirst] = 15;  // MX: its RDATA may be compressed, too
  EXPECT_FALSE(MessageTemplate::make(other, ends_, 1));
  EXPECT_FALSE(MessageTemplate::make(Bytes(MessageTemplate::kMaxOctets + 1), ends_, 1));
}

}  // namespace message_template_test
}  // namespace pando::dns
