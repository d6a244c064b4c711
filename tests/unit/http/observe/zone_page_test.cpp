#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "http/observe/zone_facts.h"
#include "tests/unit/worker/zone_store.h"

namespace pando::http {
namespace zone_page_test {

using pando::testing::name;
using pando::testing::TestZone;
using pando::testing::ZoneStore;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr const char* kText = "@ 5 SOA ns x 7 1 1 1 1\n@ 5 NS ns\n";

std::vector<TestZone> many_zones() {
  std::vector<TestZone> zones;
  for (int i = 0; i < 200; ++i) zones.push_back({fmt::format("z{:03}.many.", i), kText});
  zones.push_back({"a.test.", kText});
  zones.push_back({"b.a.test.", ""});
  zones.push_back({"c.b.a.test.", kText});
  zones.push_back({"other.test.", kText});
  return zones;
}

class ZonePages : public ::testing::Test {
 protected:
  ZonePage page(const ZonePageRequest& request) {
    auto read = read_zone_page(observer_, request);
    EXPECT_TRUE(read) << (read ? "" : read.error().text);
    return read ? std::move(*read) : ZonePage();
  }
  static std::vector<std::string> names(const ZonePage& page) {
    std::vector<std::string> names;
    for (const ZoneFacts& zone : page.zones) names.push_back(zone.name);
    return names;
  }
  ZoneStore store_{many_zones()};
  shm::Observer observer_{
      std::move(*shm::Observer::open(store_.path(), zone::layout_fingerprint()))};
};

TEST_F(ZonePages, FollowOneAnotherToTheLastZone) {
  ZonePageRequest request;
  request.most_found = 70;
  request.most_looked = 1000;
  std::vector<std::string> all;
  int pages = 0;
  for (bool more = true; more; ++pages) {
    const ZonePage read = page(request);
    const auto found = names(read);
    all.insert(all.end(), found.begin(), found.end());
    request.after = read.next;
    more = read.next.has_value();
  }
  EXPECT_EQ(pages, 3);
  ASSERT_EQ(all.size(), 204U);
  EXPECT_EQ(all.front(), "z000.many.");
  EXPECT_EQ(all.back(), "other.test.");
  EXPECT_EQ(std::set<std::string>(all.begin(), all.end()).size(), 204U);
}

TEST_F(ZonePages, EndAtTheirBoundOfWork) {
  ZonePageRequest request;
  request.most_found = 10;
  request.most_looked = 100;
  request.fits = [](const ZoneFacts& zone) { return zone.name == "z150.many."; };
  const ZonePage first = page(request);
  EXPECT_THAT(names(first), IsEmpty());
  EXPECT_EQ(first.looked, 100U);
  ASSERT_TRUE(first.next);
  EXPECT_EQ(to_text(*first.next), "z099.many.");
  request.after = first.next;
  EXPECT_THAT(names(page(request)), ElementsAre("z150.many."));
}

TEST_F(ZonePages, StayInTheirRanges) {
  ZonePageRequest request;
  request.most_found = request.most_looked = 100;
  request.ranges = {{name("a.test."), false}};
  EXPECT_THAT(names(page(request)), ElementsAre("a.test."));
  request.ranges = {{name("a.test."), true}};
  EXPECT_THAT(names(page(request)), ElementsAre("b.a.test.", "c.b.a.test."));
  request.ranges = {{name("absent.test."), false}, {name("absent.test."), true}};
  const ZonePage none = page(request);
  EXPECT_THAT(names(none), IsEmpty());
  EXPECT_FALSE(none.next);
}

TEST_F(ZonePages, HaveEachZoneOfOverlappingRangesOnce) {
  ZonePageRequest request;
  request.most_found = request.most_looked = 2;
  request.ranges = {{name("a.test."), false},
                    {name("a.test."), true},
                    {name("b.a.test."), false},
                    {name("b.a.test."), true},
                    {name("other.test."), false}};
  const ZonePage first = page(request);
  EXPECT_THAT(names(first), ElementsAre("a.test.", "b.a.test."));
  request.after = first.next;
  const ZonePage second = page(request);
  EXPECT_THAT(names(second), ElementsAre("c.b.a.test.", "other.test."));
  request.after = second.next;
  EXPECT_THAT(names(page(request)), IsEmpty());
}

}  // namespace zone_page_test
}  // namespace pando::http
