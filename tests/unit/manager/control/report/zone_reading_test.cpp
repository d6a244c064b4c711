#include "manager/control/report/zone_reading.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/unit/manager/zone_support.h"

namespace pando::manager {
namespace zone_reading_test {

using ::testing::ElementsAre;
using testing::name;
using testing::record;
using testing::ZoneStore;

/// All rows, page by page; each row as "owner type rdata".
std::vector<std::string> read_all(const ZoneStore& store, const ReadFilter& filter,
                                  const PageLimits& limits) {
  std::vector<std::string> rows;
  std::string after;
  for (int pages = 0; pages < 1000; ++pages) {
    const auto page = shm::test::must(read_page(store.zone(), filter, after, limits));
    EXPECT_LE(page.records.size(), limits.rows);
    for (const ipc::RecordRow& row : page.records)
      rows.push_back(fmt::format("{} {} {}", row.owner, row.type, row.rdata));
    if (page.next.empty()) return rows;
    after = page.next;
  }
  ADD_FAILURE() << "pages without an end";
  return rows;
}

TEST(ZoneReading, PagesOfAnySizeHaveEachRecordOnceWithTheSoaFirst) {
  const ZoneStore store;
  const auto whole = read_all(store, {}, {});
  EXPECT_EQ(whole.size(), testing::kBasicZone.size());
  EXPECT_TRUE(whole.front().starts_with("example. SOA "));
  for (const std::size_t rows : {1, 2, 3, 7}) EXPECT_EQ(read_all(store, {}, {rows}), whole);
  EXPECT_EQ(read_all(store, {}, {1000, 1}), whole) << "one row may exceed the bytes";
  EXPECT_EQ(read_all(store, {}, {1000, 1 << 20, 1}), whole) << "one name a page";
}

TEST(ZoneReading, SignaturesAndNsec3OwnersAreRecordsToo) {
  ZoneStore store;
  std::vector<std::string> lines = testing::kBasicZone;
  lines.push_back("www 300 RRSIG A 8 2 300 20300101000000 20200101000000 1 example. AAAA");
  lines.push_back("0p9mhaveqvm6t7vbl5lop2u3t2rp3tom 300 NSEC3 1 0 0 - "
                  "2t7b4g4vsa5smi47k61mv5bv1a22bojr A");
  lines.push_back("@ 3600 NSEC3PARAM 1 0 0 -");
  store.put(lines);
  const auto whole = read_all(store, {}, {});
  EXPECT_EQ(whole.size(), lines.size());
  for (const std::size_t rows : {1, 2, 3}) EXPECT_EQ(read_all(store, {}, {rows}), whole);
  EXPECT_EQ(read_all(store, {std::nullopt, dns::RRType::kRRSIG}, {}).size(), 1U);
  const auto owner = name("0p9mhaveqvm6t7vbl5lop2u3t2rp3tom");
  EXPECT_EQ(read_all(store, {owner, std::nullopt}, {}).size(), 1U);
  EXPECT_EQ(read_all(store, {name("www"), std::nullopt}, {1}).size(), 4U);
}

TEST(ZoneReading, TheFilterSelectsOwnerAndType) {
  const ZoneStore store;
  EXPECT_THAT(read_all(store, {name("WWW"), dns::RRType::kAAAA}, {}),
              ElementsAre("www.example. AAAA 2001:db8::10"));
  EXPECT_THAT(read_all(store, {std::nullopt, dns::RRType::kCNAME}, {1000, 1 << 20, 2}),
              ElementsAre("alias.example. CNAME www.example."));
  EXPECT_EQ(read_page(store.zone(), {name("deep"), std::nullopt}, "", {}).error().code,
            Errc::kNotFound);
}

TEST(ZoneReading, APlaceWhoseNameIsGoneGoesOnBehindIt) {
  ZoneStore store;
  std::string after;
  std::set<std::string> owners;
  for (bool gone = false;;) {
    const auto page = shm::test::must(read_page(store.zone(), {}, after, {1}));
    for (const ipc::RecordRow& row : page.records) owners.insert(row.owner);
    if (page.next.empty()) break;
    after = page.next;
    if (after.find("www") == after.npos || std::exchange(gone, true)) continue;
    store.apply({name("@"),
                 {record("@ 3600 SOA ns1 admin 10 3600 600 86400 300"),
                  record("www 300 A 192.0.2.10"), record("www 300 A 192.0.2.11"),
                  record("www 300 AAAA 2001:db8::10")},
                 {record("@ 3600 SOA ns1 admin 11 3600 600 86400 300")}});
  }
  EXPECT_TRUE(owners.contains("a.b.deep.example."));
}

TEST(ZoneReading, APlaceThatNoPageGaveIsRefused) {
  const ZoneStore store;
  for (const char* after : {"x", "0", "2 0 www.example.", "0 x www.example.", "0 0 www.test.",
                            "0 99999999999999999999999 www.example.", "-1 0 www.example."}) {
    const auto page = read_page(store.zone(), {}, after, {});
    ASSERT_FALSE(page.has_value()) << after;
    EXPECT_EQ(page.error().code, Errc::kInvalid);
  }
  for (const char* after : {"x", "-1", "99", "1 x"})
    EXPECT_FALSE(diff_page({name("@"), {}, {}}, {1}, {2}, after, {}).has_value()) << after;
  EXPECT_FALSE(history_page(store.zone(), "x", {}).has_value());
}

TEST(ZoneReading, ADifferenceComesInPages) {
  zone::Changeset changes{name("@"), {}, {}};
  for (int i = 0; i < 5; ++i) {
    changes.removed.push_back(record(fmt::format("r{} 1 A 192.0.2.{}", i, i)));
    changes.added.push_back(record(fmt::format("a{} 1 A 192.0.2.{}", i, i)));
  }
  std::size_t removed = 0;
  std::size_t added = 0;
  std::string after;
  do {
    const auto page = shm::test::must(diff_page(changes, {1}, {2}, after, {3}));
    removed += page.removed.size();
    added += page.added.size();
    after = page.next;
  } while (!after.empty());
  EXPECT_EQ(removed, 5U);
  EXPECT_EQ(added, 5U);
}

TEST(ZoneReading, AHistoryComesInPages) {
  ZoneStore store;
  for (int i = 0; i < 5; ++i)
    store.apply({name("@"),
                 {record(fmt::format("@ 3600 SOA ns1 admin {} 3600 600 86400 300", 10 + i))},
                 {record(fmt::format("@ 3600 SOA ns1 admin {} 3600 600 86400 300", 11 + i)),
                  record(fmt::format("n{} 1 A 192.0.2.1", i))}});
  std::vector<ipc::ChangesetRow> rows;
  std::string after;
  do {
    const auto page = shm::test::must(history_page(store.zone(), after, {2}));
    EXPECT_EQ(page.serial, 15U);
    rows.insert(rows.end(), page.changesets.begin(), page.changesets.end());
    after = page.next;
  } while (!after.empty());
  ASSERT_EQ(rows.size(), 5U);
  for (std::uint32_t i = 0; i < 5; ++i)
    EXPECT_EQ(rows[i], (ipc::ChangesetRow{10 + i, 11 + i, 0, 1}));
  EXPECT_TRUE(history_page(store.zone(), "7", {})->changesets.empty()) << "trimmed meanwhile";
}

}  // namespace zone_reading_test
}  // namespace pando::manager
