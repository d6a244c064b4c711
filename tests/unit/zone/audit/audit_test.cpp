#include "zone/audit/audit.h"

#include <filesystem>
#include <fstream>
#include <numeric>
#include <random>

#include "shm/inspect/inspection.h"
#include "tests/unit/zone/draft/zone_fixture.h"
#include "zone/draft/discarded_blocks.h"
#include "zone/trie/zone_layout.h"

namespace pando::zone {
namespace audit_test {

using testing::kSmallZone;
using testing::name;

class AuditTest : public testing::ZoneTest {
 protected:
  [[nodiscard]] Audit found() const {
    Audit result = audit(store_->window(), store_->current().root);
    compare_chunks(result, shm::occupancy(store_->window()));
    return result;
  }
  void expect_sound() const {
    const Audit result = found();
    EXPECT_EQ(result.fault_count, 0U) << (result.faults.empty() ? "" : result.faults.front());
    const auto counted = shm::occupancy(store_->window());
    EXPECT_EQ(result.usage.total(), std::accumulate(counted.begin(), counted.end(), 0ULL));
  }

  template <class T>
  T* block(std::uint32_t ref) const {
    return reinterpret_cast<T*>(const_cast<std::byte*>(store_->window().base()) +
                                shm::Ref<>{ref}.offset());
  }
  /// The entry of the only zone.
  [[nodiscard]] ZoneEntry* entry() const {
    return block<ZoneEntry>(block<RootData>(store_->current().root.units)->zones);
  }
  static std::string large_text() {
    std::string line = "big.example. 60 TXT";
    for (int i = 0; i < 5; ++i) line += " \"" + std::string(250, static_cast<char>('a' + i)) + "\"";
    return line;
  }
};

TEST_F(AuditTest, AnEmptyStoreHasNothing) {
  const Audit result = found();
  EXPECT_EQ(result.fault_count, 0U);
  EXPECT_EQ(result.usage.total(), 0U);
}

TEST_F(AuditTest, AccountsForEachOctetOfAZone) {
  auto lines = kSmallZone;
  lines.push_back(large_text());
  lines.push_back("www.example. 300 RRSIG A 8 2 300 20300101000000 20200101000000 1 example. AAAA");
  ASSERT_TRUE(load("example.", lines));
  expect_sound();
  const Audit result = found();
  EXPECT_EQ(result.zones, 1U);
  EXPECT_EQ(result.records, lines.size());
  EXPECT_EQ(result.names, zone("example.").name_count());
  // Five strings, the length octet of each, and the RDATA's own length.
  EXPECT_GT(result.usage.rdata, 5U * 251U);
  EXPECT_GT(result.usage.signatures, 20U);
  EXPECT_GT(result.usage.trie, 0U);
  EXPECT_EQ(result.usage.history, 0U);
}

TEST_F(AuditTest, TellsHowFarItIs) {
  auto lines = kSmallZone;
  for (int i = 0; i < 3000; ++i) lines.push_back("n" + std::to_string(i) + large_text());
  ASSERT_TRUE(load("example.", lines));
  const auto counted = shm::occupancy(store_->window());
  const auto all = std::accumulate(counted.begin(), counted.end(), std::uint64_t{0});
  ASSERT_GT(all, std::uint64_t{3} << 20);
  std::vector<std::uint64_t> told;
  ASSERT_EQ(audit(store_->window(), store_->current().root,
                  [&](std::uint64_t octets) { told.push_back(octets); })
                .fault_count,
            0U);
  EXPECT_EQ(told.size(), all >> 20);
  EXPECT_TRUE(std::is_sorted(told.begin(), told.end()));
  EXPECT_LE(told.back(), all);
}

TEST_F(AuditTest, FollowsSharedSetsReplacedZonesAndHistories) {
  std::vector<std::string> lines = kSmallZone;
  for (int i = 0; i < 200; ++i)
    for (const char* server : {"ns1", "ns2"})
      lines.push_back("d" + std::to_string(i) + ".example. 60 NS " + server +
                      ".operator.example.net.");
  ASSERT_TRUE(load("example.", lines, {}, 0));
  EXPECT_GT(found().usage.shared, 0U);
  expect_sound();
  ASSERT_TRUE(load("example.", lines, {}, 0));  // the old blocks wait for being dismantled
  EXPECT_GT(found().usage.discarded, 0U);
  expect_sound();
  ASSERT_TRUE(apply("example.", {kSmallZone[0]},
                    {"example. 3600 SOA ns.example. admin.example. 8 7200 3600 1209600 300",
                     "new.example. 5 A 192.0.2.9"}));
  EXPECT_GT(found().usage.history, 0U);
  expect_sound();
  EXPECT_EQ(audit_zone(store_->window(), store_->current().root, name("example.")).fault_count, 0U);
  ASSERT_TRUE(commit([](Draft& draft) { return dismantle_discarded(draft, 50); }));
  expect_sound();
}

TEST_F(AuditTest, IsExactAfterManyChanges) {
  ASSERT_TRUE(load("example.", kSmallZone));
  std::mt19937 random(7);
  std::uint32_t serial = 7;
  const auto soa = [](std::uint32_t number) {
    return "example. 3600 SOA ns.example. admin.example. " + std::to_string(number) +
           " 7200 3600 1209600 300";
  };
  for (int i = 0; i < 300; ++i) {
    const std::string owner = "n" + std::to_string(random() % 60) + ".example. ";
    const std::string line = owner + "60 A 10.0.0." + std::to_string(random() % 3);
    const bool there = zone("example.")
                           .record_at(name(owner.substr(0, owner.size() - 1)))
                           .find(dns::RRType::kA)
                           .count() > 0;
    std::vector<std::string> out{soa(serial)};
    std::vector<std::string> in{soa(serial + 1)};
    if (there && random() % 2 == 0)
      for (int a = 0; a < 3; ++a) out.push_back(owner + "60 A 10.0.0." + std::to_string(a));
    else
      in.push_back(line);
    ASSERT_TRUE(apply("example.", out, in));
    ++serial;
    if (i % 50 == 0) expect_sound();
  }
  expect_sound();
}

TEST_F(AuditTest, SeesEachChangedOctetOfABranch) {
  auto lines = kSmallZone;
  for (int i = 0; i < 40; ++i)
    lines.push_back("h" + std::to_string(i) + ".example. 60 A 192.0.2.1");
  ASSERT_TRUE(load("example.", lines));
  const std::uint32_t ref = entry()->names;
  auto* octets = block<std::uint8_t>(ref);
  const std::size_t size = Branch::octets(block<Branch>(ref)->count());
  for (std::size_t i = 0; i < size; ++i) {
    octets[i] ^= 1;
    EXPECT_GT(found().fault_count, 0U) << "octet " << i;
    octets[i] ^= 1;
  }
  expect_sound();
}

TEST_F(AuditTest, SeesWrongCountsSerialsAndSettings) {
  ASSERT_TRUE(load("example.", kSmallZone));
  const auto expect_seen = [&](auto& field) {
    const auto before = field;
    field += 8;
    EXPECT_GT(found().fault_count, 0U);
    field = before;
  };
  expect_seen(entry()->record_count);
  expect_seen(entry()->name_count);
  expect_seen(entry()->serial);
  expect_seen(entry()->apex);
  expect_seen(entry()->nsec3);
  expect_seen(entry()->shared);
  expect_seen(entry()->history);
  expect_seen(block<RootData>(store_->current().root.units)->zone_count);
  expect_seen(block<RootData>(store_->current().root.units)->settings);
  expect_sound();
}

TEST_F(AuditTest, SeesLostBlocks) {
  ASSERT_TRUE(load("example.", kSmallZone));
  const std::uint32_t nsec3 = entry()->names;
  entry()->names = 0;  // nothing leads there any more
  const Audit result = found();
  entry()->names = nsec3;
  ASSERT_GT(result.fault_count, 0U);
  bool chunk = false;
  for (const std::string& fault : result.faults) chunk = chunk || fault.starts_with("chunk ");
  EXPECT_TRUE(chunk);
}

/// Whatever octets change, the walk ends and reads nothing outside (ASan); most changes are seen.
TEST_F(AuditTest, EndsWhateverTheStoreSays) {
  auto lines = kSmallZone;
  lines.push_back(large_text());
  ASSERT_TRUE(load("example.", lines));
  ASSERT_TRUE(apply("example.", {kSmallZone[0]},
                    {"example. 3600 SOA ns.example. admin.example. 8 7200 3600 1209600 300"}));
  const auto counted = shm::occupancy(store_->window());
  auto* chunks = const_cast<std::byte*>(store_->window().base()) + shm::kFirstBlock;
  std::mt19937 random(11);
  for (int i = 0; i < 3000; ++i) {
    std::size_t chunk = random() % counted.size();
    if (counted[chunk] == 0) continue;
    std::byte& octet = chunks[chunk * shm::kChunkBytes + random() % (counted[chunk] + 64)];
    const std::byte before = octet;
    octet = std::byte(random());
    const Audit result = audit(store_->window(), store_->current().root);
    EXPECT_LE(result.faults.size(), Audit::kFaultsKept);
    octet = before;
  }
  expect_sound();
}

TEST_F(AuditTest, AZoneThatIsNotThereIsAFault) {
  ASSERT_TRUE(load("example.", kSmallZone));
  EXPECT_EQ(audit_zone(store_->window(), store_->current().root, name("other.")).fault_count, 1U);
}

TEST_F(AuditTest, AFileThatIsLeftIsReadWithoutAManager) {
  ASSERT_TRUE(load("example.", kSmallZone));
  auto live = shm::Inspection::open(path_, layout_fingerprint());
  ASSERT_FALSE(live);
  EXPECT_EQ(live.error().code, Errc::kExists);
  const auto counted = shm::occupancy(store_->window());
  const std::string copy = path_ + ".copy";
  store_.reset();
  std::filesystem::copy_file(path_, copy);
  for (const std::string& path : {path_, copy}) {
    auto left = shm::Inspection::open(path, layout_fingerprint());
    ASSERT_TRUE(left) << left.error().text;
    EXPECT_EQ(shm::occupancy(left->window()), counted);
    Audit result = audit(left->window(), left->version().root);
    compare_chunks(result, shm::occupancy(left->window()));
    EXPECT_EQ(result.fault_count, 0U);
    EXPECT_EQ(result.zones, 1U);
  }
  // A header that says more than any store can have, in a file that is long enough for it.
  constexpr std::uint64_t kTooLong = shm::kReach + shm::kChunkBytes;
  std::filesystem::resize_file(copy, kTooLong);
  {
    std::fstream file(copy, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(64);  // Header::committed
    file.write(reinterpret_cast<const char*>(&kTooLong), sizeof kTooLong);
  }
  auto long_one = shm::Inspection::open(copy, layout_fingerprint());
  ASSERT_FALSE(long_one);
  EXPECT_EQ(long_one.error().code, Errc::kCorrupt);
  std::filesystem::resize_file(copy, shm::kFirstBlock + 4096);
  auto cut = shm::Inspection::open(copy, layout_fingerprint());
  ASSERT_FALSE(cut);
  EXPECT_EQ(cut.error().code, Errc::kCorrupt);
  std::filesystem::remove(copy);
  EXPECT_FALSE(shm::Inspection::open(path_, layout_fingerprint() + 1));
  EXPECT_FALSE(shm::Inspection::open(path_ + ".none", layout_fingerprint()));
}

}  // namespace audit_test
}  // namespace pando::zone
