#include "zone/read/relative_name.h"

#include <algorithm>
#include <random>

#include "shm/inspect/inspection.h"
#include "tests/unit/zone/draft/zone_fixture.h"
#include "zone/audit/audit.h"
#include "zone/draft/compaction.h"
#include "zone/draft/discarded_blocks.h"
#include "zone/history/history.h"

namespace pando::zone {
namespace relative_name_test {

using testing::dump;
using testing::name;

/// Owner labels in "example."; the text ends with it.
ByteView labels_of(const dns::Name& owner) {
  return relative_labels(owner, name("example.").view());
}

/// What is stored for `target` at `owner`, in hexadecimal digits the lengths aside; checks that it
/// is made whole again.
std::size_t stored_bytes(const dns::Name& owner, std::string_view target) {
  const dns::Name whole = name(target);
  const dns::Name apex = name("example.");
  const OwnerName to{labels_of(owner), apex};
  const ByteView stored = relative_form(whole.view().bytes(), to);
  NameRoom room;
  const ByteView back = is_relative(stored) ? whole_name(stored, to, room) : stored;
  EXPECT_TRUE(std::ranges::equal(back, whole.view().bytes())) << target;
  return stored.size();
}

TEST(RelativeName, LeavesOutWhatTheOwnerHas) {
  const dns::Name owner = name("Sub.example.");
  EXPECT_EQ(stored_bytes(owner, "ns1.Sub.example."), 4U);
  EXPECT_EQ(stored_bytes(owner, "NS.deep.Sub.example."), 8U);
  EXPECT_EQ(stored_bytes(owner, "Sub.example."), 0U) << "the owner itself";
}

TEST(RelativeName, OtherNamesAreWhole) {
  const dns::Name owner = name("sub.example.");
  for (const char* target : {"ns1.other.example.", "ns1.example.", "example.", ".", "sub.",
                             "ns1.sub.example.com.", "b.example.", "sub.example.sub.", "xsub."})
    EXPECT_EQ(stored_bytes(owner, target), name(target).size()) << target;
}

TEST(RelativeName, OtherSpellingsAreWhole) {
  const dns::Name owner = name("sub.example.");
  EXPECT_EQ(stored_bytes(owner, "NS1.sub.example."), 4U);
  EXPECT_EQ(stored_bytes(owner, "ns1.SUB.example."), name("ns1.sub.example.").size());
  EXPECT_EQ(stored_bytes(owner, "ns1.sub.Example."), name("ns1.sub.example.").size());
}

TEST(RelativeName, AtTheApexAndInTheRootZone) {
  EXPECT_EQ(stored_bytes(name("example."), "ns1.example."), 4U);
  EXPECT_EQ(stored_bytes(name("example."), "example."), 0U);
  const dns::Name target = name("ns.net.");
  const OwnerName root{{}, dns::NameView()};
  const ByteView stored = relative_form(target.view().bytes(), root);
  NameRoom room;
  EXPECT_EQ(stored.size() + 1, target.size());
  EXPECT_TRUE(std::ranges::equal(whole_name(stored, root, room), target.view().bytes()));
}

TEST(RelativeName, ALabelThatEndsWithOctetZeroIsNoEnd) {
  const dns::Name owner = name("s\\000.example.");
  EXPECT_EQ(stored_bytes(owner, "ns.s\\000.example."), 3U);
  EXPECT_EQ(stored_bytes(owner, "ns\\000.s\\000.example."), name("ns\\000.s\\000.example.").size());
}

/// The octets of an owner may stand in the middle of a label.
TEST(RelativeName, IsCutByOctetsNotByLabels) {
  const dns::Name owner = name("b.example.");
  EXPECT_EQ(stored_bytes(owner, "a\\001b.example."), 2U);
}

TEST(RelativeName, TheSpellingOfTheApexDoesNotCount) {
  const dns::Name lower = name("example."), upper = name("EXAMPLE.");
  const dns::Name target = name("ns.sub.example.");
  const dns::Name owner = name("sub.example.");
  const ByteView stored = relative_form(target.view().bytes(), {labels_of(owner), upper});
  EXPECT_EQ(stored.size(), 3U);
  NameRoom room;
  for (const dns::Name& apex : {lower, upper})
    EXPECT_TRUE(std::ranges::equal(whole_name(stored, {labels_of(owner), apex}, room),
                                   target.view().bytes()));
}

TEST(RelativeName, IsMadeWholeUpTo255Octets) {
  const dns::Name apex = name("example.");
  const Bytes labels(100, 'x');
  NameRoom room;
  const Bytes fits(dns::kMaxNameOctets - labels.size() - apex.size(), 'y');
  EXPECT_EQ(whole_name(fits, {labels, apex}, room).size(), dns::kMaxNameOctets);
  const Bytes longer(fits.size() + 1, 'y');
  EXPECT_TRUE(whole_name(longer, {labels, apex}, room).empty());
}

TEST(RelativeName, AnyNameComesBackAtAnyOwner) {
  std::mt19937 random(std::random_device{}());
  const auto labels = [&] {
    Bytes octets;
    for (auto count = random() % 5; count > 0; --count) {
      octets.push_back(static_cast<std::uint8_t>(1 + random() % 3));
      for (unsigned i = octets.back(); i > 0; --i)
        octets.push_back(std::array<std::uint8_t, 6>{'a', 'A', 'b', 0, 1, 2}[random() % 6]);
    }
    return octets;
  };
  unsigned shorter = 0;
  for (int round = 0; round < 20'000; ++round) {
    const Bytes owner = labels(), zone = labels();
    const auto apex = dns::Name::join(zone, dns::NameView());
    ASSERT_TRUE(apex);
    Bytes target = labels();
    if (round % 4 != 0) append(target, owner);
    if (round % 8 != 0) append(target, round % 3 == 0 ? zone : Bytes(zone.size(), 0));
    if (round % 3 != 0 && round % 8 != 0) {
      const dns::Name folded = apex->folded();
      std::copy(folded.data(), folded.data() + zone.size(),
                target.end() - std::ptrdiff_t(zone.size()));
    }
    target.push_back(0);
    ASSERT_TRUE(dns::is_wire_name(target));
    const OwnerName to{owner, *apex};
    const ByteView stored = relative_form(target, to);
    NameRoom room;
    const ByteView back = is_relative(stored) ? whole_name(stored, to, room) : stored;
    ASSERT_TRUE(std::ranges::equal(back, target));
    shorter += stored.size() < target.size() ? 1 : 0;
  }
  EXPECT_GT(shorter, 1000U);
}

/// Zones whose delegations have servers of all these kinds.
class RelativeNames : public testing::ZoneTest {
 protected:
  /// 255 octets as a name.
  static std::string longest_server(const std::string& owner) {
    const std::string label = std::string(59, 'l') + ".";
    const std::string end = "." + owner;
    return label + label + label + label + std::string(254 - 4 * label.size() - end.size(), 'l') +
           end;
  }
  static std::vector<std::string> lines() {
    std::vector<std::string> all = {
        "example. 60 NS example.",
        "example. 60 NS ns1.example.",
        "example. 60 SOA ns1.example. host.example. 1 2 3 4 5",
        "example. 60 MX 5 example.",
        "Alias.example. 60 CNAME www.Alias.example.",
        "dn.example. 60 DNAME below.dn.example.",
        "sub.example. 60 NS .",
        "sub.example. 60 NS example.",
        "sub.example. 60 NS sub.example.",
        "sub.example. 60 NS ns.Sub.example.",
        "sub.example. 60 NS NS1.sub.example.",
        "sub.example. 60 NS ns2.sub.Example.",
        "sub.example. 60 NS ns3\\000.sub.example.",
        "sub.example. 60 NS ns4.other.example.",
        "sub.example. 60 NS ns5.sub.example.",
        "sub.example. 60 NS ns6.test.",
        "sub.example. 60 MX 1 mx.sub.example.",
        "sub.example. 60 TXT \"\\005sub.example.\"",
        "sub.example. 60 SRV 1 2 3 srv.sub.example.",
        "sub.example. 60 RRSIG NS 8 2 60 20300101000000 20200101000000 1 sub.example. AAAA",
        "sub.example. 60 NSEC below.sub.example. NS",
        "Upper.example. 60 NS ns.Upper.example.",
        "Upper.example. 60 NS ns.upper.example.net.",
        "x.y.example. 60 NS " + longest_server("x.y.example."),
        "x.y.example. 60 NS ns.y.example.",
    };
    for (int i = 0; i < 60; ++i)  // a block of its own
      all.push_back("crowd.example. 60 NS server-number-" + std::to_string(i) + ".crowd.example.");
    return all;
  }
  static std::vector<std::string> sorted(std::vector<std::string> texts) {
    std::ranges::sort(texts);
    return texts;
  }
  void expect_sound() {
    Audit found = audit(store_->window(), store_->current().root);
    compare_chunks(found, shm::occupancy(store_->window()));
    EXPECT_EQ(found.fault_count, 0U) << found.faults.front();
  }
};

TEST_F(RelativeNames, AreReadAsTheyWereWritten) {
  EXPECT_EQ(name(longest_server("x.y.example.")).size(), dns::kMaxNameOctets);
  for (const char* apex : {"example.", "EXAMPLE."}) {
    ASSERT_TRUE(load(apex, lines()));
    auto expected = lines();
    for (std::string& line : expected)  // owners are spelt as the apex is
      if (line.starts_with("example. ")) line.replace(0, 8, dns::to_text(zone(apex).apex()));
    std::vector<std::string> got = dump(zone(apex));
    ASSERT_EQ(got.size(), expected.size());
    for (const std::string& line : expected) {
      const auto rdata = line.find(" 60 ");
      const bool found = std::ranges::any_of(
          got, [&](const std::string& other) { return other.ends_with(line.substr(rdata)); });
      EXPECT_TRUE(found) << line;
    }
    expect_sound();
  }
}

TEST_F(RelativeNames, CostWhatStandsBeforeTheOwner) {
  const auto bytes_with = [&](const std::string& ending) {
    std::vector<std::string> zone = {"example. 60 SOA a. b. 1 2 3 4 5", "example. 60 NS a."};
    for (int i = 0; i < 1000; ++i) {
      const std::string owner = "delegation" + std::to_string(1000 + i);
      for (const char* server : {"ns1.", "ns2."})
        zone.push_back(owner + ".example. 60 NS " + server + owner + ending);
    }
    EXPECT_TRUE(load("example.", zone));
    for (bool done = false; !done;)
      done = commit([](Draft& draft) { return dismantle_discarded(draft, 1000); }).value_or(true);
    store_->reclaim();
    return store_->stats().live_bytes;
  };
  const auto whole = static_cast<double>(bytes_with(".exampla."));
  const auto relative = static_cast<double>(bytes_with(".example."));
  EXPECT_NEAR(whole - relative, 1000 * 2 * 24, 200) << "but for the list in the root block";
}

TEST_F(RelativeNames, AreChangedByUpdates) {
  ASSERT_TRUE(load("example.", lines()));
  // The same name in another spelling is the same record; the stored spelling is told.
  const auto removed = apply("EXAMPLE.", {"SUB.EXAMPLE. 60 NS NS5.SUB.EXAMPLE."},
                             {"sub.example. 60 NS ns7.sub.example."});
  ASSERT_TRUE(removed) << removed.error().text;
  ASSERT_EQ(removed->effective.removed.size(), 1U);
  EXPECT_EQ(dns::rdata_to_text(dns::RRType::kNS, removed->effective.removed[0].rdata),
            "ns5.sub.example.");
  ASSERT_EQ(removed->effective.added.size(), 1U);
  EXPECT_EQ(dns::rdata_to_text(dns::RRType::kNS, removed->effective.added[0].rdata),
            "ns7.sub.example.");
  const auto again = apply("example.", {}, {"sub.example. 60 NS nS7.Sub.Example."});
  ASSERT_TRUE(again);
  EXPECT_EQ(again->redundant_additions, 1U);
  EXPECT_TRUE(again->effective.empty());

  auto expected = lines();
  std::ranges::replace(expected, "sub.example. 60 NS ns5.sub.example.",
                       "sub.example. 60 NS ns7.sub.example.");
  EXPECT_EQ(sorted(dump(zone("example."))), sorted(expected));
  const auto ttl = apply("example.", {}, {"sub.example. 61 NS ns7.sub.example."});
  ASSERT_TRUE(ttl);
  EXPECT_EQ(ttl->effective.removed.size(), 11U) << "ten servers and a signature";
  expect_sound();
}

TEST_F(RelativeNames, AreWholeInTheHistory) {
  ASSERT_TRUE(load("example.", lines()));
  ASSERT_TRUE(apply("example.",
                    {"example. 60 SOA ns1.example. host.example. 1 2 3 4 5",
                     "sub.example. 60 NS NS1.sub.example."},
                    {"example. 60 SOA ns1.example. host.example. 2 2 3 4 5",
                     "new.example. 60 NS ns.new.example."}));
  auto reader = HistoryReader::from(zone("example."), {1});
  ASSERT_TRUE(reader);
  std::vector<std::string> servers;
  while (const HistoryRecord* record = reader->next())
    if (record->type == dns::RRType::kNS)
      servers.push_back(dns::rdata_to_text(record->type, record->rdata));
  EXPECT_EQ(servers, (std::vector<std::string>{"NS1.sub.example.", "ns.new.example."}));
}

TEST_F(RelativeNames, AreKeptByCompactionAndByLateRecords) {
  auto texts = lines();
  std::ranges::sort(texts);
  std::ranges::stable_partition(  // NS records of written names come late
      texts, [](const std::string& line) { return line.find("NS n") == std::string::npos; });
  ASSERT_TRUE(load("example.", texts));
  EXPECT_EQ(sorted(dump(zone("example."))), sorted(lines()));
  store_->choose_victims(101, 1000);
  CompactCursor cursor;
  for (bool done = false; !done;)
    done = commit([&](Draft& draft) { return compact(draft, cursor, 3); }).value_or(true);
  EXPECT_EQ(sorted(dump(zone("example."))), sorted(lines()));
  expect_sound();
}

TEST_F(RelativeNames, AServerWhoseNameHasNoEndIsRefused) {
  ASSERT_TRUE(load("example.", lines()));
  Changeset changes{name("example."), {}, {}};
  changes.added.push_back({name("sub.example."), dns::RRType::kNS, {60}, {2, 'n', 's'}});
  const auto applied = commit([&](Draft& draft) { return draft.apply(changes, {}); });
  ASSERT_FALSE(applied);
  EXPECT_EQ(applied.error().code, Errc::kInvalid);
}

}  // namespace relative_name_test
}  // namespace pando::zone
