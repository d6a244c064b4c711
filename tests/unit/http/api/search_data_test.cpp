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
    const auto list = search_data(collector_, *read, client);
    if (!list) return {list.error().text};
    std::vector<std::string> lines;
    for (const nlohmann::json& one : *list)
      lines.push_back(one["object_type"] == "zone"
                          ? "zone " + one["name"].get<std::string>()
                          : fmt::format("{} {} {}", one["name"].get<std::string>(),
                                        one["type"].get<std::string>(),
                                        one["content"].get<std::string>()));
    return lines;
  }
  using Lines = std::vector<std::string>;

  ZoneStore store_{{TestZone{"a.test.", "@ 5 SOA ns x 7 1 1 1 1\n@ 5 NS ns\nwww 5 A 192.0.2.1\n"},
                    TestZone{"b.test.", "@ 5 SOA ns x 7 1 1 1 1\n@ 5 NS ns\nwww 5 A 192.0.2.2\n"},
                    TestZone{"none.test.", ""}}};
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
