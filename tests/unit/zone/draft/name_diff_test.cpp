#include "zone/draft/name_diff.h"

#include <gmock/gmock.h>

#include <deque>

#include "tests/unit/zone/draft/zone_fixture.h"
#include "zone/draft/name_rules.h"

namespace pando::zone {
namespace name_diff_test {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::name;
using testing::record;
using ::testing::UnorderedElementsAre;
using Lines = std::vector<std::string>;

class Diff : public ::testing::Test {
 protected:
  NameDraft draft(const Lines& lines) {
    NameDraft made;
    for (const std::string& line : lines) {
      const Record& one = records_.emplace_back(record("x.example. " + line));
      const Placed placed = place(one.type, one.rdata);
      RRsetDraft& set = made.at(placed.set);
      (placed.is_signature ? set.signatures : set.rdatas).push_back(placed.octets);
      if (!placed.is_signature || set.rdatas.empty()) set.ttl = one.ttl;
    }
    for (RRsetDraft& set : made.rrsets) normalise(set);
    return made;
  }
  static Lines lines(const std::vector<Record>& records) {
    Lines found;
    for (const Record& one : records)
      found.push_back(std::to_string(one.ttl.seconds) + " " + dns::to_text(one.type) + " " +
                      dns::rdata_to_text(one.type, one.rdata));
    return found;
  }
  /// Computes the changes, for removed() and added().
  void compute(const Lines& before, const Lines& after, SoaRecord soa = SoaRecord::kCompared) {
    out_ = {};
    append_changes(name("x.example."), draft(before), draft(after), soa, out_);
  }
  [[nodiscard]] Lines removed() const { return lines(out_.removed); }
  [[nodiscard]] Lines added() const { return lines(out_.added); }

  std::deque<Record> records_;
  Changeset out_;
};

TEST_F(Diff, EqualSetsGiveNoChange) {
  compute({"60 A 192.0.2.2", "60 A 192.0.2.1"}, {"60 A 192.0.2.1", "60 A 192.0.2.2"});
  EXPECT_TRUE(out_.empty());
}

TEST_F(Diff, OnlyTheRecordsThatDifferAreNamed) {
  compute({"60 A 192.0.2.1", "60 A 192.0.2.2", "60 TXT gone"},
          {"60 A 192.0.2.2", "60 A 192.0.2.3", "60 AAAA 2001:db8::1"});
  EXPECT_THAT(removed(), UnorderedElementsAre("60 A 192.0.2.1", "60 TXT \"gone\""));
  EXPECT_THAT(added(), UnorderedElementsAre("60 A 192.0.2.3", "60 AAAA 2001:db8::1"));
  for (const Record& one : out_.added) EXPECT_EQ(one.owner, name("x.example."));
}

/// RFC 2181 §5.2: an RRset has one TTL, so that another one changes each of its records.
TEST_F(Diff, AnotherTtlReplacesTheWholeSet) {
  compute({"60 A 192.0.2.1", "60 A 192.0.2.2"}, {"90 A 192.0.2.1", "90 A 192.0.2.2"});
  EXPECT_THAT(removed(), UnorderedElementsAre("60 A 192.0.2.1", "60 A 192.0.2.2"));
  EXPECT_THAT(added(), UnorderedElementsAre("90 A 192.0.2.1", "90 A 192.0.2.2"));
}

TEST_F(Diff, ASoaIsLeftOutOnRequest) {
  const std::string old_soa = "60 SOA ns.example. admin.example. 1 2 3 4 5";
  const std::string new_soa = "60 SOA ns.example. admin.example. 2 2 3 4 5";
  compute({old_soa}, {new_soa}, SoaRecord::kLeftOut);
  EXPECT_TRUE(out_.empty());
  compute({old_soa}, {new_soa});
  EXPECT_THAT(removed(), ElementsAre("60 SOA ns.example. admin.example. 1 2 3 4 5"));
  EXPECT_THAT(added(), ElementsAre("60 SOA ns.example. admin.example. 2 2 3 4 5"));
}

TEST_F(Diff, ASignatureKeepsTheTypeThatItCovers) {
  const std::string signature = "60 RRSIG A 13 2 60 20300101000000 20200101000000 1 example. AAAA";
  compute({"60 A 192.0.2.1"}, {"60 A 192.0.2.1", signature});
  EXPECT_THAT(removed(), IsEmpty());
  ASSERT_EQ(out_.added.size(), 1U);
  EXPECT_EQ(out_.added[0].type, dns::RRType::kRRSIG);
  EXPECT_EQ(dns::rrsig_covered(out_.added[0].rdata), dns::RRType::kA);
}

}  // namespace name_diff_test
}  // namespace pando::zone
