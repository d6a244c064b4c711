#include "http/api/search_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/unit/worker/zone_store.h"

namespace pando::http {
namespace search_data_test {

using pando::testing::name;
using pando::testing::TestZone;
using pando::testing::ZoneStore;

class Search : public ::testing::Test {
 protected:
  /// "zone NAME" and "NAME TYPE CONTENT" of what is found.
  std::vector<std::string> found(std::string_view query, const AccessKey& client = {}) {
    const auto read = read_search(query);
    if (!read) return {read.error().text};
    SearchWalk walk(collector_, *read, client);
    auto list = nlohmann::json::array();
    steps_ = 0;
    for (bool more = true; more; ++steps_) {
      const auto done = walk(list);
      if (!done) return {done.error().text};
      more = *done;
    }
    std::vector<std::string> lines;
    for (const nlohmann::json& one : list)
      lines.push_back(one["object_type"] == "zone"
                          ? "zone " + one["name"].get<std::string>()
                          : fmt::format("{} {} {}", one["name"].get<std::string>(),
                                        one["type"].get<std::string>(),
                                        one["content"].get<std::string>()));
    return lines;
  }
  using Lines = std::vector<std::string>;
  int steps_ = 0;  ///< of the last search

  static std::vector<TestZone> few_zones() {
    return {TestZone{"a.test.", "@ 5 SOA ns x 7 1 1 1 1\n@ 5 NS ns\nwww 5 A 192.0.2.1\n"},
            TestZone{"b.test.", "@ 5 SOA ns x 7 1 1 1 1\n@ 5 NS ns\nwww 5 A 192.0.2.2\n"},
            TestZone{"none.test.", ""}};
  }
  explicit Search(const std::vector<TestZone>& zones = few_zones()) : store_(zones) {}

  ZoneStore store_;
  CollectorOptions options() {
    CollectorOptions options;
    options.store_path = store_.path();
    options.run_directory = "/nowhere";
    options.layout = zone::layout_fingerprint();
    return options;
  }
  Collector collector_{options()};
};

TEST_F(Search, FindsZonesNamesAndData) {
  EXPECT_EQ(found("q=A.test"),
            (Lines{"zone a.test.", "a.test. NS ns.a.test.",
                   "a.test. SOA ns.a.test. x.a.test. 7 1 1 1 1"}));
  EXPECT_EQ(found("q=192.0.2.%3f"),
            (Lines{"www.a.test. A 192.0.2.1", "www.b.test. A 192.0.2.2"}));
  EXPECT_EQ(found("q=www*&max=1"), Lines{"www.a.test. A 192.0.2.1"});
  EXPECT_EQ(found("q=*.test.&object_type=zone&max=2"), (Lines{"zone a.test.", "zone b.test."}));
  EXPECT_EQ(found("q=a.test&object_type=record").size(), 2U);
  EXPECT_EQ(found("q=*&object_type=comment"), Lines{});
}

TEST_F(Search, ShowsAClientItsOwnZonesOnly) {
  AccessKey client;
  client.zones = {name("b.test.")};
  EXPECT_EQ(found("q=www*", client), Lines{"www.b.test. A 192.0.2.2"});
  EXPECT_EQ(found("q=*&object_type=zone", client), Lines{"zone b.test."});
}

TEST_F(Search, OfAFewZonesIsOneStep) {
  EXPECT_EQ(found("q=www*").size(), 2U);
  EXPECT_EQ(steps_, 1);
}

/// More zones than a step looks at, and a zone of more than one part.
class LongSearch : public Search {
 protected:
  static std::vector<TestZone> zones() {
    std::vector<TestZone> zones;
    for (int i = 0; i < 600; ++i)
      zones.push_back({fmt::format("z{:03}.many.", i),
                       "@ 5 SOA ns x 7 1 1 1 1\n@ 5 NS ns\nlast 5 A 192.0.2.1\n"});
    std::string text = "@ 5 SOA ns x 7 1 1 1 1\n@ 5 NS ns\n";
    for (int i = 0; i < 1000; ++i) text += fmt::format("n{:04} 5 TXT t{}\n", i, i);
    zones.push_back({"one.test.", text});
    return zones;
  }
  LongSearch() : Search(zones()) {}
};

TEST_F(LongSearch, GoesThroughAllZonesInBoundedSteps) {
  EXPECT_EQ(found("q=*&object_type=zone&max=10000").size(), 601U);
  EXPECT_GE(steps_, 3);
  EXPECT_EQ(found("q=last.*&max=10000").size(), 600U);
  EXPECT_GE(steps_, 5) << "zones first, and then their records";
  EXPECT_EQ(found("q=*t999*&object_type=record"), Lines{"n0999.one.test. TXT \"t999\""});
  EXPECT_EQ(found("q=n*.one.test&object_type=record&max=10000").size(), 1000U);
  EXPECT_EQ(found("q=n*.one.test&object_type=record&max=10").size(), 10U);
}

TEST_F(LongSearch, OfAClientWithOneZoneLooksAtNoOther) {
  AccessKey client;
  client.zones = {name("one.test.")};
  EXPECT_EQ(found("q=n*.one.test&max=10000", client).size(), 1000U);
  EXPECT_EQ(steps_, 1);
  EXPECT_EQ(found("q=last.*", client), Lines{});
}

TEST_F(Search, RefusesBadQuestions) {
  EXPECT_EQ(found("x=1"), Lines{"Query q can't be blank"});
  for (const char* max : {"0", "-1", "x", "1x", "99999999999999999999"})
    EXPECT_EQ(found(std::string("q=a&max=") + max), Lines{"Invalid value for maximum entries"});
  EXPECT_EQ(found("q=a&object_type=x"),
            Lines{"object_type must be one of: all, zone, record, comment"});
}

TEST(SearchPattern, HasStarsAndQuestionMarks) {
  for (const char* pattern : {"abc", "ABC", "a?c", "*", "a*", "*c", "*b*", "**abc**", "a*b*c"})
    EXPECT_TRUE(fits_search(pattern, "abc")) << pattern;
  for (const char* pattern : {"", "ab", "abcd", "a?", "?", "b*", "*b", "a*d", "????"})
    EXPECT_FALSE(fits_search(pattern, "abc")) << pattern;
  EXPECT_TRUE(fits_search("*a*b", "aaaaab"));
  EXPECT_TRUE(fits_search("", ""));
  // A pattern with many stars takes no exponential time.
  std::string stars;
  for (int i = 0; i < 5000; ++i) stars += "*a";
  EXPECT_FALSE(fits_search(stars + "b", std::string(20'000, 'a')));
}

}  // namespace search_data_test
}  // namespace pando::http
