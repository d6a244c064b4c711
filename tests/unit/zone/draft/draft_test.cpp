#include "zone/draft/draft.h"

#include <gmock/gmock.h>

#include "zone/audit/audit.h"
#include "zone/draft/discarded_blocks.h"
#include "zone_fixture.h"

namespace pando::zone {
namespace draft_test {

using testing::dump;
using testing::kSmallZone;
using testing::name;
using testing::record;

const std::string kSoa7 = "example. 3600 SOA ns.example. admin.example. 7 7200 3600 1209600 300";
const std::string kSoa8 = "example. 3600 SOA ns.example. admin.example. 8 7200 3600 1209600 300";

class DraftTest : public testing::ZoneTest {
 protected:
  void SetUp() override { ASSERT_TRUE(load("example.", kSmallZone)); }
  bool has(const std::string& line) const {
    const auto lines = dump(zone("example."));
    return std::find(lines.begin(), lines.end(), line) != lines.end();
  }
};

TEST_F(DraftTest, AChangesetIsWholeOrNotThere) {
  const auto before = view();
  const auto applied = apply("example.", {kSoa7, "www.example. 300 A 192.0.2.10"},
                             {kSoa8, "new.example. 60 AAAA 2001:db8::1"});
  ASSERT_TRUE(applied) << applied.error().text;
  EXPECT_EQ(applied->from.value, 7U);
  EXPECT_EQ(applied->to.value, 8U);
  EXPECT_TRUE(has("new.example. 60 AAAA 2001:db8::1"));
  EXPECT_FALSE(has("www.example. 300 A 192.0.2.10"));
  EXPECT_EQ(zone("example.").serial().value, 8U);
  EXPECT_EQ(zone("example.").record_count(), 10U);
  EXPECT_EQ(zone("example.").name_count(), 9U);
  EXPECT_EQ(before.zone_at(name("example.")).serial().value, 7U) << "the old version still stands";
}

TEST_F(DraftTest, ReportsWhatReallyChanged) {
  const auto applied =
      apply("example.", {"www.example. 1 A 192.0.2.99", "gone.example. 1 A 192.0.2.1"},
            {"www.example. 300 A 192.0.2.10", "www.example. 300 A 192.0.2.12"});
  ASSERT_TRUE(applied);
  EXPECT_EQ(applied->missing_removals, 2U);
  EXPECT_EQ(applied->redundant_additions, 1U);
  EXPECT_TRUE(applied->effective.removed.empty());
  ASSERT_EQ(applied->effective.added.size(), 1U);
  EXPECT_EQ(applied->effective.added[0].rdata, record("x. 1 A 192.0.2.12").rdata);
}

TEST_F(DraftTest, NothingChangedMeansNoNewBlocks) {
  const auto root = store_->current().root;
  const auto applied = apply("example.", {}, {"www.example. 300 A 192.0.2.10"});
  ASSERT_TRUE(applied);
  EXPECT_TRUE(applied->effective.empty());
  EXPECT_EQ(store_->current().root, root);
}

TEST_F(DraftTest, TheNewestTtlIsTheWholeSets) {
  const auto applied = apply("example.", {}, {"www.example. 60 A 192.0.2.12"});
  ASSERT_TRUE(applied);
  EXPECT_TRUE(has("www.example. 60 A 192.0.2.10"));
  EXPECT_EQ(applied->effective.removed.size(), 2U);
  EXPECT_EQ(applied->effective.added.size(), 3U);
}

TEST_F(DraftTest, RemovalIgnoresTheTtlAndTheCaseOfNames) {
  ASSERT_TRUE(apply("example.", {"SUB.example. 1 NS NS.sub.EXAMPLE."}, {}));
  EXPECT_FALSE(zone("example.").record_at(name("sub.example.")));
}

TEST_F(DraftTest, ANameWithoutRecordsIsGone) {
  ASSERT_TRUE(apply("example.", {"a.b.c.example. 60 A 192.0.2.20"}, {}));
  EXPECT_FALSE(zone("example.").lookup(name("b.c.example.")).empty_non_terminal);
  EXPECT_EQ(zone("example.").lookup(name("b.c.example.")).encloser_labels, 1);
}

TEST_F(DraftTest, BrokenRulesLeaveNoTrace) {
  const auto lines = dump(zone("example."));
  const auto reason = [&](const std::vector<std::string>& out, const std::vector<std::string>& in) {
    const auto applied = apply("example.", out, in);
    return applied ? std::string("applied") : applied.error().text;
  };
  EXPECT_EQ(reason({}, {"aaa.example. 1 A 192.0.2.1", "www.example. 60 CNAME x.example."}),
            "www.example.: CNAME and other data");
  EXPECT_EQ(reason({kSoa7}, {}), "example.: 0 SOA records, one is needed");
  EXPECT_EQ(reason({}, {kSoa8}), "example.: 2 SOA records, one is needed");
  EXPECT_EQ(reason({"example. 1 NS ns.example."}, {}), "example.: no NS records at the apex");
  EXPECT_EQ(reason({}, {"x.other. 1 A 192.0.2.1"}), "x.other. is outside the zone example.");
  EXPECT_EQ(dump(zone("example.")), lines);
}

TEST_F(DraftTest, LimitsRefuseGrowthOnly) {
  DataLimits limits;
  limits.rrset_records = 2;
  EXPECT_EQ(apply("example.", {}, {"www.example. 300 A 192.0.2.12"}, limits).error().code,
            Errc::kFull);
  limits.rrset_records = 1;
  EXPECT_TRUE(apply("example.", {}, {"www.example. 60 A 192.0.2.11"}, limits))
      << "a set that was too big already may change its TTL";
  limits = {};
  limits.name_types = 1;
  EXPECT_FALSE(apply("example.", {}, {"www.example. 300 TXT \"x\""}, limits));
  limits = {};
  limits.zone_records = 10;
  EXPECT_FALSE(apply("example.", {}, {"more.example. 300 TXT \"x\""}, limits));
  EXPECT_TRUE(
      apply("example.", {"www.example. 1 A 192.0.2.10"}, {"more.example. 300 TXT \"x\""}, limits));
  limits.zone_records = 5;
  EXPECT_TRUE(apply("example.", {"more.example. 300 TXT \"x\""}, {}, limits))
      << "a zone that was too large already may shrink";
}

TEST_F(DraftTest, OneTransactionMayHoldSeveralChangesets) {
  const auto root_before = view();
  const auto done = commit([&](Draft& draft) -> Status {
    for (int i = 0; i < 20; ++i) {
      Changeset changes;
      changes.zone = name("example.");
      changes.added.push_back(record("n" + std::to_string(i) + ".example. 60 A 192.0.2.1"));
      auto applied = draft.apply(changes, {});
      if (!applied) return pass(applied);
      EXPECT_TRUE(draft.view().zone_at(name("example.")).record_at(changes.added[0].owner));
      EXPECT_FALSE(root_before.zone_at(name("example.")).record_at(changes.added[0].owner));
    }
    return {};
  });
  ASSERT_TRUE(done);
  EXPECT_EQ(zone("example.").record_count(), 30U);
}

TEST_F(DraftTest, SettingsAreSharedAndReplaced) {
  ZoneSettings open;
  open.allow_query.push_back({});
  const auto put = [&](std::string_view apex, const ZoneSettings& settings) {
    return commit([&](Draft& draft) { return draft.put_zone_settings(name(apex), settings, 5); });
  };
  ASSERT_TRUE(put("one.", open));
  ASSERT_TRUE(put("two.", open));
  EXPECT_EQ(zone("one.").settings_bytes().data(), zone("two.").settings_bytes().data());
  EXPECT_FALSE(zone("one.").loaded());
  EXPECT_EQ(zone("one.").side_index(), 5U);
  ASSERT_TRUE(put("one.", {}));
  EXPECT_NE(zone("one.").settings_tag(), zone("two.").settings_tag());
  const auto decoded = decode_zone_settings(zone("two.").settings_bytes());
  ASSERT_TRUE(decoded);
  EXPECT_EQ(*decoded, open);
  ASSERT_TRUE(commit([](Draft& draft) { return draft.remove_zone(name("two.")); }));
  EXPECT_FALSE(zone("two."));
  EXPECT_EQ(view().zone_count(), 2U);
}

TEST_F(DraftTest, ServerSettingsArePartOfAVersion) {
  ServerSettings settings;
  settings.identity = "ns1";
  ASSERT_TRUE(commit([&](Draft& draft) { return draft.put_server_settings(settings); }));
  const auto decoded = decode_server_settings(view().server_settings_bytes());
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->identity, "ns1");
}

TEST_F(DraftTest, UnloadedZonesKeepTheirPlace) {
  ASSERT_TRUE(commit([](Draft& draft) { return draft.unload_zone(name("example.")); }));
  ASSERT_TRUE(zone("example."));
  EXPECT_FALSE(zone("example.").loaded());
  EXPECT_FALSE(zone("example.").apex_record());
  EXPECT_FALSE(apply("example.", {}, {"x.example. 1 A 192.0.2.1"}));
}

/// The audit counts the blocks; each way to change a zone keeps the sum.
TEST_F(DraftTest, AZonesBytesAreThoseOfItsBlocks) {
  const auto bytes_are_right = [this] {
    const auto current = store_->current();
    const Audit found = audit_zone(store_->window(), current.root, name("example."));
    return found.faults.empty() ? "" : found.faults.front();
  };
  EXPECT_EQ(bytes_are_right(), "");
  const std::uint64_t small = ZoneFigures::of(zone("example.")).data_bytes;
  EXPECT_GT(small, 200U);
  std::vector<std::string> many;
  for (int i = 0; i < 3000; ++i) {
    const std::string owner = "h" + std::to_string(i) + ".example. 60 ";
    many.push_back(owner + "TXT \"" + std::string(100, 'x') + "\"");
    many.push_back(owner + "A 192.0.2.1");
  }
  ASSERT_TRUE(apply("example.", {}, many));
  EXPECT_EQ(bytes_are_right(), "");
  EXPECT_GT(ZoneFigures::of(zone("example.")).data_bytes, small + 3000 * 110);
  ASSERT_TRUE(apply("example.", many, {}));
  EXPECT_EQ(bytes_are_right(), "");
  EXPECT_EQ(ZoneFigures::of(zone("example.")).data_bytes, small) << "the history has bytes of its own";
  ASSERT_TRUE(commit([](Draft& draft) { return draft.unload_zone(name("example.")); }));
  EXPECT_EQ(ZoneFigures::of(zone("example.")).data_bytes, 0U);
}

TEST_F(DraftTest, AZoneHasTheTimeOfItsLastChange) {
  EXPECT_EQ(ZoneFigures::of(zone("example.")).changed_at, 0U) << "unknown";
  const auto add_at = [this](std::uint64_t time, const std::string& line) {
    Changeset changes;
    changes.zone = name("example.");
    changes.added.push_back(record(line));
    return commit([&](Draft& draft) {
      draft.set_time(time);
      return draft.apply(changes, {});
    });
  };
  ASSERT_TRUE(add_at(1000, "new.example. 60 A 192.0.2.1"));
  EXPECT_EQ(ZoneFigures::of(zone("example.")).changed_at, 1000U);
  ASSERT_TRUE(add_at(2000, "new.example. 60 A 192.0.2.1"));
  EXPECT_EQ(ZoneFigures::of(zone("example.")).changed_at, 1000U) << "nothing changed";
  ASSERT_TRUE(commit([](Draft& draft) {
    draft.set_time(3000);
    return draft.put_zone_source(name("example."), {1, 2, 3, 4});
  }));
  EXPECT_EQ(ZoneFigures::of(zone("example.")).changed_at, 1000U) << "its data are the same";
  ASSERT_TRUE(commit([](Draft& draft) {
    draft.set_time(4000);
    return draft.unload_zone(name("example."));
  }));
  EXPECT_EQ(ZoneFigures::of(zone("example.")).changed_at, 4000U);
}

TEST_F(DraftTest, OneRemovedZoneCostsTheSameBesideMany) {
  constexpr int kZones = 600;
  const auto apex = [](int number) { return "z" + std::to_string(number) + "."; };
  for (int i = 0; i < kZones; ++i) {
    ASSERT_TRUE(load(apex(i), {apex(i) + " 60 SOA a. b. 1 2 3 4 5", apex(i) + " 60 NS a.",
                               "www." + apex(i) + " 60 A 192.0.2.1"}));
  }
  std::uint64_t least = UINT64_MAX;
  std::uint64_t most = 0;
  for (int i = 0; i < kZones; ++i) {
    shm::Transaction transaction = store_->begin();
    const auto current = store_->current();
    Draft draft(transaction, current.root, current.number + 1);
    ASSERT_TRUE(draft.remove_zone(name(apex(i))));
    least = std::min(least, transaction.allocated_bytes());
    most = std::max(most, transaction.allocated_bytes());
    ASSERT_TRUE(store_->publish(std::move(transaction), draft.root(), 0));
  }
  EXPECT_LT(most, least + 1024);
  while (!commit([](Draft& draft) { return dismantle_discarded(draft, 7); }).value()) continue;
  EXPECT_LT(store_->stats().live_bytes, 4096U);
}

TEST_F(DraftTest, FullStoreIsAnErrorAndTheOldVersionServes) {
  std::vector<std::string> lines = kSmallZone;
  for (int i = 0; i < 1'000; ++i)
    lines.push_back("big" + std::to_string(i) + ".example. 60 TXT \"" + std::string(250, 'x') +
                    "\"");
  store_.reset();
  ::unlink(path_.c_str());
  shm::StoreOptions options;
  options.path = path_;
  options.size_limit = std::uint64_t{16} * shm::kChunkBytes + (std::uint64_t{140} << 20);
  options.layout = layout_fingerprint();
  auto made = shm::Store::create(options);
  ASSERT_TRUE(made) << made.error().text;
  store_ = std::make_unique<shm::Store>(std::move(*made));
  Status loaded = load("example.", kSmallZone);
  ASSERT_TRUE(loaded) << loaded.error().text;
  for (int i = 0; i < 5'000 && loaded; ++i)
    loaded = load("z" + std::to_string(i) + ".", [&] {
      std::vector<std::string> zone_lines = {"z" + std::to_string(i) + ". 60 SOA a. b. 1 2 3 4 5",
                                             "z" + std::to_string(i) + ". 60 NS a."};
      for (int j = 0; j < 300; ++j)
        zone_lines.push_back("z" + std::to_string(i) + ". 60 TXT \"" + std::string(240, 'x') +
                             std::to_string(j) + "\"");
      return zone_lines;
    }());
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, Errc::kFull) << loaded.error().text;
  EXPECT_EQ(zone("example.").record_count(), 10U);
  EXPECT_TRUE(commit([](Draft& draft) { return draft.remove_zone(name("z0.")); }))
      << "deletes go through in a full store";
}

TEST_F(DraftTest, NamesAllThatBreakARule) {
  const auto before = dump(zone("example."));
  std::vector<std::string> added = {"www.example. 300 CNAME ns.example.",
                                    "ok.example. 1 A 192.0.2.1",
                                    "sub.example. 300 CNAME ns.example."};
  const auto two = apply("example.", {}, added);
  ASSERT_FALSE(two);
  EXPECT_EQ(two.error().code, Errc::kInvalid);
  EXPECT_THAT(two.error().text, ::testing::HasSubstr("www.example."));
  EXPECT_THAT(two.error().text, ::testing::HasSubstr("sub.example."));
  for (int i = 0; i < 12; ++i)
    for (const char* target : {"a.", "b."})
      added.push_back("c" + std::to_string(i) + ".example. 60 CNAME " + target);
  const auto many = apply("example.", {}, added);
  ASSERT_FALSE(many);
  EXPECT_THAT(many.error().text, ::testing::HasSubstr("and 4 more names"));
  EXPECT_EQ(dump(zone("example.")), before);
}

TEST_F(DraftTest, ThePrimarysSerialStaysWithTheDataThatItIsOf) {
  EXPECT_EQ(primary_serial(zone("example.")), std::nullopt);
  EXPECT_EQ(primary_serial(ZoneView()), std::nullopt);
  const auto put = [this](std::optional<dns::Serial> serial) {
    return commit([&](Draft& draft) { return draft.put_primary_serial(name("example."), serial); });
  };
  ASSERT_TRUE(put(dns::Serial{0}));
  EXPECT_EQ(primary_serial(zone("example.")), std::optional(dns::Serial{0})) << "0 is a serial";
  ASSERT_TRUE(put(dns::Serial{40}));
  ASSERT_TRUE(apply("example.", {kSoa7}, {kSoa8}));
  EXPECT_EQ(primary_serial(zone("example.")), std::optional(dns::Serial{40}));
  ASSERT_TRUE(put(std::nullopt));
  EXPECT_EQ(primary_serial(zone("example.")), std::nullopt);
  ASSERT_TRUE(put(dns::Serial{41}));
  ASSERT_TRUE(load("example.", kSmallZone));
  EXPECT_EQ(primary_serial(zone("example.")), std::nullopt) << "other data";
  ASSERT_TRUE(put(dns::Serial{42}));
  ASSERT_TRUE(commit([](Draft& draft) { return draft.unload_zone(name("example.")); }));
  EXPECT_EQ(primary_serial(zone("example.")), std::nullopt);
}

}  // namespace draft_test
}  // namespace pando::zone
