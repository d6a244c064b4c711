#include "worker/respond/server_sets.h"

#include <gtest/gtest.h>

#include "tests/unit/worker/zone_store.h"
#include "worker/answer/resolve.h"

namespace pando::worker {
namespace server_sets_test {

using dns::RRType;
using pando::testing::name;
using pando::testing::TestZone;

const char* const kZone = R"($TTL 300
@ SOA ns admin 1 3600 600 86400 60
@ NS ns
ns A 192.0.2.1
sub NS ns
sub NS ns.elsewhere.test.
far NS ns.elsewhere.test.
)";

class ServerSetsTest : public ::testing::Test {
 protected:
  const ServerSets::Template* insert(const ServerSets::Key& key, const char* cut) {
    const zone::ZoneView zone = store_.view().find_zone(name("example."));
    const dns::Question apex{name("example."), RRType::kNS, dns::RRClass::kIN};
    const dns::Name cut_name = name(cut);
    dns::Nsec3Hasher hasher;
    Answer answer;
    const AnswerPart part{AnswerPart::Kind::kServers, cut_name, zone.record_at(cut_name)};
    EXPECT_TRUE(resolve_part(zone, apex, part, {}, hasher, answer));
    return sets_.insert(key, answer, apex);
  }

  pando::testing::ZoneStore store_{std::vector{TestZone{"example.", kZone}}};
  ServerSets sets_;
};

TEST_F(ServerSetsTest, ATemplateIsFoundByAllOfItsKey) {
  const ServerSets::Key key{1, 7, false, 4711, dns::Ttl{300}};
  EXPECT_EQ(sets_.find(key), nullptr);
  EXPECT_TRUE(sets_.wants(key));
  const ServerSets::Template* const made = insert(key, "sub.example.");
  ASSERT_NE(made, nullptr);
  ASSERT_TRUE(made->records);
  EXPECT_TRUE(made->has_servers_in_zone);
  EXPECT_TRUE(made->records->has_addresses());
  EXPECT_EQ(sets_.find(key), made);
  for (const ServerSets::Key& other : {ServerSets::Key{2, 7, false, 4711, dns::Ttl{300}},
                                       ServerSets::Key{1, 8, false, 4711, dns::Ttl{300}},
                                       ServerSets::Key{1, 7, true, 4711, dns::Ttl{300}},
                                       ServerSets::Key{1, 7, false, 4712, dns::Ttl{300}},
                                       ServerSets::Key{1, 7, false, 4711, dns::Ttl{60}}})
    EXPECT_EQ(sets_.find(other), nullptr);
}

TEST_F(ServerSetsTest, ServersElsewhereNeedNoCheckAgainstTheCut) {
  const ServerSets::Template* const made = insert({1, 7, false, 1, {}}, "far.example.");
  ASSERT_TRUE(made != nullptr && made->records);
  EXPECT_FALSE(made->has_servers_in_zone);
  EXPECT_FALSE(made->records->has_addresses());
}

TEST_F(ServerSetsTest, ItsMemoryIsBounded) {
  for (std::uint32_t set = 1; set <= 30'000; ++set) insert({1, 7, false, set, {}}, "sub.example.");
  EXPECT_GT(sets_.bytes(), 0U);
  EXPECT_LE(sets_.bytes(), ServerSets::kMaxBytes);
}

}  // namespace server_sets_test
}  // namespace pando::worker
