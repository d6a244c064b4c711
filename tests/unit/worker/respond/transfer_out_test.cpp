#include "worker/respond/transfer_out.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>

#include "shm/slots.h"
#include "tests/unit/worker/query_builder.h"

namespace pando::worker {
namespace transfer_out_test {

using dns::RRType;
using pando::testing::name;
using pando::testing::Response;
using pando::testing::TestZone;

const std::string kHead = "$TTL 300\n@ SOA ns1 admin 7 3600 600 86400 60\n@ NS ns1\n";

std::vector<TestZone> one_zone(const std::string& text) {
  TestZone zone{"example.com.", kHead + text};
  return {zone};
}

/// All records of a zone as a transfer gives them, message by message.
class Stream {
 public:
  Stream(const std::string& text, std::size_t message_octets)
      : store_(one_zone(text)), octets_(message_octets) {}

  ZoneStream::Step run() {
    const auto zone = store_.view().zone_at(name("example.com."));
    auto stream = std::make_unique<ZoneStream>(zone);
    std::vector<std::uint8_t> space(65535);
    for (int guard = 0; guard < 100000; ++guard) {
      dns::MessageWriter writer(space, octets_);
      writer.put_header({});
      writer.keep_case();
      const auto step = stream->fill(writer);
      stream = std::make_unique<ZoneStream>(std::move(*stream));  // a transfer may be moved, too
      if (step == ZoneStream::Step::kStuck) return step;
      written_ += writer.size();
      const Response response = pando::testing::read_response(writer.finish());
      EXPECT_FALSE(response.answer.empty());
      ++messages_;
      for (const auto& line : response.answer_text()) lines_.push_back(line);
      if (step == ZoneStream::Step::kDone) return step;
    }
    ADD_FAILURE() << "the stream does not end";
    return ZoneStream::Step::kStuck;
  }
  [[nodiscard]] const std::vector<std::string>& lines() const { return lines_; }
  [[nodiscard]] int messages() const { return messages_; }
  [[nodiscard]] std::size_t octets() const { return written_; }
  /// Number of names whose NS RRset the store shares.
  [[nodiscard]] std::size_t shared_sets() const {
    std::size_t count = 0;
    auto cursor = store_.view().zone_at(name("example.com.")).begin();
    while (const zone::RecordView record = cursor.next())
      count += record.find(RRType::kNS).is_shared() ? 1 : 0;
    return count;
  }

 private:
  pando::testing::ZoneStore store_;
  std::size_t octets_;
  std::vector<std::string> lines_;
  std::size_t written_ = 0;
  int messages_ = 0;
};

TEST(ZoneStream, HasTheSoaFirstAndLastAndEverythingElseOnceBetween) {
  Stream stream("ns1 A 192.0.2.1\nns1 AAAA 2001:db8::1\na.b MX 5 ns1\n* TXT wild\n", 4096);
  ASSERT_EQ(stream.run(), ZoneStream::Step::kDone);
  const auto& lines = stream.lines();
  ASSERT_EQ(lines.size(), 7U);
  EXPECT_NE(lines.front().find(" SOA "), std::string::npos);
  EXPECT_EQ(lines.front(), lines.back());
  for (std::size_t i = 1; i + 1 < lines.size(); ++i)
    EXPECT_EQ(lines[i].find(" SOA "), std::string::npos) << lines[i];
}

TEST(ZoneStream, GivesTheSameRecordsWhateverTheMessageSize) {
  std::string text;
  for (int i = 0; i < 60; ++i)
    text += "h" + std::to_string(i) + " TXT \"" + std::string(static_cast<std::size_t>(i), 'x') +
            "\"\nh" + std::to_string(i) + " A 192.0.2." + std::to_string(i) + "\n";
  Stream whole(text, 65535);
  ASSERT_EQ(whole.run(), ZoneStream::Step::kDone);
  EXPECT_EQ(whole.messages(), 1);
  for (const std::size_t octets : {150U, 200U, 333U, 512U, 1000U}) {
    Stream pieces(text, octets);
    ASSERT_EQ(pieces.run(), ZoneStream::Step::kDone) << octets;
    EXPECT_EQ(pieces.lines(), whole.lines()) << octets;
    EXPECT_GT(pieces.messages(), 1);
  }
}

/// A registry's zone: so many delegations to a few sets of servers that the store shares the sets.
std::string shared_delegations(std::vector<std::string>& records) {
  const auto digits = [](int number) {
    std::string text = std::to_string(number);
    return std::string(5 - text.size(), '0') + text;
  };
  std::string text = "ns1 A 192.0.2.1\n";
  records.emplace_back("ns1.example.com. A 192.0.2.1");
  for (int i = 0; i < 4000; ++i) {
    const std::string cut = "d" + digits(i) + ".example.com.";
    const std::string servers = ".a-rather-long-name-of-an-operator" + std::to_string(i % 7) + ".Test.";
    // Seven servers are more than a stream remembers the places of.
    for (int server = 0; server < (i % 7 == 6 ? 7 : 4); ++server) {
      const std::string host = "ns" + std::to_string(server) + servers;
      text.append(cut).append(" NS ").append(host).append("\n");
      records.push_back(cut + " NS " + host);
    }
    if (i % 5 == 0) {
      text += cut + " DS 1 8 2 " + std::string(64, 'A') + "\n";
      records.push_back(cut + " DS 1 8 2 " + std::string(64, 'A'));
    }
  }
  return text;
}

TEST(ZoneStream, WritesSharedServersOnceAMessage) {
  std::vector<std::string> expected;
  const std::string text = shared_delegations(expected);
  Stream stream(text, kTransferMessageOctets);
  EXPECT_GT(stream.shared_sets(), 2000U) << "the store does not share the sets";
  ASSERT_EQ(stream.run(), ZoneStream::Step::kDone);
  std::vector<std::string> lines(stream.lines().begin() + 2, stream.lines().end() - 1);
  std::sort(lines.begin(), lines.end());
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(lines, expected);
  // Owner and server are a pointer each in nearly all records.
  EXPECT_LT(stream.octets(), expected.size() * 22);
}

TEST(ZoneStream, SplitsAnRRsetThatIsLargerThanAMessage) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += "many TXT \"number " + std::to_string(i) + "\"\n";
  Stream stream(text, 300);
  ASSERT_EQ(stream.run(), ZoneStream::Step::kDone);
  EXPECT_EQ(stream.lines().size(), 103U);
  auto sorted = stream.lines();
  std::sort(sorted.begin(), sorted.end());
  // Only the SOA comes twice.
  EXPECT_EQ(std::unique(sorted.begin(), sorted.end()) - sorted.begin(), 102);
}

TEST(ZoneStream, IsStuckWhenOneRecordDoesNotFitAnEmptyMessage) {
  Stream stream("big TXT \"" + std::string(200, 'x') + "\"\n", 150);
  EXPECT_EQ(stream.run(), ZoneStream::Step::kStuck);
}

TEST(ZoneStream, SendsSignaturesWithTheirTypeAlsoOfTheSoa) {
  const std::string rrsig = " 8 2 300 20300101000000 20200101000000 12345 example.com. AAAA\n";
  Stream stream(
      "@ RRSIG SOA" + rrsig + "@ RRSIG NS" + rrsig + "ns1 A 192.0.2.1\nns1 RRSIG A" + rrsig, 4096);
  ASSERT_EQ(stream.run(), ZoneStream::Step::kDone);
  std::map<std::string, int> covered;
  for (const auto& line : stream.lines())
    for (const char* type : {"RRSIG SOA", "RRSIG NS", "RRSIG A"})
      if (line.find(std::string(type) + " ") != std::string::npos) ++covered[type];
  EXPECT_EQ(covered["RRSIG SOA"], 1);
  EXPECT_EQ(covered["RRSIG NS"], 1);
  EXPECT_EQ(covered["RRSIG A"], 1);
}

zone::Record record_of(const std::string& owner, RRType type, const std::string& rdata) {
  zone::Record record{name(owner), type, {300}, {}};
  EXPECT_TRUE(dns::rdata_from_text(type, rdata, dns::NameView(), record.rdata));
  return record;
}

zone::Record soa_record_of(unsigned serial) {
  return record_of(
      "example.com.", RRType::kSOA,
      "ns1.example.com. admin.example.com. " + std::to_string(serial) + " 3600 600 86400 60");
}

/// One difference; the records are added.
void move_on(pando::testing::ZoneStore& store, unsigned from, unsigned to,
             std::vector<zone::Record> added) {
  zone::Changeset changes{name("example.com."), {soa_record_of(from)}, std::move(added)};
  changes.added.push_back(soa_record_of(to));
  auto transaction = store.store().begin();
  const auto current = store.store().current();
  zone::Draft draft(transaction, current.root, current.number + 1);
  ASSERT_TRUE(draft.apply(changes, zone::DataLimits::none()));
  const auto root = draft.root();
  ASSERT_TRUE(store.store().publish(std::move(transaction), root, 0));
}

/// A zone of 203 records at serial 10, with a history from 7 on.
class Differences : public ::testing::Test {
 protected:
  Differences() : store_(one_zone(body())) {
    move_on(store_, 7, 8, {record_of("x.example.com.", RRType::kTXT, "\"one\"")});
    std::vector<zone::Record> many;
    for (int i = 0; i < 50; ++i)
      many.push_back(
          record_of("Many.example.com.", RRType::kTXT, "\"number " + std::to_string(i) + "\""));
    move_on(store_, 8, 9, std::move(many));
    move_on(store_, 9, 10, {record_of("y.example.com.", RRType::kMX, "5 x.example.com.")});
  }
  static std::string body() {
    std::string text;
    for (int i = 0; i < 150; ++i) text += "h" + std::to_string(i) + " A 192.0.2.1\n";
    return text;
  }
  [[nodiscard]] zone::ZoneView zone() const { return store_.view().zone_at(name("example.com.")); }
  std::vector<std::string> run(unsigned since, std::size_t octets) {
    auto stream = DifferenceStream::since(zone(), {since});
    EXPECT_TRUE(stream);
    std::vector<std::string> lines;
    messages_ = 0;
    for (auto step = StreamStep::kMore; stream && step == StreamStep::kMore; ++messages_) {
      std::vector<std::uint8_t> space(65535);
      dns::MessageWriter writer(space, octets);
      writer.put_header({});
      writer.keep_case();
      step = stream->fill(writer);
      if (step == StreamStep::kStuck) return {"stuck"};
      for (const auto& line : pando::testing::read_response(writer.finish()).answer_text())
        lines.push_back(line);
    }
    EXPECT_EQ(lines.size(), stream ? stream->records() : 0);
    return lines;
  }

  pando::testing::ZoneStore store_;
  int messages_ = 0;
};

TEST_F(Differences, AreBetweenTwoSoasWhateverTheMessageSize) {
  const auto whole = run(7, 65535);
  EXPECT_EQ(messages_, 1);
  ASSERT_EQ(whole.size(), 2U + 3 * 2 + 52);
  EXPECT_EQ(whole.front(), whole.back());
  EXPECT_NE(whole[0].find(" 10 3600"), std::string::npos) << whole[0];
  EXPECT_NE(whole[1].find(" 7 3600"), std::string::npos) << whole[1];
  EXPECT_NE(whole[2].find(" 8 3600"), std::string::npos) << whole[2];
  EXPECT_NE(whole[3].find("x.example.com."), std::string::npos) << whole[3];
  for (const std::size_t octets : {150U, 200U, 512U, 1000U}) {
    EXPECT_EQ(run(7, octets), whole) << octets;
    EXPECT_GT(messages_, 1);
  }
  EXPECT_EQ(run(9, 512).size(), 5U);
}

TEST_F(Differences, AreStuckWhereARecordDoesNotFit) {
  EXPECT_EQ(run(7, 60), std::vector<std::string>{"stuck"});
}

TEST_F(Differences, AreNotGivenWhenTheZoneIsTheSmallerAnswer) {
  std::vector<zone::Record> many;
  for (int i = 0; i < 300; ++i)
    many.push_back(record_of("n" + std::to_string(i) + ".example.com.", RRType::kA, "192.0.2.1"));
  zone::Changeset changes{name("example.com."), many, {}};
  move_on(store_, 10, 11, many);
  changes.removed.push_back(soa_record_of(11));
  changes.added.push_back(soa_record_of(12));
  EXPECT_TRUE(DifferenceStream::since(zone(), {10}));
  auto transaction = store_.store().begin();
  const auto current = store_.store().current();
  zone::Draft draft(transaction, current.root, current.number + 1);
  ASSERT_TRUE(draft.apply(changes, zone::DataLimits::none()));
  const auto root = draft.root();
  ASSERT_TRUE(store_.store().publish(std::move(transaction), root, 0));
  EXPECT_FALSE(DifferenceStream::since(zone(), {10})) << "604 records, and the zone has 206";
  EXPECT_FALSE(DifferenceStream::since(zone(), {11}));
  EXPECT_FALSE(DifferenceStream::since(zone(), {6}));
  EXPECT_FALSE(DifferenceStream::since(zone(), {12}));
}

/// A whole transfer with a reader's lease.
class TransferTest : public ::testing::Test {
 protected:
  TransferTest() : store_(one_zone(body())) {
    char pattern[] = "/dev/shm/pando-slots-XXXXXX";
    directory_ = ::mkdtemp(pattern);
    const auto layout = zone::layout_fingerprint();
    slots_.emplace(shm::SlotTable::open(directory_, store_.path(), layout).value());
    EXPECT_TRUE(slots_->add(0));
    reader_ = std::make_shared<shm::Reader>(
        shm::Reader::attach(slots_->lend(0).value(), layout, 0).value());
  }
  ~TransferTest() override {
    reader_.reset();
    slots_->remove(0);
    ::rmdir(directory_.c_str());
  }
  static std::string body() {
    std::string text = "huge TXT ";
    for (int i = 0; i < 200; ++i) text += "\"" + std::string(200, 'y') + "\" ";  // 40 kB
    text += "\n";
    for (int i = 0; i < 3000; ++i) text += "h" + std::to_string(i) + " A 192.0.2.1\n";
    return text;
  }
  TransferOut start(TransferPlan plan = {}) {
    plan.apex = name("example.com.");
    plan.question = {plan.apex, RRType::kAXFR, dns::RRClass::kIN};
    plan.header.qr = plan.header.aa = true;
    const auto view = reader_->pin();
    auto version = HeldVersion::take(reader_, view);
    EXPECT_TRUE(version);
    TransferOut transfer(std::move(plan), std::move(*version), {});
    reader_->unpin();
    return transfer;
  }
  bool lease_in_use() {
    const auto& leases = slots_->page(0)->leases;
    return std::any_of(leases.begin(), leases.end(),
                       [](const auto& lease) { return lease.epoch.load() != 0; });
  }

  pando::testing::ZoneStore store_;
  std::string directory_;
  std::optional<shm::SlotTable> slots_;
  std::shared_ptr<shm::Reader> reader_;
  std::vector<std::uint8_t> space_ = std::vector<std::uint8_t>(65535);
};

TEST_F(TransferTest, ARecordLargerThanTheUsualMessageGetsALargerOne) {
  auto transfer = start();
  std::size_t records = 0;
  std::size_t largest = 0;
  for (;;) {
    std::size_t size = 0;
    const auto step = transfer.next(space_, size, 1);
    ASSERT_NE(step, TransferOut::Step::kFailed);
    records += pando::testing::read_response({space_.data(), size}).answer.size();
    largest = std::max(largest, size);
    if (step == TransferOut::Step::kLastMessage) break;
  }
  EXPECT_EQ(records, 3000U + 4);
  EXPECT_GT(largest, 40'000U);
  const auto report = transfer.report(ipc::TransferEnd::kComplete);
  EXPECT_EQ(report.records, records);
  EXPECT_EQ(report.serial, 7U);
}

TEST_F(TransferTest, OnlyTheFirstMessageRepeatsTheQuestionAndHasTheOpt) {
  TransferPlan plan;
  plan.edns = true;
  plan.udp_payload = 1232;
  plan.expire = 99;
  auto transfer = start(std::move(plan));
  std::size_t size = 0;
  ASSERT_EQ(transfer.next(space_, size, 1), TransferOut::Step::kMessage);
  const Response first = pando::testing::read_response({space_.data(), size});
  EXPECT_TRUE(first.question);
  ASSERT_TRUE(first.edns);
  EXPECT_TRUE(dns::find_option(first.edns->options, dns::kOptionExpire));
  ASSERT_NE(transfer.next(space_, size, 1), TransferOut::Step::kFailed);
  const Response second = pando::testing::read_response({space_.data(), size});
  EXPECT_FALSE(second.question);
  EXPECT_FALSE(second.edns);
}

TEST_F(TransferTest, ARevokedLeaseEndsTheTransferAtTheNextMessage) {
  auto transfer = start();
  std::size_t size = 0;
  ASSERT_EQ(transfer.next(space_, size, 1), TransferOut::Step::kMessage);
  for (auto& lease : slots_->page(0)->leases) lease.revoke.store(1);
  EXPECT_EQ(transfer.next(space_, size, 1), TransferOut::Step::kFailed);
  EXPECT_EQ(transfer.end(), ipc::TransferEnd::kVersionGone);
}

TEST_F(TransferTest, TheLeaseIsGivenUpWithTheTransfer) {
  {
    const auto transfer = start();
    EXPECT_TRUE(lease_in_use());
  }
  EXPECT_FALSE(lease_in_use());
}

TEST_F(TransferTest, AVersionIsHeldWhileTheZoneChanges) {
  auto transfer = start();
  auto transaction = store_.store().begin();
  zone::Draft draft(transaction, store_.store().current().root, 3);
  ASSERT_TRUE(draft.remove_zone(name("example.com.")));
  const auto root = draft.root();
  ASSERT_TRUE(store_.store().publish(std::move(transaction), root, 0));
  std::size_t records = 0;
  std::size_t size = 0;
  for (TransferOut::Step step = TransferOut::Step::kMessage; step == TransferOut::Step::kMessage;) {
    step = transfer.next(space_, size, 1);
    ASSERT_NE(step, TransferOut::Step::kFailed);
    records += pando::testing::read_response({space_.data(), size}).answer.size();
  }
  EXPECT_EQ(records, 3000U + 4);
}

}  // namespace transfer_out_test
}  // namespace pando::worker
