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
  const ServerSets::Kept* keep(const ServerSets::Key& key, const char* cut) {
    const zone::ZoneView zone = store_.view().find_zone(name("example."));
    const dns::Question apex{name("example."), RRType::kNS, dns::RRClass::kIN};
    const dns::Name cut_name = name(cut);
    dns::Nsec3Hasher hasher;
    Answer answer;
    answer.cut = zone.record_at(cut_name);
    answer.cut_name = cut_name;
    EXPECT_TRUE(refer_to_servers(zone, apex, {}, hasher, answer));
    return sets_.keep(key, answer, apex);
  }

  pando::testing::ZoneStore store_{std::vector{TestZone{"example.", kZone}}};
  ServerSets sets_;
};

TEST_F(ServerSetsTest, ATemplateIsFoundByAllOfItsKey) {
  const ServerSets::Key key{1, 7, false, 4711, dns::Ttl{300}};
  EXPECT_EQ(sets_.find(key), nullptr);
  EXPECT_TRUE(sets_.wants(key));
  const ServerSets::Kept* const kept = keep(key, "sub.example.");
  ASSERT_NE(kept, nullptr);
  ASSERT_TRUE(kept->records);
  EXPECT_TRUE(kept->has_servers_in_zone);
  EXPECT_TRUE(kept->records->has_addresses());
  EXPECT_EQ(sets_.find(key), kept);
  for (const ServerSets::Key& other :
       {ServerSets::Key{2, 7, false, 4711, dns::Ttl{300}},
        ServerSets::Key{1, 8, false, 4711, dns::Ttl{300}},
        ServerSets::Key{1, 7, true, 4711, dns::Ttl{300}},
        ServerSets::Key{1, 7, false, 4712, dns::Ttl{300}},
        ServerSets::Key{1, 7, false, 4711, dns::Ttl{60}}})
    EXPECT_EQ(sets_.find(other), nullptr);
}

TEST_F(ServerSetsTest, ServersElsewhereNeedNoCheckAgainstTheCut) {
  const ServerSets::Kept* const kept = keep({1, 7, false, 1, {}}, "far.example.");
  ASSERT_TRUE(kept != nullptr && kept->records);
  EXPECT_FALSE(kept->has_servers_in_zone);
  EXPECT_FALSE(kept->records->has_addresses());
}

TEST_F(ServerSetsTest, ItsMemoryIsBounded) {
  for (std::uint32_t set = 1; set <= 30'000; ++set) keep({1, 7, false, set, {}}, "sub.example.");
  EXPECT_GT(sets_.bytes(), 0U);
  EXPECT_LE(sets_.bytes(), ServerSets::kMaxBytes);
}

}  // namespace server_sets_test
}  // namespace pando::worker
