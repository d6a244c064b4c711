#include "zone/history/zone_snapshot.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <random>

#include "shm/inspect/inspection.h"
#include "shm/slots.h"
#include "tests/unit/zone/draft/zone_fixture.h"
#include "zone/audit/audit.h"
#include "zone/draft/compaction.h"
#include "zone/draft/detached_draft.h"
#include "zone/draft/discarded_blocks.h"
#include "zone/draft/shorten_histories.h"
#include "zone/history/history.h"

namespace pando::zone {
namespace zone_snapshot_test {

using testing::dump;
using testing::name;
using Lines = std::multiset<std::string>;
using State = ZoneSnapshot::State;

std::string soa(std::uint32_t serial) {
  return "example. 60 SOA a. b. " + std::to_string(serial) + " 2 3 4 5";
}

Lines lines_of(const ZoneView& zone) {
  const auto all = dump(zone);
  return {all.begin(), all.end()};
}

class Snapshots : public testing::ZoneTest {
 protected:
  void SetUp() override { ASSERT_TRUE(load("example.", {soa(1), "example. 60 NS a."})); }

  [[nodiscard]] ZoneView zone() const { return testing::ZoneTest::zone("example."); }
  Status save(std::string_view label, const DataLimits& limits = {}) {
    return commit(
        [&](Draft& draft) { return draft.take_snapshot(name("example."), label, 1, limits); });
  }
  Status forget(std::string_view label, const DataLimits& limits = {}) {
    return commit(
        [&](Draft& draft) { return draft.drop_snapshot(name("example."), label, limits); });
  }
  Result<Applied> step(std::uint32_t from, std::vector<std::string> removed,
                       std::vector<std::string> added, const DataLimits& limits = {}) {
    removed.push_back(soa(from));
    added.push_back(soa(from + 1));
    return apply("example.", removed, added, limits);
  }
  /// So many changes of about 100 bytes each, on from the present serial.
  void churn(int changes, const DataLimits& limits = {}) {
    for (; changes > 0; --changes) {
      const std::uint32_t serial = zone().serial().value;
      ASSERT_TRUE(
          step(serial, {}, {"c" + std::to_string(serial) + ".example. 60 A 192.0.2.1"}, limits));
    }
  }
  [[nodiscard]] ZoneSnapshot labelled(std::string_view label) const {
    const auto all = snapshots_of(zone());
    const ZoneSnapshot* found = find_snapshot(all, label);
    EXPECT_NE(found, nullptr) << label;
    return found == nullptr ? ZoneSnapshot() : *found;
  }
  /// The records of a snapshot: the data it is of, led back by their history.
  [[nodiscard]] Lines records_of(std::string_view label) const {
    const ZoneSnapshot version = labelled(label);
    const ZoneView data = data_of(zone(), version);
    if (!data) return {"lost"};
    Lines lines = lines_of(data);
    if (data.serial() == version.serial) return lines;
    auto reader = HistoryReader::from(data, version.serial);
    if (!reader) return {"no history"};
    std::vector<std::pair<bool, std::string>> way;
    while (const HistoryRecord* record = reader->next())
      way.emplace_back(record->added, dns::to_text(dns::Name(record->owner)) + " " +
                                          std::to_string(record->ttl.seconds) + " " +
                                          dns::to_text(record->type) + " " +
                                          dns::rdata_to_text(record->type, record->rdata));
    if (reader->damaged()) return {"damaged"};
    for (auto line = way.rbegin(); line != way.rend(); ++line) {
      const auto found = lines.find(line->second);
      if (line->first && found == lines.end()) return {"no " + line->second};
      if (line->first)
        lines.erase(found);
      else
        lines.insert(line->second);
    }
    return lines;
  }
  void expect_sound() const {
    Audit result = audit(store_->window(), store_->current().root);
    compare_chunks(result, shm::occupancy(store_->window()));
    EXPECT_EQ(result.fault_count, 0U) << (result.faults.empty() ? "" : result.faults.front());
  }
  [[nodiscard]] std::uint64_t bytes_of(std::string_view label) const {
    const Audit result = audit(store_->window(), store_->current().root);
    for (const SnapshotUsage& one : result.snapshots)
      if (one.label == label) return one.bytes;
    ADD_FAILURE() << label;
    return 0;
  }
  void dismantle() {
    while (!commit([&](Draft& draft) { return dismantle_discarded(draft, 1000); }).value())
      continue;
  }
  /// What the bytes of the store are for.
  [[nodiscard]] std::map<std::string, std::uint64_t> usage() const {
    return audit(store_->window(), store_->current().root).usage.by_name();
  }
};

TEST_F(Snapshots, AreListedInTheOrderInWhichTheyWereTaken) {
  ASSERT_TRUE(save("before"));
  churn(1);
  ASSERT_TRUE(save("after-1.x_Y"));
  const auto all = snapshots_of(zone());
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].label, "before");
  EXPECT_EQ(all[0].serial, dns::Serial{1});
  EXPECT_EQ(all[0].records, 2U);
  EXPECT_EQ(all[0].taken, 1U);
  EXPECT_EQ(all[1].label, "after-1.x_Y");
  EXPECT_EQ(all[1].serial, dns::Serial{2});
  EXPECT_TRUE(zone().has_snapshots());
  expect_sound();
}

TEST_F(Snapshots, LabelsAreChecked) {
  for (const std::string label : {"", "2024", "a b", "a/b", "\xc3\xa4", "a\n"})
    EXPECT_EQ(save(label).error().code, Errc::kInvalid) << label;
  EXPECT_EQ(save(std::string(kMaxSnapshotLabel + 1, 'x')).error().code, Errc::kInvalid);
  EXPECT_TRUE(save(std::string(kMaxSnapshotLabel, 'x')));
  EXPECT_EQ(labelled(std::string(kMaxSnapshotLabel, 'x')).serial, dns::Serial{1});
  EXPECT_EQ(save(std::string(kMaxSnapshotLabel, 'x')).error().code, Errc::kExists);
  EXPECT_EQ(forget("y").error().code, Errc::kNotFound);
}

TEST_F(Snapshots, ThereAreSoManyAndNoMore) {
  for (std::size_t i = 0; i < kMaxSnapshots; ++i) ASSERT_TRUE(save("v" + std::to_string(i)));
  EXPECT_EQ(save("more").error().code, Errc::kFull);
  ASSERT_TRUE(forget("v7"));
  EXPECT_TRUE(save("more"));
  DataLimits none;
  none.snapshots = 0;
  ASSERT_TRUE(forget("v8"));
  EXPECT_EQ(save("none", none).error().code, Errc::kFull);
}

TEST_F(Snapshots, KeepTheirChangesetsWhenTheHistoryIsTrimmed) {
  DataLimits limits;
  limits.history = 1000;
  churn(20, limits);
  ASSERT_TRUE(save("here", limits));
  const Lines before = lines_of(zone());
  churn(50, limits);
  EXPECT_GT(zone().history_bytes(), 4000U);
  EXPECT_EQ(records_of("here"), before);
  EXPECT_FALSE(HistoryReader::from(zone(), {20})) << "nobody needs what is before";
  EXPECT_EQ(bytes_of("here"), zone().history_bytes());
  expect_sound();
  ASSERT_TRUE(forget("here", limits));
  EXPECT_LE(zone().history_bytes(), 1000U) << "at once";
  EXPECT_FALSE(zone().has_snapshots());
  EXPECT_EQ(view().history_bytes(), zone().history_bytes());
  expect_sound();
}

TEST_F(Snapshots, NeedNoHistoryOfTheZoneBeyondTheirOwn) {
  DataLimits limits;
  limits.history = 0;
  ASSERT_TRUE(save("here", limits));
  const Lines before = lines_of(zone());
  churn(5, limits);
  EXPECT_EQ(records_of("here"), before);
  ASSERT_TRUE(forget("here", limits));
  EXPECT_EQ(zone().history_bytes(), 0U);
}

TEST_F(Snapshots, BytesGoToTheOneFromWhichTheChangesetsLead) {
  ASSERT_TRUE(save("a"));
  churn(3);
  ASSERT_TRUE(save("b"));
  churn(6);
  EXPECT_GT(bytes_of("a"), 0U);
  EXPECT_GT(bytes_of("b"), bytes_of("a"));
  EXPECT_EQ(bytes_of("a") + bytes_of("b"), zone().history_bytes());
}

TEST_F(Snapshots, TheOldestIsLostWhenTooMuchHasChanged) {
  DataLimits limits;
  limits.history = 1000;
  limits.snapshots = 2000;
  ASSERT_TRUE(save("old", limits));
  churn(10, limits);
  ASSERT_TRUE(save("young", limits));
  const Lines before = lines_of(zone());
  const std::uint32_t losses = view().snapshot_losses();
  while (labelled("old").held()) {
    churn(1, limits);
    ASSERT_LT(zone().serial().value, 100U);
    ASSERT_LE(zone().history_bytes(), 3000U);
  }
  EXPECT_EQ(labelled("old").state, State::kTooLarge);
  EXPECT_EQ(view().snapshot_losses(), losses + 1);
  EXPECT_EQ(records_of("old"), Lines{"lost"});
  EXPECT_EQ(records_of("young"), before);
  expect_sound();
  EXPECT_TRUE(save("old", limits)) << "the label is free";
  EXPECT_EQ(labelled("old").serial, zone().serial());
}

TEST_F(Snapshots, AreLostWithAChangeThatDoesNotMoveTheSerial) {
  ASSERT_TRUE(save("here"));
  churn(2);
  ASSERT_TRUE(apply("example.", {}, {"y.example. 60 A 192.0.2.1"}));
  EXPECT_EQ(labelled("here").state, State::kHistoryEnded);
  EXPECT_EQ(records_of("here"), Lines{"lost"});
  expect_sound();
}

TEST_F(Snapshots, OfTheSerialThatStaysAreLostWithSuchAChangeToo) {
  ASSERT_TRUE(save("here"));
  ASSERT_TRUE(apply("example.", {}, {"y.example. 60 A 192.0.2.1"}));
  EXPECT_EQ(records_of("here"), Lines{"lost"});
}

TEST_F(Snapshots, OutliveTheZoneThatTheyAreOf) {
  churn(2);
  ASSERT_TRUE(save("first"));
  const Lines first = lines_of(zone());
  churn(3);
  ASSERT_TRUE(save("second"));
  const Lines second = lines_of(zone());
  churn(4);
  ASSERT_TRUE(load("example.", {soa(3), "example. 60 NS other."})) << "a serial once more";
  EXPECT_EQ(records_of("first"), first);
  EXPECT_EQ(records_of("second"), second);
  EXPECT_EQ(view().history_bytes(), 0U);
  EXPECT_EQ(view().archives(), 1U);
  ASSERT_TRUE(save("third"));
  const Lines third = lines_of(zone());
  churn(4);
  ASSERT_TRUE(commit([&](Draft& draft) { return draft.unload_zone(name("example.")); }));
  EXPECT_EQ(view().archives(), 2U);
  dismantle();
  EXPECT_EQ(records_of("first"), first);
  EXPECT_EQ(records_of("second"), second);
  EXPECT_EQ(records_of("third"), third);
  EXPECT_GT(bytes_of("second"), 100U) << "with the data";
  expect_sound();
}

TEST_F(Snapshots, ArchivedDataGoesWithTheLastOfThem) {
  ASSERT_TRUE(load("example.", {soa(1), "example. 60 NS a."}));
  dismantle();
  const auto before = usage();
  ASSERT_TRUE(save("a"));
  churn(20);
  ASSERT_TRUE(save("b"));
  ASSERT_TRUE(load("example.", {soa(1), "example. 60 NS a."}));
  ASSERT_TRUE(forget("a"));
  EXPECT_EQ(view().archives(), 1U);
  ASSERT_TRUE(forget("b"));
  EXPECT_EQ(view().archives(), 0U);
  dismantle();
  EXPECT_EQ(usage(), before);
  expect_sound();
}

TEST_F(Snapshots, GoWithTheZone) {
  ASSERT_TRUE(commit([&](Draft& draft) { return draft.remove_zone(name("example.")); }));
  dismantle();
  const auto before = usage();
  ASSERT_TRUE(load("example.", {soa(1), "example. 60 NS a."}));
  ASSERT_TRUE(save("a"));
  churn(20);
  ASSERT_TRUE(load("example.", {soa(1), "example. 60 NS a."}));
  ASSERT_TRUE(save("b"));
  churn(2);
  ASSERT_TRUE(commit([&](Draft& draft) { return draft.remove_zone(name("example.")); }));
  dismantle();
  EXPECT_EQ(usage(), before);
  EXPECT_EQ(view().archives(), 0U);
  EXPECT_EQ(view().history_bytes(), 0U);
}

TEST_F(Snapshots, GetACopyBeforeAChangesetThatIsTooLarge) {
  DataLimits limits;
  limits.history = 1000;
  limits.snapshots = 1000;
  std::vector<std::string> lines{soa(1), "example. 60 NS a."};
  for (int i = 0; i < 100; ++i)
    lines.push_back("d" + std::to_string(i) + ".example. 60 NS ns1.operator.example.net.");
  ASSERT_TRUE(load("example.", lines, {}, 0)) << "with sets that are shared";
  churn(2, limits);
  ASSERT_TRUE(save("here", limits));
  const Lines before = lines_of(zone());
  churn(2, limits);
  std::vector<std::string> removed(lines.begin() + 2, lines.end());
  ASSERT_TRUE(step(zone().serial().value, removed, {"x.example. 60 A 192.0.2.1"}, limits));
  EXPECT_EQ(records_of("here"), before);
  EXPECT_EQ(view().archives(), 1U);
  EXPECT_EQ(zone().history_bytes(), 0U);
  EXPECT_EQ(view().history_bytes(), 0U);
  expect_sound();
  ASSERT_TRUE(forget("here", limits));
  dismantle();
  expect_sound();
}

TEST_F(Snapshots, AreThoseOfTheZoneThatWasWorkedOutBeside) {
  DataLimits limits;
  limits.history = 300;
  limits.snapshots = 300;
  ASSERT_TRUE(save("here", limits));
  const Lines before = lines_of(zone());
  const std::uint32_t losses = view().snapshot_losses();
  const auto beside = [&](const std::vector<std::string>& added) {
    Changeset changes;
    changes.zone = name("example.");
    const std::uint32_t serial = zone().serial().value;
    changes.removed.push_back(testing::record(soa(serial)));
    changes.added.push_back(testing::record(soa(serial + 1)));
    for (const std::string& line : added) changes.added.push_back(testing::record(line));
    DetachedDraft detached(*store_, store_->current(), name("example."));
    ASSERT_TRUE(detached.draft().apply(changes, limits));
    shm::Transaction transaction = store_->begin();
    const auto current = store_->current();
    Draft draft(transaction, current.root, current.number + 1);
    ASSERT_TRUE(detached.adopt(transaction, draft));
    ASSERT_TRUE(store_->publish(std::move(transaction), draft.root(), 0));
  };
  std::vector<std::string> many;
  for (int i = 0; i < 50; ++i) many.push_back("m" + std::to_string(i) + ".example. 60 A 192.0.2.1");
  beside(many);
  EXPECT_EQ(view().archives(), 1U);
  EXPECT_EQ(records_of("here"), before);
  EXPECT_EQ(view().snapshot_losses(), losses);
  ASSERT_TRUE(save("there", limits));
  for (int i = 0; i < 20; ++i) beside({"n" + std::to_string(i) + ".example. 60 A 192.0.2.1"});
  EXPECT_FALSE(labelled("there").held());
  EXPECT_EQ(view().snapshot_losses(), losses + 1);
  EXPECT_EQ(view().history_bytes(), zone().history_bytes());
  expect_sound();
}

TEST_F(Snapshots, ShorteningLeavesThemWhatTheyNeed) {
  churn(50);
  ASSERT_TRUE(save("here"));
  const Lines before = lines_of(zone());
  churn(50);
  dns::Name cursor;
  for (int i = 0; i < 10; ++i)
    ASSERT_TRUE(commit([&](Draft& draft) { return shorten_histories(draft, cursor, 10); }));
  EXPECT_EQ(records_of("here"), before);
  EXPECT_FALSE(HistoryReader::from(zone(), {50}));
}

TEST_F(Snapshots, AreLostInAStoreThatIsNearlyFull) {
  ASSERT_TRUE(save("archive"));
  ASSERT_TRUE(load("example.", {soa(1), "example. 60 NS a."}));
  ASSERT_TRUE(save("older"));
  churn(3);
  ASSERT_TRUE(save("present"));
  const Lines before = lines_of(zone());
  shm::Transaction filler = store_->begin_private();
  while (!store_->low_space()) ASSERT_TRUE(filler.allocate(60'000));
  EXPECT_EQ(save("new").error().code, Errc::kFull);
  dns::Name cursor;
  ASSERT_TRUE(commit([&](Draft& draft) { return shorten_histories(draft, cursor, 10); }));
  EXPECT_EQ(labelled("archive").state, State::kStoreFull);
  EXPECT_EQ(labelled("older").state, State::kStoreFull);
  EXPECT_EQ(records_of("present"), before) << "which costs nothing yet";
  EXPECT_EQ(view().archives(), 0U);
  churn(1);
  EXPECT_EQ(labelled("present").state, State::kStoreFull);
}

/// As behind a restart: what an old image holds will be free, and is no reason to lose anything.
TEST_F(Snapshots, AreKeptWhereRoomIsShortForWhatAPinHoldsAlone) {
  ASSERT_TRUE(save("archive"));
  churn(3);
  shm::Transaction held = store_->begin();
  std::vector<shm::Ref<>> blocks;
  for (int i = 0; i < 400; ++i) blocks.push_back(*held.allocate(60'000));
  ASSERT_TRUE(store_->publish(std::move(held), store_->current().root, 0));
  auto slots = shm::SlotTable::open(path_ + ".slots", path_, layout_fingerprint());
  ASSERT_TRUE(slots);
  store_->set_slots(&*slots);
  auto pin = slots->pin_own(store_->current().number);
  shm::Transaction releasing = store_->begin();
  for (const shm::Ref<> block : blocks) releasing.release(block, 60'000);
  ASSERT_TRUE(store_->publish(std::move(releasing), store_->current().root, 0));
  shm::Transaction filler = store_->begin_private();
  while (!store_->low_space()) ASSERT_TRUE(filler.allocate(60'000));
  churn(1);
  ASSERT_TRUE(load("example.", {soa(1), "example. 60 NS a."}));
  EXPECT_TRUE(save("new"));
  dns::Name cursor;
  ASSERT_TRUE(commit([&](Draft& draft) { return shorten_histories(draft, cursor, 10); }));
  EXPECT_TRUE(labelled("archive").held());
  EXPECT_EQ(records_of("archive").size(), 2U);
  churn(1);
  EXPECT_TRUE(labelled("new").held());
  EXPECT_TRUE(HistoryReader::from(zone(), {1}));
  // Shortly before additions are refused these come first.
  while (filler.allocate(60'000)) continue;
  churn(1);
  EXPECT_EQ(labelled("new").state, State::kStoreFull);
  EXPECT_TRUE(labelled("archive").held()) << "which takes no more room";
  pin = {};
  store_->set_slots(nullptr);
  store_->reclaim();
  EXPECT_FALSE(store_->low_space());
  std::filesystem::remove_all(path_ + ".slots");
}

TEST_F(Snapshots, ThatAreDamagedAreSeen) {
  ASSERT_TRUE(save("here"));
  churn(2);
  ASSERT_TRUE(load("example.", {soa(1), "example. 60 NS a."}));
  expect_sound();
  const std::uint32_t ref = labelled("here").archive;
  auto* bytes = reinterpret_cast<std::uint8_t*>(const_cast<std::byte*>(store_->window().base()) +
                                                shm::Ref<>{ref}.offset());
  for (const std::size_t at : {1U, 8U, 12U, 20U, 32U, 40U, 76U, 129U}) {
    bytes[at] ^= 1;
    EXPECT_GT(audit(store_->window(), store_->current().root).fault_count, 0U) << at;
    bytes[at] ^= 1;
  }
  expect_sound();
}

/// Whatever happens to the zone and wherever the compactor moves it, a snapshot has the
/// records it had, or is lost and says so.
TEST_F(Snapshots, AreWhatTheyWereWhateverHappens) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const auto pick = [&](unsigned count) { return static_cast<unsigned>(random() % count); };
  DataLimits limits;
  limits.history = 3000;
  limits.snapshots = 6000;
  std::map<std::string, Lines> model;
  CompactCursor cursor;
  int held = 0;
  for (int round = 0; round < 600; ++round) {
    const std::uint32_t serial = zone().serial().value;
    const unsigned what = pick(40);
    if (what == 0) {
      ASSERT_TRUE(load("example.", {soa(pick(5) + 1), "example. 60 NS b."}));
    } else if (what < 4 && model.size() < 6) {
      const std::string label = "v" + std::to_string(round);
      ASSERT_TRUE(save(label, limits));
      model[label] = lines_of(zone());
    } else if (what < 6 && !model.empty()) {
      const auto some = std::next(model.begin(), pick(static_cast<unsigned>(model.size())));
      ASSERT_TRUE(forget(some->first, limits));
      model.erase(some);
    } else {
      std::vector<std::string> lists[2];
      for (unsigned changes = 1 + (what == 7 ? 300 : pick(4)); changes > 0; --changes)
        lists[pick(2)].push_back("h" + std::to_string(pick(90)) + ".example. 60 TXT \"" +
                                 std::string(pick(60), 't') + "\"");
      ASSERT_TRUE(step(serial, lists[0], lists[1], limits));
    }
    if (pick(10) == 0) store_->choose_victims(90, 1000);
    ASSERT_TRUE(commit([&](Draft& draft) { return compact(draft, cursor, 1 + pick(30)); }));
    ASSERT_TRUE(commit([&](Draft& draft) { return dismantle_discarded(draft, pick(50)); }));
    ASSERT_EQ(snapshots_of(zone()).size(), model.size());
    for (const auto& [label, records] : model) {
      if (!labelled(label).held()) continue;
      ++held;
      ASSERT_EQ(records_of(label), records) << label << " in round " << round;
    }
    if (round % 20 == 0) expect_sound();
  }
  EXPECT_GT(held, 500);
  expect_sound();
  EXPECT_TRUE(store_->check());
}

}  // namespace zone_snapshot_test
}  // namespace pando::zone
