#include "manager/secondary/transfer/transfer_parser.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <deque>

#include "dns/rdata/rdata.h"
#include "manager/commit/zone_diff.h"
#include "tests/unit/manager/zone_support.h"
#include "tests/unit/shm/support.h"
#include "zone/read/each_record.h"

namespace pando::manager {
namespace transfer_parser_test {

constexpr std::uint16_t kId = 4711;

dns::Name name(std::string_view text) { return *dns::Name::from_text(text); }

/// One response message from lines "owner TYPE rdata".
class Message {
 public:
  explicit Message(const std::vector<std::string>& lines, bool question = true,
                   dns::RRType asked = dns::RRType::kIXFR)
      : writer_(space_, sizeof space_) {
    dns::Header header;
    header.id = kId;
    header.qr = true;
    writer_.put_header(header);
    if (question) {
      EXPECT_TRUE(writer_.put_question(name("example."), asked, dns::RRClass::kIN));
    }
    for (const std::string& line : lines) put(line);
  }
  ByteView bytes() { return writer_.finish(); }
  std::uint8_t space_[65535];

 private:
  void put(const std::string& line) {
    const auto owner_end = line.find(' ');
    const auto type_end = line.find(' ', owner_end + 1);
    const auto type = dns::rrtype_from_text(line.substr(owner_end + 1, type_end - owner_end - 1));
    ASSERT_TRUE(type) << line;
    Bytes rdata;
    const auto read = dns::rdata_from_text(*type, std::string_view(line).substr(type_end + 1),
                                           dns::NameView(), rdata);
    ASSERT_TRUE(read) << line;
    ASSERT_TRUE(writer_.put_record(dns::Section::kAnswer, name(line.substr(0, owner_end)), *type,
                                   dns::RRClass::kIN, 300, rdata));
  }
  dns::MessageWriter writer_;
};

std::string soa(int serial) {
  return "example. SOA ns.example. admin.example. " + std::to_string(serial) +
         " 7200 3600 1209600 300";
}
const std::string kNs = "example. NS ns.example.";

/// What whole zones are built in; nothing of it is published.
shm::Transaction& scratch() {
  static const shm::test::Folder folder;
  static shm::Store store = shm::test::must(shm::Store::create(shm::test::options(folder)));
  static std::deque<shm::Transaction> transactions;
  return transactions.emplace_back(store.begin_private());
}

TransferParser ixfr(std::uint32_t current, const TransferLimits& limits = {}) {
  return {name("example."), dns::RRType::kIXFR, dns::Serial{current}, kId, limits, scratch()};
}
TransferParser axfr(const TransferLimits& limits = {}) {
  return {name("example."), dns::RRType::kAXFR, std::nullopt, kId, limits, scratch()};
}

/// Feeds messages; "more", "done" or the error.
std::string feed(TransferParser& parser, const std::vector<std::vector<std::string>>& messages,
                 dns::RRType asked = dns::RRType::kIXFR) {
  std::string state = "more";
  bool first = true;
  for (const auto& lines : messages) {
    auto message = std::make_unique<Message>(lines, first, asked);
    first = false;
    const auto done = parser.feed(message->bytes());
    if (!done) return done.error().text;
    state = *done ? "done" : "more";
  }
  return state;
}

TEST(TransferParser, SingleSoaNotAheadMeansUpToDate) {
  for (const int serial : {7, 6}) {
    auto parser = ixfr(7);
    EXPECT_EQ(feed(parser, {{soa(serial)}}), "done");
    EXPECT_EQ(parser.content(), TransferParser::Content::kUpToDate);
  }
}

TEST(TransferParser, SingleSoaAheadIsTheFirstMessageOfMore) {
  auto parser = ixfr(7);
  EXPECT_EQ(feed(parser, {{soa(8)}}), "more");
  auto whole = axfr();
  EXPECT_EQ(feed(whole, {{soa(7)}}, dns::RRType::kAXFR), "more");
}

TEST(TransferParser, AWholeZoneThatIsNotAheadIsRefusedAtItsSecondRecord) {
  for (const int serial : {7, 6}) {
    auto parser = ixfr(7);
    EXPECT_EQ(feed(parser, {{soa(serial), kNs}}),
              fmt::format("transfer brings serial {}, which is not ahead of ours, 7", serial));
  }
  auto ahead = ixfr(7);
  EXPECT_EQ(feed(ahead, {{soa(8), kNs}}), "more");
}

TEST(TransferParser, ReadsDifferencesInOrder) {
  auto parser = ixfr(7);
  EXPECT_EQ(
      feed(parser, {{soa(9), soa(7), "a.example. A 192.0.2.1", soa(8), "b.example. A 192.0.2.2"},
                    {"c.example. A 192.0.2.3", soa(8), soa(9)},
                    {"d.example. A 192.0.2.4", soa(9)}}),
      "done");
  ASSERT_EQ(parser.content(), TransferParser::Content::kChangesets);
  ASSERT_EQ(parser.changesets().size(), 2U);
  const auto& first = parser.changesets()[0];
  EXPECT_EQ(first.removed.size(), 2U);
  EXPECT_EQ(first.added.size(), 3U);
  EXPECT_EQ(first.removed[0].type, dns::RRType::kSOA);
  EXPECT_EQ(first.added[2].owner, name("c.example."));
  EXPECT_EQ(parser.changesets()[1].removed.size(), 1U);
  EXPECT_EQ(parser.changesets()[1].added.size(), 2U);
  EXPECT_EQ(parser.serial().value, 9U);
}

TEST(TransferParser, WholeZoneInsteadOfDifferences) {
  auto parser = ixfr(7);
  EXPECT_EQ(feed(parser, {{soa(9), kNs}, {"a.example. A 192.0.2.1"}, {soa(9)}}), "done");
  EXPECT_EQ(parser.content(), TransferParser::Content::kZone);
  EXPECT_EQ(parser.received_zone().builder().record_count(), 3U)
      << "the closing SOA is no second record";
}

TEST(TransferParser, AxfrTakesASoaInSecondPlaceAsTheEnd) {
  auto parser = axfr();
  EXPECT_EQ(feed(parser, {{soa(9), soa(9)}}, dns::RRType::kAXFR), "done");
  EXPECT_EQ(parser.content(), TransferParser::Content::kZone);
}

TEST(TransferParser, ForeignRecordsAreLeftOutOfAZone) {
  auto parser = axfr();
  EXPECT_EQ(feed(parser, {{soa(9), kNs, "www.other. A 192.0.2.1", soa(9)}}, dns::RRType::kAXFR),
            "done");
  EXPECT_EQ(parser.received_zone().foreign_records(), 1U);
  EXPECT_EQ(parser.received_zone().builder().record_count(), 2U);
}

TEST(TransferParser, RefusesBrokenStreams) {
  const auto reason = [](std::uint32_t current,
                         const std::vector<std::vector<std::string>>& messages) {
    auto parser = ixfr(current);
    return feed(parser, messages);
  };
  EXPECT_EQ(reason(7, {{kNs}}), "transfer does not begin with the zone's SOA");
  EXPECT_EQ(reason(7, {{"www.example. SOA a. b. 9 2 3 4 5"}}),
            "transfer does not begin with the zone's SOA");
  EXPECT_EQ(reason(7, {{}}), "no records in the first message of a transfer");
  EXPECT_EQ(reason(7, {{soa(9), soa(6), soa(9), soa(9)}}),
            "difference from serial 6 where 7 is needed");
  EXPECT_EQ(reason(7, {{soa(9), soa(7), soa(8), soa(7), soa(9), soa(9)}}),
            "difference from serial 7 where 8 is needed");
  EXPECT_EQ(reason(7, {{soa(9), soa(7), soa(6)}}), "difference to serial 6, which is not ahead");
  EXPECT_EQ(reason(7, {{soa(9), soa(7), "x.other. A 192.0.2.1"}}), "x.other. is outside the zone");
  EXPECT_EQ(reason(7, {{soa(9), kNs, soa(8)}}), "transfer ends with serial 8 and began with 9");
  EXPECT_EQ(reason(7, {{soa(9), kNs, soa(9), kNs}}), "records behind the last SOA");
  EXPECT_EQ(reason(7, {{soa(9), soa(7), soa(9), soa(9), kNs}}), "records behind the last SOA");
}

TEST(TransferParser, ChecksEachMessagesHeader) {
  const auto reason = [](auto&& change) {
    Message message({soa(9), kNs, soa(9)});
    Bytes bytes(message.bytes().begin(), message.bytes().end());
    change(bytes);
    auto parser = ixfr(7);
    const auto done = parser.feed(bytes);
    return done ? std::string("taken") : done.error().text;
  };
  EXPECT_EQ(reason([](Bytes&) {}), "taken");
  EXPECT_EQ(reason([](Bytes& b) { ++b[0]; }), "message that is no answer to the transfer's query");
  EXPECT_EQ(reason([](Bytes& b) { b[2] &= 0x7F; }),
            "message that is no answer to the transfer's query");
  EXPECT_EQ(reason([](Bytes& b) { b[2] |= 2; }), "truncated message in a transfer");
  EXPECT_EQ(reason([](Bytes& b) { b[3] |= 9; }), "primary answers NOTAUTH");
  EXPECT_EQ(reason([](Bytes& b) { b[13] ^= 1; }), "answer to another question");
  Message message({soa(9), kNs, soa(9)});
  const ByteView whole = message.bytes();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    auto parser = ixfr(7);
    EXPECT_FALSE(parser.feed(whole.first(size))) << size;
  }
}

TEST(TransferParser, DifferencesHaveALimitThatAZoneHasNot) {
  TransferLimits limits;
  limits.changesets.records = 4;
  auto parser = ixfr(7, limits);
  EXPECT_EQ(feed(parser, {{soa(8), soa(7), "a.example. A 192.0.2.1", "b.example. A 192.0.2.1",
                           "c.example. A 192.0.2.1", soa(8), soa(8)}}),
            "changesets of more than 4 records");
  auto whole = ixfr(7, limits);
  EXPECT_EQ(feed(whole, {{soa(8), kNs, "a.example. A 192.0.2.1", "b.example. A 192.0.2.1",
                          "c.example. A 192.0.2.1", soa(8)}}),
            "done");
}

TEST(TransferParser, DifferencesOfNothingButSerialsHaveTheSameLimit) {
  TransferLimits limits;
  limits.changesets.records = 4;
  auto parser = ixfr(1, limits);
  EXPECT_EQ(feed(parser, {{soa(9), soa(1), soa(2), soa(2), soa(3), soa(3)}}),
            "changesets of more than 4 records");
}

TEST(TransferParser, DifferencesHaveALimitOfMemory) {
  TransferLimits limits;
  constexpr std::size_t kSoaOctets = 9 + 47;  // owner and RDATA of the records that soa() makes
  limits.changesets.bytes = sizeof(zone::Changeset) + 4 * sizeof(zone::Record) + 2 * kSoaOctets;
  const std::string too_much =
      "changesets of more than " + std::to_string(limits.changesets.bytes) + " bytes";
  auto small = ixfr(7, limits);
  EXPECT_EQ(feed(small, {{soa(8), soa(7), "a.example. A 192.0.2.1", soa(8), soa(8)}}), "done");
  auto many = ixfr(7, limits);
  EXPECT_EQ(feed(many, {{soa(8), soa(7), "a.example. A 192.0.2.1", "b.example. A 192.0.2.1", soa(8),
                         soa(8)}}),
            too_much);
  auto large = ixfr(7, limits);
  const std::string text = ' ' + std::string(250, 'x');
  EXPECT_EQ(feed(large, {{soa(8), soa(7), "a.example. TXT" + text + text, soa(8), soa(8)}}),
            too_much);
  auto whole = ixfr(7, limits);
  EXPECT_EQ(feed(whole, {{soa(8), kNs, "a.example. TXT" + text + text, soa(8)}}), "done");
}

std::vector<std::string> lines_of(const zone::ZoneView& zone) {
  std::vector<std::string> lines;
  const auto walked = zone::for_each_record(
      zone, [&](dns::NameView owner, dns::RRType type, dns::Ttl ttl, ByteView rdata) -> Status {
        lines.push_back(fmt::format("{} {} {} {}", dns::to_text(owner), ttl.seconds,
                                    dns::to_text(type), dns::rdata_to_text(type, rdata)));
        return {};
      });
  EXPECT_TRUE(walked);
  return lines;
}

/// The same stream, compared with a served zone and given to the builder after each message.
TEST(TransferParser, AZoneThatIsComparedCanBeBuiltAtAnyMoment) {
  testing::ZoneStore served({"@ 3600 SOA ns1 admin 7 3600 600 86400 300", "@ 300 NS ns1",
                             "a 300 A 192.0.2.1", "b 300 A 192.0.2.2"});
  const zone::ZoneView live = served.zone();
  const std::vector<std::vector<std::string>> messages = {{soa(9), kNs, "b.example. A 192.0.2.2"},
                                                          {"a.example. A 192.0.2.1"},
                                                          {"a.example. A 192.0.2.3", soa(9)}};
  std::vector<std::string> expected;
  for (std::size_t built_behind = 0; built_behind <= messages.size(); ++built_behind) {
    shm::Transaction transaction = served.store().begin_private();
    TransferParser parser(name("example."), dns::RRType::kAXFR, dns::Serial{7}, kId, {},
                          transaction);
    parser.received_zone().wait();
    EXPECT_FALSE(parser.received_zone().waits());
    for (std::size_t at = 0; at < messages.size(); ++at) {
      Message message(messages[at], at == 0, dns::RRType::kAXFR);
      const auto done = parser.feed(message.bytes());
      ASSERT_TRUE(done) << done.error().text;
      EXPECT_EQ(*done, at + 1 == messages.size());
      ASSERT_EQ(parser.received_zone().waits(), at == 0);
      if (parser.received_zone().waits()) {
        ASSERT_TRUE(parser.received_zone().resume(built_behind == 0 ? nullptr : &live));
      }
      EXPECT_EQ(parser.received_zone().comparison() == nullptr, built_behind <= at);
      if (at + 1 == built_behind) {
        ASSERT_TRUE(parser.received_zone().build_instead());
      }
    }
    const auto built = parser.received_zone().builder().finish();
    ASSERT_TRUE(built) << built.error().text;
    const BuiltView view(served.store(), name("example."), **built);
    const std::vector<std::string> lines = lines_of(view.zone().value());
    if (built_behind == 0) expected = lines;
    EXPECT_EQ(lines.size(), 5U);
    EXPECT_EQ(lines, expected) << "built behind message " << built_behind;
  }
}

TEST(TransferParser, KeepsItsLimits) {
  TransferLimits limits;
  limits.data.zone_records = 2;
  auto parser = axfr(limits);
  EXPECT_EQ(feed(parser, {{soa(9), kNs, "a.example. A 192.0.2.1", soa(9)}}, dns::RRType::kAXFR),
            "more than 2 records (limits.zone-records)");
  limits = {};
  limits.octets = 50;
  auto narrow = axfr(limits);
  EXPECT_EQ(feed(narrow, {{soa(9), kNs, soa(9)}}, dns::RRType::kAXFR),
            "transfer above 50 octets (limits.transfer-size)");
}

}  // namespace transfer_parser_test
}  // namespace pando::manager
