#include "zone/trie/stored_settings.h"

#include <string>

#include "shm/inspect/inspection.h"
#include "tests/unit/zone/draft/zone_fixture.h"
#include "zone/audit/audit.h"
#include "zone/draft/compaction.h"

namespace pando::zone {
namespace stored_settings_test {

using testing::name;

constexpr std::uint32_t kZones = 5'000;

dns::Name apex(std::uint32_t number) { return name("z" + std::to_string(number) + "."); }

/// Settings that no other number has.
ZoneSettings settings_of(std::uint32_t number) {
  ZoneSettings settings;
  settings.allow_query.push_back({});
  settings.allow_query.back().key = name("key" + std::to_string(number) + ".");
  return settings;
}

class StoredSettingsTest : public testing::ZoneTest {
 protected:
  StoredSettingsTest() {
    EXPECT_TRUE(commit([&](Draft& draft) -> Status {
      for (std::uint32_t i = 0; i < kZones; ++i)
        if (auto put = draft.put_zone_settings(apex(i), settings_of(i), i); !put) return put;
      return {};
    }));
  }

  /// Bytes that a version with these changes writes.
  template <class Work>
  std::uint64_t written_by(Work&& work) {
    shm::Transaction transaction = store_->begin();
    const auto current = store_->current();
    Draft draft(transaction, current.root, current.number + 1);
    EXPECT_TRUE(work(draft));
    const std::uint64_t written = transaction.allocated_bytes();
    EXPECT_TRUE(store_->publish(std::move(transaction), draft.root(), 0));
    return written;
  }

  void expect_sound() {
    Audit result = audit(store_->window(), store_->current().root);
    compare_chunks(result, shm::occupancy(store_->window()));
    EXPECT_EQ(result.fault_count, 0U) << (result.faults.empty() ? "" : result.faults.front());
  }

  [[nodiscard]] bool has_settings(std::uint32_t zone, const ZoneSettings& settings) const {
    const auto found = decode_zone_settings(view().zone_at(apex(zone)).settings_bytes());
    return found && *found == settings;
  }
};

TEST_F(StoredSettingsTest, OneZonesSettingsCostAPathBesideManyOthers) {
  constexpr std::uint64_t kPath = 4096;
  EXPECT_LT(written_by([](Draft& draft) {
              return draft.put_zone_settings(apex(7), settings_of(kZones + 7), 7);
            }),
            kPath);
  EXPECT_LT(written_by([](Draft& draft) {
              return draft.put_zone_settings(apex(kZones), settings_of(8), kZones);
            }),
            kPath);
  EXPECT_LT(written_by([](Draft& draft) { return draft.remove_zone(apex(9)); }), kPath);
  EXPECT_TRUE(has_settings(7, settings_of(kZones + 7)));
  EXPECT_TRUE(has_settings(kZones, settings_of(8)));
  expect_sound();
}

TEST_F(StoredSettingsTest, EachZoneFindsItsOwn) {
  for (std::uint32_t i = 0; i < kZones; ++i) ASSERT_TRUE(has_settings(i, settings_of(i))) << i;
  expect_sound();
}

TEST_F(StoredSettingsTest, SettingsGoWithTheirLastZone) {
  ASSERT_TRUE(commit([](Draft& draft) { return draft.put_zone_settings(apex(1), {}, 1); }));
  ASSERT_TRUE(commit([](Draft& draft) { return draft.put_zone_settings(apex(2), {}, 2); }));
  const std::uint64_t tag = view().zone_at(apex(1)).settings_tag();
  EXPECT_EQ(view().zone_at(apex(1)).settings_bytes().data(),
            view().zone_at(apex(2)).settings_bytes().data());
  ASSERT_TRUE(commit([](Draft& draft) { return draft.remove_zone(apex(1)); }));
  EXPECT_EQ(view().zone_at(apex(2)).settings_tag(), tag);
  EXPECT_TRUE(has_settings(2, {}));
  const auto live = [&] { return store_->stats().live_bytes; };
  const std::uint64_t before = live();
  ASSERT_TRUE(commit([](Draft& draft) -> Status {
    for (std::uint32_t i = 2; i < kZones; ++i)
      if (auto removed = draft.remove_zone(apex(i)); !removed) return removed;
    return draft.remove_zone(apex(0));
  }));
  EXPECT_LT(live(), before / 100);
  expect_sound();
}

TEST_F(StoredSettingsTest, CompactionMovesThemInShortSteps) {
  for (std::uint32_t i = 0; i < kZones; i += 2)
    ASSERT_TRUE(commit([&](Draft& draft) { return draft.remove_zone(apex(i)); }));
  ASSERT_GT(store_->choose_victims(101, 10'000), 0U);
  CompactCursor cursor;
  int steps = 0;
  for (bool done = false; !done; ++steps) {
    ASSERT_LT(steps, 10'000) << "compaction must make progress";
    std::uint64_t written = written_by([&](Draft& draft) -> Status {
      auto step = compact(draft, cursor, 20);
      if (!step) return pass(step);
      done = *step;
      return {};
    });
    EXPECT_LT(written, 20'000U);
    // Changes between steps, on both sides of the cursor.
    const auto zone = static_cast<std::uint32_t>(steps % 1000 * 2 + 1);
    ASSERT_TRUE(commit([&](Draft& draft) {
      return draft.put_zone_settings(apex(zone), settings_of(kZones + zone), zone);
    }));
  }
  store_->reclaim();
  const auto stats = store_->stats();
  EXPECT_LE((stats.chunks_in_use - stats.waiting_chunks) * shm::kChunkBytes,
            stats.live_bytes * 5 / 4 + 4 * shm::kChunkBytes);
  for (std::uint32_t i = 1; i < kZones; i += 2)
    ASSERT_TRUE(has_settings(i, settings_of(i)) || has_settings(i, settings_of(kZones + i))) << i;
  expect_sound();
}

TEST_F(StoredSettingsTest, AStepOfCompactionWritesNoMoreThanItsBound) {
  ASSERT_GT(store_->choose_victims(101, 10'000), 0U);
  CompactCursor cursor;
  std::uint64_t all = 0;
  for (bool done = false; !done;) {
    const std::uint64_t written = written_by([&](Draft& draft) -> Status {
      auto step = compact(draft, cursor, 1'000'000);
      if (!step) return pass(step);
      done = *step;
      return {};
    });
    EXPECT_LT(written, kMaxCompacted + shm::kChunkBytes / 4);
    ASSERT_TRUE(written > 0 || done) << "compaction must make progress";
    all += written;
  }
  EXPECT_GT(all, 2 * kMaxCompacted) << "or one step could do all";
  expect_sound();
}

TEST_F(StoredSettingsTest, TheAuditSeesChangedSettings) {
  const ByteView bytes = view().zone_at(apex(3)).settings_bytes();
  auto* octet = const_cast<std::uint8_t*>(bytes.data()) + bytes.size() / 2;
  *octet ^= 1;
  EXPECT_GT(audit(store_->window(), store_->current().root).fault_count, 0U);
  *octet ^= 1;
  expect_sound();
}

}  // namespace stored_settings_test
}  // namespace pando::zone
