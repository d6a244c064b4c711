#include "zone/history/history.h"

#include <algorithm>
#include <random>
#include <set>

#include "tests/unit/zone/draft/zone_fixture.h"
#include "zone/draft/compaction.h"
#include "zone/draft/discarded_blocks.h"
#include "zone/draft/shorten_histories.h"

namespace pando::zone {
namespace history_test {

using testing::dump;
using testing::name;

std::string soa(std::uint32_t serial) {
  return "example. 60 SOA a. b. " + std::to_string(serial) + " 2 3 4 5";
}

std::string text(const HistoryRecord& record) {
  return dns::to_text(dns::Name(record.owner)) + " " + std::to_string(record.ttl.seconds) + " " +
         dns::to_text(record.type) + " " + dns::rdata_to_text(record.type, record.rdata);
}

/// "- record" and "+ record" of all that leads on from `serial`; one line "none" or "damaged".
std::vector<std::string> history_of(const ZoneView& zone, std::uint32_t serial) {
  auto reader = HistoryReader::from(zone, {serial});
  if (!reader) return {"none"};
  std::vector<std::string> lines;
  const std::uint32_t promised = reader->records();
  while (const HistoryRecord* record = reader->next())
    lines.push_back((record->added ? "+ " : "- ") + text(*record));
  if (reader->damaged()) return {"damaged"};
  EXPECT_EQ(lines.size(), promised);
  return lines;
}

class History : public testing::ZoneTest {
 protected:
  void SetUp() override { ASSERT_TRUE(load("example.", {soa(1), "example. 60 NS a."})); }
  Result<Applied> step(std::uint32_t from, std::uint32_t to, std::vector<std::string> removed,
                       std::vector<std::string> added, const DataLimits& limits = {}) {
    removed.push_back(soa(from));
    added.push_back(soa(to));
    return apply("example.", removed, added, limits);
  }
  [[nodiscard]] ZoneView zone() const { return testing::ZoneTest::zone("example."); }
};

TEST_F(History, StartsEmpty) {
  EXPECT_EQ(zone().history_bytes(), 0U);
  EXPECT_EQ(history_of(zone(), 1), std::vector<std::string>{"none"});
}

TEST_F(History, GivesChangesetsInTheOrderOfIncrementalTransfers) {
  ASSERT_TRUE(step(1, 2, {}, {"x.example. 60 A 192.0.2.1", "x.example. 60 A 192.0.2.2"}));
  ASSERT_TRUE(step(2, 5, {"x.example. 60 A 192.0.2.1"}, {"y.example. 9 TXT \"t\""}));
  const std::vector<std::string> second = {"- " + soa(2), "- x.example. 60 A 192.0.2.1",
                                           "+ " + soa(5), "+ y.example. 9 TXT \"t\""};
  EXPECT_EQ(history_of(zone(), 2), second);
  std::vector<std::string> both = {"- " + soa(1), "+ " + soa(2), "+ x.example. 60 A 192.0.2.1",
                                   "+ x.example. 60 A 192.0.2.2"};
  both.insert(both.end(), second.begin(), second.end());
  EXPECT_EQ(history_of(zone(), 1), both);
  for (const std::uint32_t other : {0U, 3U, 4U, 5U, 6U})
    EXPECT_EQ(history_of(zone(), other), std::vector<std::string>{"none"}) << other;
  EXPECT_EQ(view().history_bytes(), zone().history_bytes());
}

TEST_F(History, TellsTheAuthorOfEachChangeset) {
  const auto authored = [&](std::uint32_t from, const Author& author) {
    Changeset changes{name("example."), {testing::record(soa(from))}, {}};
    changes.added = {testing::record(soa(from + 1)),
                     testing::record("x" + std::to_string(from) + ".example. 60 A 192.0.2.1")};
    changes.author = author;
    return commit([&](Draft& draft) { return draft.apply(changes, {}); });
  };
  ASSERT_TRUE(authored(1, make_author("key ddns.", "192.0.2.7")));
  ASSERT_TRUE(authored(2, {}));
  ASSERT_TRUE(authored(3, make_author("user alice", "")));
  auto reader = HistoryReader::from_oldest(zone());
  ASSERT_TRUE(reader);
  std::vector<std::string> authors;
  while (reader->next() != nullptr)
    if (authors.size() < reader->from().value) {
      const Author author = reader->author();
      authors.push_back(author.name + "@" + author.client);
    }
  EXPECT_EQ(authors, (std::vector<std::string>{"key ddns.@192.0.2.7", "@", "user alice@"}));
}

TEST(Author, IsPrintableAndShortWhateverAStrangerCallsHimself) {
  const Author author = make_author("key \x1b[2J\n\xc3\xa9" + std::string(300, 'x'), "a\tb");
  EXPECT_EQ(author.name, "key ?[2J???" + std::string(kMaxAuthorText - 11, 'x'));
  EXPECT_EQ(author.client, "a?b");
  Bytes bytes;
  put_author(bytes, author);
  dns::FieldReader fields(bytes);
  EXPECT_EQ(take_author(fields), author);
  EXPECT_TRUE(fields.done());
  put_author(bytes = {}, {});
  EXPECT_TRUE(bytes.empty());
}

TEST(Author, StandsBehindTheRecordsOfAStoredChangeset) {
  Changeset changes{name("example."), {}, {}};
  const Bytes without = encode(changes);
  EXPECT_EQ(decode_changes(without)->author, Author());
  changes.author = {"user bob", ""};
  const Bytes with = encode(changes);
  EXPECT_EQ(with.size(), without.size() + 2 + 8);
  EXPECT_EQ(decode_changes(with)->author, changes.author);
  EXPECT_FALSE(decode_changes(ByteView(with).first(with.size() - 1)));
}

TEST_F(History, FollowsSerialsThatWrapAround) {
  ASSERT_TRUE(step(1, 0x7fffffff, {}, {"x.example. 60 A 192.0.2.1"}));
  ASSERT_TRUE(step(0x7fffffff, 0xfffffff0, {}, {"x.example. 60 A 192.0.2.2"}));
  ASSERT_TRUE(step(0xfffffff0, 7, {}, {"x.example. 60 A 192.0.2.3"}));
  EXPECT_EQ(history_of(zone(), 1).size(), 9U);
  EXPECT_EQ(history_of(zone(), 0xfffffff0).size(), 3U);
}

TEST_F(History, CutsLargeChangesetsIntoPieces) {
  DataLimits limits = DataLimits::none();
  std::vector<std::string> added;
  for (int i = 0; i < 3000; ++i)
    added.push_back("n" + std::to_string(i / 3) + ".example. 60 TXT \"" + std::to_string(i) +
                    std::string(static_cast<std::size_t>(i % 200), 'x') + "\"");
  added.push_back("big.example. 60 TXT " + [] {
    std::string long_text;
    for (int i = 0; i < 250; ++i) long_text += "\"" + std::string(250, 'y') + "\" ";
    return long_text;
  }());
  ASSERT_TRUE(step(1, 2, {}, added, limits));
  auto lines = history_of(zone(), 1);
  ASSERT_EQ(lines.size(), added.size() + 2);
  EXPECT_EQ(lines[0], "- " + soa(1));
  EXPECT_EQ(lines[1], "+ " + soa(2));
  std::vector<std::string> in(lines.begin() + 1, lines.end());
  for (std::string& line : in) line = line.substr(2);
  std::sort(in.begin(), in.end());
  auto served = dump(zone());
  std::erase(served, "example. 60 NS a.");
  std::sort(served.begin(), served.end());
  EXPECT_EQ(in, served);
}

TEST_F(History, DropsTheOldestAboveItsLimit) {
  DataLimits limits;
  limits.history = 4096;
  for (std::uint32_t serial = 1; serial < 200; ++serial) {
    ASSERT_TRUE(step(serial, serial + 1, {},
                     {"x" + std::to_string(serial) + ".example. 60 A 192.0.2.1"}, limits));
    ASSERT_LE(zone().history_bytes(), limits.history);
    ASSERT_EQ(view().history_bytes(), zone().history_bytes());
    ASSERT_EQ(history_of(zone(), serial).size(), 3U);
  }
  EXPECT_EQ(history_of(zone(), 1), std::vector<std::string>{"none"});
  EXPECT_EQ(history_of(zone(), 190).size(), 30U);
}

TEST_F(History, EndsWhereAChangesetDoesNotFit) {
  ASSERT_TRUE(step(1, 2, {}, {"x.example. 60 A 192.0.2.1"}));
  DataLimits none;
  none.history = 0;
  ASSERT_TRUE(step(2, 3, {}, {"x.example. 60 A 192.0.2.2"}, none));
  EXPECT_EQ(history_of(zone(), 1), std::vector<std::string>{"none"});
  EXPECT_EQ(history_of(zone(), 2), std::vector<std::string>{"none"});
  EXPECT_EQ(view().history_bytes(), 0U);
  ASSERT_TRUE(step(3, 4, {}, {"x.example. 60 A 192.0.2.3"}));
  EXPECT_EQ(history_of(zone(), 3).size(), 3U) << "and begins anew";
}

TEST_F(History, EndsWithAChangeThatDoesNotMoveTheSerialForward) {
  ASSERT_TRUE(step(1, 2, {}, {"x.example. 60 A 192.0.2.1"}));
  ASSERT_TRUE(apply("example.", {}, {"y.example. 60 A 192.0.2.1"}));
  EXPECT_EQ(history_of(zone(), 1), std::vector<std::string>{"none"});
  ASSERT_TRUE(step(2, 3, {}, {"z.example. 60 A 192.0.2.1"}));
  ASSERT_TRUE(step(3, 1, {}, {"z.example. 60 A 192.0.2.2"}));
  EXPECT_EQ(zone().history_bytes(), 0U);
}

TEST_F(History, EndsWhenTheZoneIsPutWholeOrRemoved) {
  ASSERT_TRUE(step(1, 2, {}, {"x.example. 60 A 192.0.2.1"}));
  ASSERT_TRUE(load("example.", {soa(9), "example. 60 NS a."}));
  EXPECT_EQ(history_of(zone(), 1), std::vector<std::string>{"none"});
  EXPECT_EQ(view().history_bytes(), 0U);
  ASSERT_TRUE(step(9, 10, {}, {"x.example. 60 A 192.0.2.1"}));
  ASSERT_TRUE(commit([&](Draft& draft) { return draft.remove_zone(name("example.")); }));
  EXPECT_EQ(view().history_bytes(), 0U);
  while (!commit([&](Draft& draft) { return dismantle_discarded(draft, 1000); }).value()) continue;
  EXPECT_TRUE(store_->check());
}

TEST_F(History, TheZoneThatGrowsPaysForTheTotalAndKeepsItsNewestChangeset) {
  ASSERT_TRUE(load("other.", {"other. 60 SOA a. b. 1 2 3 4 5", "other. 60 NS a."}));
  for (std::uint32_t serial = 1; serial < 20; ++serial)
    ASSERT_TRUE(
        step(serial, serial + 1, {}, {"x.example. 60 A 192.0.2." + std::to_string(serial)}));
  DataLimits limits;
  limits.history_total = 100;
  const std::uint64_t before = zone().history_bytes();
  ASSERT_TRUE(apply("other.", {"other. 60 SOA a. b. 1 2 3 4 5"},
                    {"other. 60 SOA a. b. 2 2 3 4 5", "x.other. 60 A 192.0.2.1"}, limits));
  EXPECT_EQ(zone().history_bytes(), before);
  const ZoneView other = testing::ZoneTest::zone("other.");
  EXPECT_EQ(history_of(other, 1).size(), 3U);
  EXPECT_EQ(view().history_bytes(), before + other.history_bytes());
}

TEST_F(History, ShorteningHalvesEachZonesHistory) {
  ASSERT_TRUE(load("other.", {"other. 60 SOA a. b. 1 2 3 4 5", "other. 60 NS a."}));
  for (std::uint32_t serial = 1; serial < 101; ++serial)
    ASSERT_TRUE(
        step(serial, serial + 1, {}, {"x.example. 60 A 192.0.2." + std::to_string(serial)}));
  const std::uint64_t before = zone().history_bytes();
  dns::Name cursor;
  bool at_end = false;
  for (int steps = 0; !at_end; ++steps) {
    ASSERT_LT(steps, 4);
    const auto done = commit([&](Draft& draft) { return shorten_histories(draft, cursor, 1); });
    ASSERT_TRUE(done);
    at_end = *done;
  }
  EXPECT_LE(zone().history_bytes(), before / 2);
  EXPECT_GT(zone().history_bytes(), before / 3);
  EXPECT_EQ(history_of(zone(), 1), std::vector<std::string>{"none"});
  EXPECT_EQ(history_of(zone(), 100).size(), 3U);
  EXPECT_EQ(view().history_bytes(), zone().history_bytes());
}

/// What a secondary would make of the differences.
void follow(const ZoneView& zone, std::uint32_t serial, std::multiset<std::string> copy) {
  auto reader = HistoryReader::from(zone, {serial});
  ASSERT_TRUE(reader) << serial;
  while (const HistoryRecord* record = reader->next()) {
    const std::string line = text(*record);
    if (record->added) {
      copy.insert(line);
    } else {
      ASSERT_TRUE(copy.contains(line)) << line;
      copy.erase(copy.find(line));
    }
  }
  ASSERT_FALSE(reader->damaged());
  const auto served = dump(zone);
  ASSERT_EQ(copy, std::multiset<std::string>(served.begin(), served.end())) << serial;
}

TEST_F(History, LeadsFromAnyOldVersionToTheZoneWhateverTheCompactorMoves) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const auto pick = [&](unsigned count) { return static_cast<unsigned>(random() % count); };
  DataLimits limits;
  limits.history = 64 << 10;
  std::vector<std::multiset<std::string>> versions(1);
  const auto keep = [&] {
    const auto lines = dump(zone());
    versions.emplace_back(lines.begin(), lines.end());
  };
  keep();
  CompactCursor cursor;
  for (std::uint32_t serial = 1; serial < 500; ++serial) {
    std::vector<std::string> removed;
    std::vector<std::string> added;
    for (unsigned changes = 1 + pick(6); changes > 0; --changes) {
      const std::string line = "h" + std::to_string(pick(40)) + ".example. " +
                               std::to_string(60 + pick(2)) + " TXT \"" +
                               std::string(pick(200), 't') + "\"";
      (pick(2) == 0 ? removed : added).push_back(line);
    }
    ASSERT_TRUE(step(serial, serial + 1, removed, added, limits));
    keep();
    if (serial % 20 == 0) store_->choose_victims(80, 1000);
    ASSERT_TRUE(commit([&](Draft& draft) { return compact(draft, cursor, 20); }));
    if (serial % 10 != 0) continue;
    std::uint32_t oldest = serial + 1;
    while (oldest > 1 && HistoryReader::from(zone(), {oldest - 1})) --oldest;
    ASSERT_LE(oldest, serial);
    ASSERT_NO_FATAL_FAILURE(follow(zone(), oldest, versions[oldest]));
    const std::uint32_t some = oldest + pick(serial - oldest + 1);
    ASSERT_NO_FATAL_FAILURE(follow(zone(), some, versions[some]));
  }
  EXPECT_FALSE(HistoryReader::from(zone(), {1})) << "the limit was met";
  EXPECT_TRUE(store_->check());
}

}  // namespace history_test
}  // namespace pando::zone
