// A zone compared record by record must come to the same as one that is built and compared then.

#include "zone/builder/comparison.h"

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cctype>
#include <random>

#include "manager/commit/zone_diff.h"
#include "tests/unit/manager/zone_support.h"
#include "zone/builder/zone_builder.h"
#include "zone/draft/discarded_blocks.h"
#include "zone/read/each_record.h"

namespace pando::manager {
namespace comparison_test {

using testing::name;
using testing::record;
using testing::ZoneStore;

using Lines = std::vector<std::string>;

/// What became of comparing: an error, or what is to be known.
struct Outcome {
  std::string error;
  std::string soa;  // TTL and RDATA
  bool is_signed = false;
  std::uint64_t records = 0;
  std::optional<zone::Changeset> changes;
};

std::string text_of(const zone::Record& soa) {
  return std::to_string(soa.ttl.seconds) + " " + dns::rdata_to_text(soa.type, soa.rdata);
}

Outcome build_and_compare(ZoneStore& store, const Lines& lines, std::uint64_t most) {
  shm::Transaction transaction = store.store().begin_private();
  zone::ZoneBuilder builder(name("@"), transaction);
  for (const std::string& line : lines) {
    const zone::Record one = record(line);
    if (auto added = builder.add(one.owner, one.type, one.ttl, one.rdata); !added)
      return {added.error().text, {}, false, 0, {}};
  }
  auto built = builder.finish();
  if (!built) return {built.error().text, {}, false, 0, {}};
  const BuiltView view(store.store(), name("@"), **built);
  const zone::ZoneView fresh = view.zone().value();
  return {{},
          text_of(soa_record(fresh).value()),
          fresh.soa().signature_count() > 0,
          fresh.record_count(),
          diff_zones(store.zone(), fresh, most)};
}

Outcome compare(ZoneStore& store, const Lines& lines, std::uint64_t most) {
  zone::Comparison comparison(store.zone());
  for (const std::string& line : lines) {
    const zone::Record one = record(line);
    if (auto added = comparison.add(one.owner, one.type, one.ttl, one.rdata); !added)
      return {added.error().text, {}, false, 0, {}};
  }
  EXPECT_EQ(comparison.record_count(), lines.size());
  auto soa = comparison.finish();
  if (!soa) return {soa.error().text, {}, false, 0, {}};
  std::uint64_t records = 0;
  auto difference = comparison.changeset([&](std::uint64_t count) {
    records = count;
    return most;
  });
  if (!difference) return {difference.error().text, {}, false, 0, {}};
  return {{}, text_of(soa->record), soa->is_signed, records, std::move(*difference)};
}

Lines told(const std::vector<zone::Record>& records) {
  Lines lines;
  for (const zone::Record& one : records) {
    std::string line = dns::to_text(one.owner) + " " + std::to_string(one.ttl.seconds) + " " +
                       dns::to_text(one.type) + " " + dns::rdata_to_text(one.type, one.rdata);
    for (char& c : line) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    lines.push_back(std::move(line));
  }
  std::ranges::sort(lines);
  return lines;
}

void expect_alike(ZoneStore& store, const Lines& lines, std::uint64_t most = UINT64_MAX) {
  const Outcome expected = build_and_compare(store, lines, most);
  const Outcome found = compare(store, lines, most);
  // What is given up is not looked at to its end, and built then.
  if (!expected.error.empty() && most != UINT64_MAX && found.error.empty()) {
    ASSERT_FALSE(found.changes.has_value());
    return;
  }
  ASSERT_EQ(found.error, expected.error);
  ASSERT_EQ(found.soa, expected.soa);
  ASSERT_EQ(found.is_signed, expected.is_signed);
  ASSERT_EQ(found.changes.has_value(), expected.changes.has_value()) << most;
  if (!found.changes) return;
  ASSERT_EQ(found.records, expected.records);
  EXPECT_EQ(told(found.changes->removed), told(expected.changes->removed));
  ASSERT_EQ(told(found.changes->added), told(expected.changes->added));
}

/// Random zones of names that are near one another, and edits of them.
class RandomEdits {
 public:
  explicit RandomEdits(unsigned seed) : random_(seed) {}
  unsigned pick(unsigned count) { return static_cast<unsigned>(random_() % count); }

  Lines zone() {
    Lines lines = {"@ 60 SOA a b 1 2 3 4 5", "@ 60 NS a"};
    if (pick(3) == 0) lines.push_back("@ 60 RRSIG SOA" + signature());
    for (unsigned names = 1 + pick(pick(4) == 0 ? 300 : 40); names > 0; --names) {
      const std::string owner = random_owner();
      for (unsigned records = 1 + pick(4); records > 0; --records)
        lines.push_back(random_data(owner));
    }
    return lines;
  }
  /// The same in another order, with some lines more, less, twice, otherwise spelt or with another
  /// TTL.
  Lines edit(Lines lines) {
    const unsigned rate = pick(4) == 0 ? 3 : 30;
    Lines out;
    for (std::string& line : lines) {
      if (pick(rate) == 0) continue;
      out.push_back(line);
      if (pick(rate) == 0) out.push_back(with_other_ttl(line));
      if (pick(rate) == 0) out.back() = with_other_ttl(line);
      if (pick(rate) == 0) out.push_back(line);
      if (pick(rate) == 0) out.back() = with_other_case(line);
      if (pick(rate) == 0) out.push_back(random_data(random_owner()));
      if (pick(rate) == 0) out.push_back(random_data(line.substr(0, line.find(' '))));
    }
    if (pick(20) == 0) out.push_back(random_owner() + " 60 CNAME a");
    if (pick(40) == 0) out.push_back("@ 60 SOA a b 7 2 3 4 5");
    arrange(out);
    return out;
  }
  void arrange(Lines& lines) {
    const unsigned order = pick(4);
    if (order == 0) return std::shuffle(lines.begin(), lines.end(), random_);
    std::vector<std::pair<dns::HeapName, std::string>> sorted;
    for (std::string& line : lines) sorted.emplace_back(record(line).owner, std::move(line));
    std::ranges::stable_sort(sorted, [](const auto& a, const auto& b) {
      return dns::compare_canonical(a.first, b.first) < 0;
    });
    for (std::size_t at = 0; at < lines.size(); ++at) lines[at] = std::move(sorted[at].second);
    const auto count = static_cast<unsigned>(lines.size());
    for (unsigned swaps = order == 1 ? count / 10 : 0; swaps > 0; --swaps) {
      std::string& one = lines[pick(count)];
      std::swap(one, lines[pick(count)]);
    }
    if (order == 2) std::reverse(lines.begin(), lines.end());
  }

 private:
  std::string signature() {
    return " 13 2 60 20300101000000 20200101000000 " + std::to_string(pick(3)) + " @ AAAA";
  }
  std::string random_owner() {
    static const char* const kLabels[] = {"a", "b", "www", "WWW", "*", "x-y", "\\000", "\\255z"};
    std::string owner;
    for (unsigned labels = 1 + pick(2); labels > 0; --labels)
      owner += (owner.empty() ? "" : ".") + std::string(kLabels[pick(8)]) + std::to_string(pick(4));
    return owner;
  }
  std::string random_data(const std::string& owner) {
    const std::string ttl = " " + std::to_string(60 + pick(3) / 2);
    const std::string digit = std::to_string(pick(5));
    const std::string hashed = "v" + std::to_string(pick(60));
    switch (pick(10)) {
      case 0:
        return owner + ttl + " TXT \"" + std::string(pick(250), 't') + digit + "\"";
      case 1:
        return owner + ttl + " NS ns" + digit + "." + owner;
      case 2:
        return owner + ttl + (pick(2) == 0 ? " NS" : " MX 1") + " Mail" + digit + ".example.";
      case 3:
        return owner + ttl + " RRSIG A" + signature();
      case 4:
        return hashed + ttl + " NSEC3 1 0 1 AABB " + std::string(32, 'v') + " A TYPE123" + digit;
      case 5:
        return hashed + ttl + " RRSIG NSEC3" + signature();
      case 6:
        return owner + ttl + " TYPE65280 \\# 0";
      default:
        return owner + ttl + " A 192.0.2." + digit;
    }
  }
  static std::string with_other_ttl(const std::string& line) {
    const auto at = line.find(' ') + 1;
    return line.substr(0, at) + "77" + line.substr(line.find(' ', at));
  }
  /// Of the owner and, where they are names, of the data.
  static std::string with_other_case(const std::string& line) {
    std::string other = line;
    const auto end = line.find(" NS ") != std::string::npos ? line.size() : line.find(' ');
    for (std::size_t at = 0; at < end; ++at)
      if (other[at] == 'a' || other[at] == 'w' || other[at] == 'x')
        other[at] = static_cast<char>(other[at] - 32);
    return other;
  }

  std::mt19937 random_;
};

TEST(Comparison, ComesToTheSameAsBuildingTheZone) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  RandomEdits random(seed);
  ZoneStore store;
  for (int round = 0; round < 150; ++round) {
    Lines live = random.zone();
    random.arrange(live);
    ASSERT_NO_FATAL_FAILURE(store.put(live));
    for (int edits = 0; edits < 4; ++edits) {
      const Lines file = random.edit(live);
      const std::uint64_t most = random.pick(3) == 0 ? random.pick(40) : UINT64_MAX;
      ASSERT_NO_FATAL_FAILURE(expect_alike(store, file, most))
          << "round " << round << "\nlive:\n"
          << fmt::format("{}", fmt::join(live, "\n")) << "\nfile:\n"
          << fmt::format("{}", fmt::join(file, "\n"));
    }
    store.commit([](zone::Draft& draft) -> Status {
      auto done = zone::dismantle_discarded(draft, 100'000);
      return done ? Status() : pass(done);
    });
  }
}

/// All records as text, in the zone's own order; or the error.
Lines built_lines(ZoneStore& store, zone::ZoneBuilder& builder) {
  const auto built = builder.finish();
  if (!built) return {built.error().text};
  const BuiltView view(store.store(), name("@"), **built);
  Lines lines;
  const auto given = zone::for_each_record(
      view.zone().value(),
      [&](dns::NameView owner, dns::RRType type, dns::Ttl ttl, ByteView rdata) -> Status {
        lines.push_back(fmt::format("{} {} {} {}", dns::to_text(owner), ttl.seconds,
                                    dns::to_text(type), dns::rdata_to_text(type, rdata)));
        return {};
      });
  EXPECT_TRUE(given);
  return lines;
}

TEST(Comparison, CanBeGivenToABuilderAtAnyMoment) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  RandomEdits random(seed);
  ZoneStore store;
  for (int round = 0; round < 100; ++round) {
    const Lines live = random.zone();
    ASSERT_NO_FATAL_FAILURE(store.put(live));
    const Lines file = random.edit(live);
    shm::Transaction whole = store.store().begin_private();
    zone::ZoneBuilder expected(name("@"), whole);
    shm::Transaction half = store.store().begin_private();
    zone::ZoneBuilder builder(name("@"), half);
    zone::Comparison comparison(store.zone());
    const unsigned compared = random.pick(static_cast<unsigned>(file.size()) + 1);
    for (std::size_t at = 0; at < file.size(); ++at) {
      const zone::Record one = record(file[at]);
      ASSERT_TRUE(expected.add(one.owner, one.type, one.ttl, one.rdata));
      if (at == compared) {
        ASSERT_TRUE(comparison.give_to(builder));
      }
      ASSERT_TRUE(at < compared ? comparison.add(one.owner, one.type, one.ttl, one.rdata)
                                : builder.add(one.owner, one.type, one.ttl, one.rdata));
    }
    if (compared == file.size()) {
      if (random.pick(2) == 0 && comparison.finish()) {
        const auto found = comparison.changeset([](std::uint64_t) { return 0; });
        ASSERT_TRUE(found || found.error().code == Errc::kInvalid);
      }
      ASSERT_TRUE(comparison.give_to(builder));
    }
    ASSERT_EQ(built_lines(store, builder), built_lines(store, expected))
        << "round " << round << "\nlive:\n"
        << fmt::format("{}", fmt::join(live, "\n")) << "\nfile:\n"
        << fmt::format("{}", fmt::join(file, "\n")) << "\ncompared: " << compared;
    store.commit([](zone::Draft& draft) -> Status {
      auto done = zone::dismantle_discarded(draft, 100'000);
      return done ? Status() : pass(done);
    });
  }
}

TEST(Comparison, TheFirstTtlOfASetCountsWhereverTheSetWasSeen) {
  ZoneStore store({"@ 60 SOA a b 1 2 3 4 5", "@ 60 NS a", "w 60 A 192.0.2.1", "w 60 A 192.0.2.2"});
  const Lines head = {"@ 60 SOA a b 1 2 3 4 5", "@ 60 NS a"};
  const auto with = [&](Lines lines) {
    lines.insert(lines.begin(), head.begin(), head.end());
    return lines;
  };
  expect_alike(store, with({"w 60 A 192.0.2.1", "w 90 A 192.0.2.2"}));
  expect_alike(store, with({"w 90 A 192.0.2.1", "w 60 A 192.0.2.2"}));
  expect_alike(store, with({"w 60 A 192.0.2.1", "v 60 A 192.0.2.1", "w 90 A 192.0.2.2"}));
  expect_alike(store, with({"w 90 A 192.0.2.1", "v 60 A 192.0.2.1", "w 60 A 192.0.2.2"}));
  expect_alike(store, with({"w 90 A 192.0.2.3", "v 60 A 192.0.2.1", "w 60 A 192.0.2.2",
                            "w 60 A 192.0.2.1"}));
  expect_alike(store, with({"w 60 A 192.0.2.1", "w 60 A 192.0.2.2", "v 60 A 192.0.2.1",
                            "w 90 A 192.0.2.3"}));
}

TEST(Comparison, RulesAreCheckedOnNamesThatChange) {
  ZoneStore store;
  Lines lines = testing::kBasicZone;
  lines.emplace_back("www 300 CNAME ns1");
  EXPECT_EQ(compare(store, lines, UINT64_MAX).error, "www.example.: CNAME and other data");
  expect_alike(store, lines);
  lines.insert(lines.begin(), "alias 300 CNAME ns1");
  EXPECT_EQ(compare(store, lines, UINT64_MAX).error, "alias.example.: more than one CNAME record");
  expect_alike(store, lines);
  for (const Lines& without :
       {Lines{}, Lines{"www 300 A 192.0.2.10"}, Lines{"@ 3600 NS ns1", "www 300 A 192.0.2.10"},
        Lines{testing::kBasicZone[0], "www 300 A 192.0.2.10"},
        Lines{"www 300 A 192.0.2.10", "www 300 CNAME ns1"}}) {
    EXPECT_NE(compare(store, without, UINT64_MAX).error, "");
    expect_alike(store, without);
  }
  lines = testing::kBasicZone;
  lines.emplace_back("elsewhere.test. 300 A 192.0.2.1");
  expect_alike(store, lines);
}

/// A name that did not change may be beyond limits that are lower than they were.
TEST(Comparison, LimitsHoldForAllNames) {
  ZoneStore store;
  for (const auto& [types, records] : {std::pair(0U, 1U), std::pair(1U, 0U), std::pair(2U, 2U)}) {
    const zone::DataLimits limits{records, types};
    shm::Transaction transaction = store.store().begin_private();
    zone::ZoneBuilder builder(name("@"), transaction, limits);
    zone::Comparison comparison(store.zone(), limits);
    for (const std::string& line : testing::kBasicZone) {
      const zone::Record one = record(line);
      ASSERT_TRUE(builder.add(one.owner, one.type, one.ttl, one.rdata));
      ASSERT_TRUE(comparison.add(one.owner, one.type, one.ttl, one.rdata));
    }
    const auto built = builder.finish();
    const auto soa = comparison.finish();
    const bool is_within = types == 2;
    ASSERT_EQ(built.has_value(), is_within);
    const auto difference = comparison.changeset([](std::uint64_t) { return UINT64_MAX; });
    ASSERT_EQ(soa && difference, is_within);
    if (is_within) continue;
    const Error& error = soa ? difference.error() : soa.error();
    EXPECT_EQ(error.text, built.error().text);
    EXPECT_EQ(error.code, Errc::kFull);
  }
}

Lines large_zone(unsigned names) {
  Lines lines = {"@ 60 SOA a b 1 2 3 4 5", "@ 60 NS a"};
  for (unsigned i = 0; i < names; ++i) {
    const std::string owner = fmt::format("n{:06}", i);
    lines.push_back(fmt::format("{} 60 A 192.0.2.{}", owner, i % 250));
    lines.push_back(fmt::format("{} 60 AAAA 2001:db8::{:x}", owner, i));
  }
  return lines;
}

/// A small part of what the zone itself takes; more where names come in pieces.
TEST(Comparison, TakesLittleMemoryInAnyOrder) {
  ZoneStore store(testing::kBasicZone, 256 << 20);
  Lines lines = large_zone(30'000);
  store.put(lines);
  const std::uint64_t live = store.store().stats().live_bytes;
  for (const bool in_order : {true, false}) {
    if (!in_order) std::shuffle(lines.begin(), lines.end(), std::mt19937(5));
    zone::Comparison comparison(store.zone());
    for (const std::string& line : lines) {
      const zone::Record one = record(line);
      ASSERT_TRUE(comparison.add(one.owner, one.type, one.ttl, one.rdata));
    }
    EXPECT_LT(comparison.octets(), in_order ? live / 20 : live / 3) << in_order;
    ASSERT_TRUE(comparison.finish());
    const auto difference = comparison.changeset([](std::uint64_t) { return 0; });
    ASSERT_TRUE(difference && *difference);
    EXPECT_TRUE((*difference)->empty());
  }
}

TEST(Comparison, EndsWhenTheWorkIsGivenUp) {
  ZoneStore store(testing::kBasicZone, 256 << 20);
  const Lines lines = large_zone(10'000);
  store.put(lines);
  zone::Comparison comparison(store.zone());
  for (const std::string& line : lines) {
    const zone::Record one = record(line);
    ASSERT_TRUE(comparison.add(one.owner, one.type, one.ttl, one.rdata));
  }
  ASSERT_TRUE(comparison.finish());
  Progress progress;
  const Progress::Scope scope(&progress);
  progress.give_up();
  const auto difference = comparison.changeset([](std::uint64_t) { return 0; });
  ASSERT_FALSE(difference);
  EXPECT_EQ(difference.error().text, kGivenUp);
  EXPECT_EQ(progress.seen().phase, Progress::Phase::kComparing);
}

TEST(Comparison, TellsWhenASecondZoneWouldTakeLess) {
  ZoneStore store(testing::kBasicZone, 256 << 20);
  store.put(large_zone(100));
  zone::Comparison comparison(store.zone());
  unsigned taken = 0;
  for (const std::string& line : large_zone(6000)) {
    const zone::Record one = record(line);
    ASSERT_TRUE(comparison.add(one.owner, one.type, one.ttl, one.rdata));
    if (comparison.is_too_much()) break;
    ++taken;
  }
  EXPECT_GT(taken, 10'000U);
  EXPECT_LT(taken, 10'500U);
}

}  // namespace comparison_test
}  // namespace pando::manager
