#include "manager/change/change_road.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "manager/journal/record/journal_payload.h"
#include "manager/upkeep/store_upkeep.h"
#include "shm/inspect/inspection.h"
#include "tests/unit/manager/commit/parts.h"
#include "tests/unit/manager/io/fake_disk.h"
#include "zone/audit/audit.h"
#include "zone/builder/zone_builder.h"
#include "zone/draft/compaction.h"
#include "zone/draft/discarded_blocks.h"
#include "zone/history/history.h"

namespace pando::manager {
namespace change_road_test {

using ::testing::ElementsAre;
using testing::FakeDisk;
using ::testing::IsEmpty;
using testing::name;
using testing::Parts;
using testing::record;
using ::testing::SizeIs;

constexpr const char* kSoa10 = "@ 3600 SOA ns1 admin 10 3600 600 86400 300";
constexpr const char* kSoa11 = "@ 3600 SOA ns1 admin 11 3600 600 86400 300";
/// A key without a signature, which verification refuses.
constexpr const char* kUnsignedKey =
    "@ 3600 DNSKEY 257 3 13 "
    "mdsswUyr3DPW132mOi8V9xESWE8jTo0dxCjjnopKl+GqJxpVXckHAeF+KkxLbxILfDLUT0rAK9iUzy1L53eKGQ==";
constexpr int kNames = 6000;  // several chunks

/// Half of the names go, another half comes, one name gets a longer set.
zone::Changeset large_difference() {
  zone::Changeset changes{name("@"), {}, {}};
  changes.removed.push_back(record(kSoa10));
  changes.added.push_back(record(kSoa11));
  for (int i = 0; i < kNames; i += 2)
    changes.removed.push_back(record(fmt::format("old{} 300 A 10.0.{}.{}", i, i / 256, i % 256)));
  for (int i = 0; i < kNames; ++i)
    changes.added.push_back(record(fmt::format("new{} 300 A 10.1.{}.{}", i, i / 256, i % 256)));
  changes.added.push_back(record("www 300 A 192.0.2.12"));
  return changes;
}

/// What stands between a test and a step that is being worked out: the pool's thread waits where
/// the test wants to do something else first.
struct Gate {
  std::promise<void> reached, opened;
  void pass() {
    reached.set_value();
    opened.get_future().wait();
  }
};

class LargeChange : public ::testing::Test {
 protected:
  explicit LargeChange(std::uint64_t size_limit = 64 << 20) : parts_(size_limit, disk_) {
    fill(parts_);
  }

  static void fill(Parts& parts) {
    zone::Changeset changes{name("@"), {}, {}};
    for (int i = 0; i < kNames; ++i)
      changes.added.push_back(record(fmt::format("old{} 300 A 10.0.{}.{}", i, i / 256, i % 256)));
    auto result = parts.submit(std::move(changes));
    ASSERT_TRUE(parts.run_until([&] { return result->has_value(); }));
    ASSERT_TRUE((*result)->has_value());
  }

  /// A change as an UPDATE makes it. `before` is called first, with the number of the try.
  ZoneChange step(zone::Changeset changes, std::function<void(int)> before = {}) {
    ZoneChange change;
    change.zone = name("@");
    change.records = changes.removed.size() + changes.added.size();
    change.limits = limits_;
    change.content = [changes = std::move(changes), before = std::move(before),
                      tries = std::make_shared<int>(0)](const zone::StoreView&) {
      if (before) before((*tries)++);
      return ComputedChange::of(changes);
    };
    return change;
  }
  std::shared_ptr<std::optional<Status>> submit(ZoneChange change) {
    auto result = std::make_shared<std::optional<Status>>();
    change.done = [result](const Result<ChangeOutcome>& outcome) { *result = status_of(outcome); };
    changes_.submit(std::move(change));
    return result;
  }
  Status run(ZoneChange change) {
    auto result = submit(std::move(change));
    EXPECT_TRUE(parts_.run_until([&] { return result->has_value(); }));
    return **result;
  }
  /// Runs `meanwhile` while the step is being worked out for the first time.
  Status run_with(const std::function<void()>& meanwhile) {
    Gate gate;
    auto result = submit(step(large_difference(), [&](int tried) {
      if (tried == 0) gate.pass();
    }));
    gate.reached.get_future().wait();
    EXPECT_TRUE(changes_.at_work_on(name("@")));
    const auto under_way = changes_.under_way(name("@"));
    EXPECT_TRUE(under_way && under_way->step == ChangeStep::kComputing &&
                under_way->source == ChangeSource::kUpdate);
    meanwhile();
    gate.opened.set_value();
    EXPECT_TRUE(parts_.run_until([&] { return result->has_value(); }));
    EXPECT_FALSE(changes_.under_way(name("@")));
    return **result;
  }
  void edit(std::function<Status(zone::Draft&)> what) {
    const Status done = parts_.edit(std::move(what));
    ASSERT_TRUE(done.has_value()) << done.error().text;
  }
  /// Changeset every other name, so that chunks are half empty.
  void leave_garbage() {
    zone::Changeset changes{name("@"), {}, {}};
    for (int i = 1; i < kNames; i += 2) {
      changes.removed.push_back(record(fmt::format("old{} 300 A 10.0.{}.{}", i, i / 256, i % 256)));
      changes.added.push_back(record(fmt::format("old{} 300 A 10.2.0.1", i)));
    }
    auto applied = parts_.submit(std::move(changes));
    ASSERT_TRUE(parts_.run_until([&] { return applied->has_value(); }));
  }
  /// Moves blocks of the zone, as upkeep does.
  void compact() {
    ASSERT_GT(parts_.zone.store().choose_victims(101, 1000), 0U);
    edit([](zone::Draft& draft) -> Status {
      zone::CompactCursor cursor;
      for (;;) {
        auto done = zone::compact(draft, cursor, 1000);
        if (!done) return pass(done);
        if (*done) return {};
      }
    });
    parts_.zone.store().forget_victims();
  }

  /// The store's own counts, and those of a walk over all that is in it.
  void expect_sound() {
    while (parts_.committer.busy()) parts_.run_until([&] { return !parts_.committer.busy(); });
    const Status checked = parts_.zone.store().check();
    EXPECT_TRUE(checked.has_value()) << checked.error().text;
    zone::Audit audit =
        zone::audit(parts_.zone.store().window(), parts_.zone.store().current().root);
    zone::compare_chunks(audit, shm::occupancy(parts_.zone.store().window()));
    EXPECT_THAT(audit.faults, IsEmpty());
  }
  FakeDisk disk_;
  Parts parts_;
  zone::DataLimits limits_;
  ChangeRoad changes_{parts_.io,    parts_.pool,      parts_.zone.store(),
                      parts_.slots, parts_.committer, {100, 3}};
};

TEST_F(LargeChange, DoesWhatTheCommitThreadWouldDo) {
  Parts direct;
  fill(direct);
  auto applied = direct.submit(large_difference());
  ASSERT_TRUE(direct.run_until([&] { return applied->has_value(); }));
  ASSERT_TRUE((*applied)->has_value());

  ASSERT_TRUE(run(step(large_difference())).has_value());
  EXPECT_EQ(changes_.counters().beside, 1U);
  EXPECT_FALSE(changes_.at_work_on(name("@")));
  EXPECT_EQ(parts_.zone.lines(), direct.zone.lines());
  const zone::ZoneView here = parts_.zone.zone(), there = direct.zone.zone();
  EXPECT_EQ(here.serial(), dns::Serial{11});
  EXPECT_EQ(here.record_count(), there.record_count());
  EXPECT_EQ(here.name_count(), there.name_count());
  EXPECT_EQ(here.data_version(), parts_.committer.current().version());
  EXPECT_EQ(here.history_bytes(), there.history_bytes());
  EXPECT_EQ(parts_.committer.current().history_bytes(), here.history_bytes());
  auto history = zone::HistoryReader::from(here, {10});
  ASSERT_TRUE(history.has_value());
  EXPECT_EQ(history->records(), 2U + kNames / 2 + kNames + 1U);
  const auto records = parts_.journalled(1);
  ASSERT_THAT(records, SizeIs(1));
  EXPECT_EQ(records[0].kind, RecordKind::kChangeset);
  EXPECT_EQ(zone::decode_changes(records[0].payload).value().added.size(), kNames + 2U);
  expect_sound();
}

TEST_F(LargeChange, AFewRecordsAreChangedOnTheCommitThread) {
  const std::thread::id here = std::this_thread::get_id();
  std::thread::id there;
  ASSERT_TRUE(run(step(parts_.changes({}, {"a 60 A 192.0.2.9"}), [&](int) {
                there = std::this_thread::get_id();
              })).has_value());
  EXPECT_EQ(here, there);
  EXPECT_EQ(changes_.counters().beside, 0U);
}

TEST_F(LargeChange, DoesNotHoldUpOtherZones) {
  edit([](zone::Draft& draft) { return draft.put_zone_settings(name("other.test."), {}, 1); });
  shm::Transaction built_in = parts_.zone.store().begin_private();
  zone::ZoneBuilder builder(name("other.test."), built_in);
  for (const char* line :
       {"other.test. 60 SOA ns1 admin 1 3600 600 86400 300", "other.test. 60 NS ns1"}) {
    const zone::Record one = record(line);
    ASSERT_TRUE(builder.add(one.owner, one.type, one.ttl, one.rdata).has_value());
  }
  auto built = builder.finish();
  ASSERT_TRUE(built.has_value());
  const auto other = [&] { return parts_.committer.current().zone_at(name("other.test.")); };
  ASSERT_TRUE(run_with([&] {
                std::optional<Status> put;
                parts_.put_whole(name("other.test."), *built, std::move(built_in),
                                 [&](const Status& status) { put = status; });
                ASSERT_TRUE(parts_.run_until([&] { return put.has_value(); }));
                zone::Changeset changes{
                    name("other.test."), {}, {record("a.other.test. 60 A 192.0.2.9")}};
                auto applied = parts_.submit(std::move(changes));
                ASSERT_TRUE(parts_.run_until([&] { return applied->has_value(); }));
                ASSERT_TRUE((*applied)->has_value());
              }).has_value());
  EXPECT_EQ(changes_.counters().again, 0U);
  EXPECT_EQ(other().record_count(), 3U);
  EXPECT_THAT(parts_.zone.at("new1"), SizeIs(1));
  expect_sound();
}

TEST_F(LargeChange, OfAZoneThatIsUpdatedMeanwhileIsWorkedOutAnew) {
  ASSERT_TRUE(run_with([&] {
                ASSERT_TRUE(
                    parts_.apply({"old1 0 A 10.0.0.1"}, {"between 60 A 192.0.2.9"}).has_value());
              }).has_value());
  EXPECT_EQ(changes_.counters().again, 1U);
  EXPECT_THAT(parts_.zone.at("between"), SizeIs(1));
  EXPECT_THAT(parts_.zone.at("old1"), IsEmpty());
  EXPECT_THAT(parts_.zone.at("old2"), IsEmpty());
  EXPECT_THAT(parts_.zone.at("new1"), SizeIs(1));
  EXPECT_THAT(parts_.journalled(1), SizeIs(2));
  expect_sound();
}

TEST_F(LargeChange, OfAZoneThatKeepsChangingEndsOnTheCommitThread) {
  const std::thread::id here = std::this_thread::get_id();
  std::vector<std::thread::id> threads;
  std::vector<std::uint64_t> in_use;
  std::vector<Gate> gates(3);
  auto result = submit(step(large_difference(), [&](int tried) {
    threads.push_back(std::this_thread::get_id());
    in_use.push_back(parts_.zone.store().stats().chunks_in_use);
    if (tried < 3) gates[static_cast<std::size_t>(tried)].pass();
  }));
  for (std::size_t i = 0; i < gates.size(); ++i) {
    auto reached = gates[i].reached.get_future();
    ASSERT_TRUE(parts_.run_until(
        [&] { return reached.wait_for(std::chrono::seconds(0)) == std::future_status::ready; }));
    ASSERT_TRUE(parts_.apply({}, {fmt::format("between{} 60 A 192.0.2.9", i)}).has_value());
    gates[i].opened.set_value();
  }
  ASSERT_TRUE(parts_.run_until([&] { return result->has_value(); }));
  ASSERT_TRUE((*result)->has_value());
  ASSERT_THAT(threads, SizeIs(4));
  // A draft has two chunks before it has anything; what the last one had is free again.
  EXPECT_LE(in_use[3], in_use[0] + 2);
  EXPECT_NE(threads[2], here);
  EXPECT_EQ(threads[3], here);
  EXPECT_THAT(parts_.zone.at("between2"), SizeIs(1));
  EXPECT_THAT(parts_.zone.at("new1"), SizeIs(1));
  expect_sound();
}

TEST_F(LargeChange, OfAZoneWhoseBlocksWereMovedIsWorkedOutAnew) {
  ASSERT_TRUE(run_with([&] { compact(); }).has_value());
  EXPECT_EQ(changes_.counters().again, 1U);
  EXPECT_THAT(parts_.zone.at("new1"), SizeIs(1));
  expect_sound();
}

TEST_F(LargeChange, IsLeftAloneByUpkeep) {
  StoreUpkeep upkeep(parts_.io, parts_.zone.store(), parts_.committer, {.least_chunks = 0});
  upkeep.leave_alone([&](dns::NameView apex) { return changes_.at_work_on(apex); });
  leave_garbage();
  ASSERT_TRUE(run_with([&] {
                upkeep.start();
                ASSERT_TRUE(parts_.run_until([&] { return upkeep.counters().walks > 0; }));
                ASSERT_TRUE(parts_.run_until([&] { return !parts_.committer.busy(); }));
              }).has_value());
  upkeep.stop();
  EXPECT_EQ(changes_.counters().again, 0U);
  expect_sound();
}

TEST_F(LargeChange, IsNotLeftAloneForEver) {
  StoreUpkeep upkeep(parts_.io, parts_.zone.store(), parts_.committer,
                     {.least_chunks = 0, .sparing_walks = 0});
  upkeep.leave_alone([&](dns::NameView apex) { return changes_.at_work_on(apex); });
  leave_garbage();
  ASSERT_TRUE(run_with([&] {
                upkeep.start();
                ASSERT_TRUE(parts_.run_until([&] { return upkeep.counters().steps > 3; }));
                upkeep.stop();
                ASSERT_TRUE(parts_.run_until([&] { return !parts_.committer.busy(); }));
              }).has_value());
  EXPECT_GT(changes_.counters().again, 0U);
  EXPECT_THAT(parts_.zone.at("new1"), SizeIs(1));
  expect_sound();
}

/// Two at once of one zone would be worked out in vain; here one is at work at a time.
TEST_F(LargeChange, HoldsNothingWhileItWaits) {
  ChangeRoad one(parts_.io, parts_.pool, parts_.zone.store(), parts_.slots, parts_.committer,
                 {100, 3, 1});
  EXPECT_THAT(parts_.slots.own_epochs(), IsEmpty());
  Gate gate;
  std::vector<std::optional<Status>> results(2);
  const auto submit_to_one = [&](std::size_t which, zone::Changeset changes, bool wait) {
    ZoneChange change = step(std::move(changes), [&gate, wait](int) {
      if (wait) gate.pass();
    });
    change.done = [&results, which](const Result<ChangeOutcome>& outcome) {
      results[which] = status_of(outcome);
    };
    one.submit(std::move(change));
  };
  submit_to_one(0, large_difference(), true);
  zone::Changeset second{name("@"), {record(kSoa11)}, {}};
  second.added.push_back(record("@ 3600 SOA ns1 admin 12 3600 600 86400 300"));
  for (int i = 0; i < 200; ++i)
    second.removed.push_back(record(fmt::format("new{} 300 A 10.1.{}.{}", i, i / 256, i % 256)));
  submit_to_one(1, std::move(second), false);
  gate.reached.get_future().wait();
  EXPECT_THAT(parts_.slots.own_epochs(), ElementsAre(parts_.committer.current().version()));
  gate.opened.set_value();
  ASSERT_TRUE(parts_.run_until([&] { return results[0] && results[1]; }));
  EXPECT_TRUE(results[0]->has_value() && results[1]->has_value());
  EXPECT_EQ(one.counters().again, 0U) << "the second one began with what the first one left";
  EXPECT_THAT(parts_.zone.at("new1"), IsEmpty());
  EXPECT_THAT(parts_.zone.at("new201"), SizeIs(1));
  parts_.pool.join();
  expect_sound();
}

TEST_F(LargeChange, IsGivenUpWhenTheManagerStops) {
  Gate gate;
  const auto before = parts_.zone.lines();
  auto result = submit(step(large_difference(), [&](int) { gate.pass(); }));
  gate.reached.get_future().wait();
  changes_.stop();
  EXPECT_FALSE(changes_.under_way(name("@"))) << "given-up changes may be freed already";
  gate.opened.set_value();
  parts_.pool.join();
  parts_.io.poll();
  EXPECT_EQ(parts_.zone.lines(), before);
  EXPECT_FALSE(result->has_value()) << "nobody is told of it";
}

TEST_F(LargeChange, KeepsSettingsThatCameMeanwhile) {
  zone::ZoneSettings settings;
  settings.is_secondary = true;
  ASSERT_TRUE(
      run_with([&] {
        edit([&](zone::Draft& draft) { return draft.put_zone_settings(name("@"), settings, 7); });
      }).has_value());
  EXPECT_EQ(changes_.counters().again, 0U);
  EXPECT_EQ(parts_.zone.zone().side_index(), 7U);
  EXPECT_TRUE(is_secondary(parts_.zone.zone()));
  EXPECT_THAT(parts_.zone.at("new1"), SizeIs(1));
  expect_sound();
}

TEST_F(LargeChange, OfAZoneThatWentMeanwhileFails) {
  const Status status =
      run_with([&] { edit([](zone::Draft& draft) { return draft.remove_zone(name("@")); }); });
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, Errc::kNotFound);
}

TEST_F(LargeChange, ThatBreaksARuleLeavesNoTrace) {
  const auto before = parts_.zone.lines();
  const auto root = parts_.zone.store().current().root;
  zone::Changeset changes = large_difference();
  changes.added.push_back(record("new5 300 CNAME www"));
  const Status status = run(step(std::move(changes)));
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, Errc::kInvalid);
  EXPECT_EQ(parts_.zone.store().current().root, root);
  EXPECT_EQ(parts_.zone.lines(), before);
  EXPECT_THAT(parts_.journalled(1), IsEmpty());
}

TEST_F(LargeChange, ThatIsNotWantedAnyMoreLeavesNoTrace) {
  const auto before = parts_.zone.lines();
  ZoneChange change = step(large_difference());
  change.check = [](const zone::StoreView&) { return Status(fail(Errc::kNotFound, "not wanted")); };
  EXPECT_FALSE(run(std::move(change)).has_value());
  EXPECT_EQ(parts_.zone.lines(), before);
  expect_sound();
}

TEST_F(LargeChange, WithoutAJournalIsRefusedAndTheNextOneWorks) {
  disk_.fail = [](FakeDisk::Call call, const std::string&) -> Status {
    return call == FakeDisk::Call::kSync ? Status(fail(Errc::kIo, "EIO")) : Status();
  };
  const auto before = parts_.zone.lines();
  EXPECT_FALSE(run(step(large_difference())).has_value());
  EXPECT_EQ(parts_.zone.lines(), before);
  disk_.fail = [](FakeDisk::Call, const std::string&) { return Status(); };
  EXPECT_TRUE(run(step(large_difference())).has_value());
  EXPECT_THAT(parts_.zone.at("new1"), SizeIs(1));
  expect_sound();
}

TEST_F(LargeChange, ThatEndsTheHistoryDiscardsItsBlocks) {
  ASSERT_TRUE(
      parts_.apply({kSoa10, "old1 0 A 10.0.0.1"}, {"@ 3600 SOA ns1 admin 11 3600 600 86400 300"})
          .has_value());
  ASSERT_GT(parts_.zone.zone().history_bytes(), 0U);
  limits_.history = 1;
  zone::Changeset changes = large_difference();
  changes.removed[0] = record(kSoa11);
  changes.added[0] = record("@ 3600 SOA ns1 admin 12 3600 600 86400 300");
  ASSERT_TRUE(run(step(std::move(changes))).has_value());
  EXPECT_EQ(parts_.zone.zone().history_bytes(), 0U);
  EXPECT_EQ(parts_.committer.current().history_bytes(), 0U);
  EXPECT_TRUE(parts_.committer.current().has_discarded());
  expect_sound();
  edit([](zone::Draft& draft) -> Status {
    auto done = zone::dismantle_discarded(draft, 1000);
    return done ? Status() : pass(done);
  });
  EXPECT_FALSE(parts_.committer.current().has_discarded());
  expect_sound();
}

/// What the judges see is what is served: computed beside the commit thread, however small.
TEST_F(LargeChange, WithJudgesIsServedWithTheirVerdict) {
  std::vector<PublishedZone> published;
  parts_.committer.on_published([&](const PublishedVersion& version) {
    published.insert(published.end(), version.changed.begin(), version.changed.end());
  });
  ZoneChange change = step(parts_.changes({kSoa10}, {kSoa11, "a 60 A 192.0.2.9"}));
  change.source = ChangeSource::kTransfer;
  change.judges.signatures = true;
  ASSERT_TRUE(run(std::move(change)).has_value());
  EXPECT_EQ(changes_.counters().beside, 1U);
  EXPECT_THAT(parts_.zone.at("a"), SizeIs(1));
  ASSERT_THAT(published, SizeIs(1));
  ASSERT_TRUE(published.front().verdict);
  EXPECT_TRUE(published.front().verdict->found.ok());
}

TEST_F(LargeChange, ThatAJudgeRefusesLeavesNoTrace) {
  const auto before = parts_.zone.lines();
  ZoneChange change = step(parts_.changes({kSoa10}, {kSoa11, kUnsignedKey}));
  change.judges.signatures = true;
  const Status status = run(std::move(change));
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, Errc::kInvalid);
  EXPECT_THAT(status.error().text, ::testing::StartsWith("refused, as it is not valid"));
  EXPECT_EQ(parts_.zone.lines(), before);
  expect_sound();
}

/// A zone as its file has it, built in a transaction.
std::shared_ptr<zone::BuiltZone> build(const dns::Name& apex, shm::Transaction& transaction,
                                       const std::vector<std::string>& lines) {
  zone::ZoneBuilder builder(apex, transaction);
  for (const std::string& line : lines) {
    const zone::Record one = record(line);
    EXPECT_TRUE(builder.add(apex, one.type, one.ttl, one.rdata).has_value());
  }
  auto built = builder.finish();
  EXPECT_TRUE(built.has_value());
  return built ? *built : nullptr;
}

/// An edited file's change: its data are judged, and its edit is merged with the zone.
class FileChange : public LargeChange {
 protected:
  ZoneChange file_change(const std::vector<std::string>& lines) {
    ZoneChange change = step(parts_.changes({kSoa10}, {kSoa11, "a 60 A 192.0.2.9"}));
    change.source = ChangeSource::kFile;
    change.judges.signatures = true;
    change.judged_data = build(name("@"), built_in_, lines);
    change.content = [this](const zone::StoreView&) {
      ++computed_;
      return ComputedChange::of(parts_.changes({kSoa10}, {kSoa11, "a 60 A 192.0.2.9"}));
    };
    change.judged = [this](const Judgement& judgement) {
      judgements_.push_back(judgement);
      return heard_;
    };
    return change;
  }

  shm::Transaction built_in_ = parts_.zone.store().begin_private();
  std::vector<Judgement> judgements_;
  Status heard_;
  int computed_ = 0;
};

TEST_F(FileChange, IsRefusedForTheFilesDataBeforeItIsComputed) {
  const Status status = run(file_change({kSoa11, "@ 3600 NS ns1", kUnsignedKey}));
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, Errc::kInvalid);
  ASSERT_THAT(judgements_, SizeIs(1));
  EXPECT_FALSE(judgements_.front().signatures->found.ok());
  EXPECT_EQ(computed_, 0);
  EXPECT_THAT(parts_.zone.at("a"), IsEmpty());
}

/// The verdict is about the file, so it is none about the zone that is served.
TEST_F(FileChange, IsMergedAfterItsVerdictOnTheCommitThread) {
  std::vector<PublishedZone> published;
  parts_.committer.on_published([&](const PublishedVersion& version) {
    published.insert(published.end(), version.changed.begin(), version.changed.end());
  });
  ASSERT_TRUE(run(file_change({kSoa11, "@ 3600 NS ns1"})).has_value());
  EXPECT_EQ(changes_.counters().beside, 0U);
  EXPECT_THAT(parts_.zone.at("a"), SizeIs(1));
  ASSERT_THAT(published, SizeIs(1));
  EXPECT_FALSE(published.front().verdict);
}

TEST_F(FileChange, ThatItsSourceWantsNoMoreEndsWithTheVerdict) {
  heard_ = fail(Errc::kExists, "another file");
  const Status status = run(file_change({kSoa11, "@ 3600 NS ns1"}));
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().text, "another file");
  EXPECT_EQ(computed_, 0);
}

TEST_F(FileChange, OfManyRecordsIsComputedAgainWithoutASecondVerdict) {
  ZoneChange change = file_change({kSoa11, "@ 3600 NS ns1"});
  Gate gate;
  ZoneChange large = step(large_difference(), [&](int tried) {
    if (tried == 0) gate.pass();
  });
  change.records = large.records;
  change.content = std::move(large.content);
  auto result = submit(std::move(change));
  auto reached = gate.reached.get_future();
  ASSERT_TRUE(parts_.run_until(
      [&] { return reached.wait_for(std::chrono::seconds(0)) == std::future_status::ready; }));
  ASSERT_TRUE(parts_.apply({}, {"between 60 A 192.0.2.9"}).has_value());
  gate.opened.set_value();
  ASSERT_TRUE(parts_.run_until([&] { return result->has_value(); }));
  EXPECT_TRUE((*result)->has_value());
  EXPECT_THAT(judgements_, SizeIs(1));
  EXPECT_EQ(changes_.counters().again, 1U);
  EXPECT_FALSE(changes_.at_work_on(name("@")));
  expect_sound();
}

TEST_F(LargeChange, OfSeveralZonesIsUnderWayAtEach) {
  edit([](zone::Draft& draft) { return draft.put_zone_settings(name("other.test."), {}, 1); });
  std::vector<ZoneChange> changes;
  changes.push_back(step(parts_.changes({kSoa10}, {kSoa11})));
  changes.push_back(step({name("other.test."), {}, {}}));
  changes.back().zone = name("other.test.");
  for (ZoneChange& change : changes) change.source = ChangeSource::kEdit;
  std::optional<Errc> error;
  changes_.submit_together(std::move(changes),
                           [&](const auto& outcomes) { error = outcomes.error().code; });
  for (const char* zone : {"@", "other.test."}) {
    const auto under_way = changes_.under_way(name(zone));
    ASSERT_TRUE(under_way) << zone;
    EXPECT_EQ(under_way->source, ChangeSource::kEdit);
    EXPECT_EQ(under_way->step, ChangeStep::kStaging);
  }
  ASSERT_TRUE(parts_.run_until([&] { return error.has_value(); }));
  EXPECT_EQ(error, Errc::kNotFound) << "the other zone has no data";
  for (const char* zone : {"@", "other.test."}) EXPECT_FALSE(changes_.under_way(name(zone)));
}

/// New zones from files, all in one transaction.
class NewZonesOfFiles : public LargeChange {
 protected:
  NewZonesOfFiles() {
    edit([](zone::Draft& draft) -> Status {
      for (const char* zone : {"good", "bad"})
        if (auto made = draft.put_zone_settings(name(zone), {}, 0); !made) return made;
      return {};
    });
  }
  Status put(const std::vector<std::string>& zones) {
    FileBatch batch{{}, parts_.zone.store().begin_private()};
    for (const std::string& zone : zones) {
      std::vector<std::string> lines = {kSoa10, "@ 3600 NS ns1"};
      if (zone == "bad") lines.emplace_back(kUnsignedKey);
      batch.zones.push_back({name(zone), build(name(zone), batch.built_in, lines), {}, true});
    }
    std::optional<Status> result;
    refused_.clear();
    changes_.submit_file_batch(std::move(batch),
                               [&](const Status& status, const std::vector<dns::Name>& refused) {
                                 result = status;
                                 refused_ = refused;
                               });
    EXPECT_TRUE(parts_.run_until([&] { return result.has_value(); }));
    return *result;
  }
  bool is_loaded(const char* zone) {
    return parts_.committer.current().zone_at(name(zone)).loaded();
  }

  std::vector<dns::Name> refused_;
};

TEST_F(NewZonesOfFiles, AreUnderWayTogether) {
  FileBatch batch{{}, parts_.zone.store().begin_private()};
  batch.zones.push_back(
      {name("good"), build(name("good"), batch.built_in, {kSoa10, "@ 3600 NS ns1"}), {}, true});
  std::function<void()> judge;
  std::function<void()> judged;
  batch.run = [&](auto work, auto then) {
    judge = std::move(work);
    judged = std::move(then);
  };
  bool is_done = false;
  changes_.submit_file_batch(std::move(batch), [&](const auto&, const auto&) { is_done = true; });
  const auto at = [&] { return changes_.under_way(name("good")); };
  ASSERT_TRUE(at());
  EXPECT_EQ(at()->source, ChangeSource::kFile);
  EXPECT_EQ(at()->step, ChangeStep::kJudging);
  judge();
  judged();
  ASSERT_TRUE(at());
  EXPECT_EQ(at()->step, ChangeStep::kStaging);
  ASSERT_TRUE(parts_.run_until([&] { return is_done; }));
  EXPECT_FALSE(at());
  EXPECT_TRUE(is_loaded("good"));
}

TEST_F(NewZonesOfFiles, ArePutWithTheirVerdicts) {
  std::vector<PublishedZone> published;
  parts_.committer.on_published([&](const PublishedVersion& version) {
    published.insert(published.end(), version.changed.begin(), version.changed.end());
  });
  ASSERT_TRUE(put({"good"}).has_value());
  EXPECT_TRUE(is_loaded("good"));
  ASSERT_THAT(published, SizeIs(1));
  ASSERT_TRUE(published.front().verdict);
  EXPECT_TRUE(published.front().verdict->found.ok());
}

TEST_F(NewZonesOfFiles, AreNotPutIfAnyIsRefusedWhichIsNamed) {
  const Status status = put({"good", "bad"});
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, Errc::kInvalid);
  EXPECT_THAT(refused_, ElementsAre(name("bad")));
  EXPECT_FALSE(is_loaded("good") || is_loaded("bad"));
  expect_sound();
}

/// The zone moves under each try, and the store has no room for them: as in low space.
TEST_F(LargeChange, ThatNoJudgeCouldSeeIsNotServed) {
  std::vector<Gate> gates(3);
  int tries = 0;
  ZoneChange change = step(large_difference());
  change.judges.signatures = true;
  change.content = [&](const zone::StoreView&) -> Result<ComputedChange> {
    if (tries == 3) return ComputedChange::of(large_difference());
    gates[static_cast<std::size_t>(tries++)].pass();
    return fail(Errc::kFull, "no room");
  };
  auto result = submit(std::move(change));
  for (std::size_t i = 0; i < gates.size(); ++i) {
    auto reached = gates[i].reached.get_future();
    ASSERT_TRUE(parts_.run_until(
        [&] { return reached.wait_for(std::chrono::seconds(0)) == std::future_status::ready; }));
    ASSERT_TRUE(parts_.apply({}, {fmt::format("between{} 60 A 192.0.2.9", i)}).has_value());
    gates[i].opened.set_value();
  }
  ASSERT_TRUE(parts_.run_until([&] { return result->has_value(); }));
  ASSERT_FALSE((*result)->has_value());
  EXPECT_EQ((*result)->error().code, Errc::kFull);
  EXPECT_THAT(parts_.zone.at("new1"), IsEmpty());
  EXPECT_FALSE(changes_.under_way(name("@")));
  expect_sound();
}

class LargeChangeInASmallStore : public LargeChange {
 protected:
  LargeChangeInASmallStore() : LargeChange(8 << 20) {}
};

TEST_F(LargeChangeInASmallStore, IsRefusedAndGivesEverythingBack) {
  const auto before = parts_.zone.lines();
  const std::uint64_t in_use = parts_.zone.store().stats().chunks_in_use;
  zone::Changeset changes = large_difference();
  for (int i = 0; i < 60'000; ++i)
    changes.added.push_back(record(fmt::format("h{} 60 TXT {}", i, std::string(200, 'y'))));
  bool others = false;
  Gate gate;
  auto result = submit(step(std::move(changes), [&](int) { gate.pass(); }));
  gate.reached.get_future().wait();
  edit([&](zone::Draft& draft) -> Status {
    others = true;
    return draft.put_zone_settings(name("other.test."), {}, 1);
  });
  gate.opened.set_value();
  ASSERT_TRUE(parts_.run_until([&] { return result->has_value(); }));
  ASSERT_FALSE((*result)->has_value());
  EXPECT_EQ((*result)->error().code, Errc::kFull);
  EXPECT_TRUE(others);
  parts_.pool.join();  // what was worked out is let go there
  EXPECT_EQ(parts_.zone.lines(), before);
  EXPECT_LE(parts_.zone.store().stats().chunks_in_use, in_use + 1);
  ASSERT_TRUE(parts_.apply({}, {"small 60 A 192.0.2.9"}).has_value());
  expect_sound();
}

TEST_F(LargeChangeInASmallStore, IsDoneAgainWhenRoomIsShort) {
  StoreUpkeep upkeep(parts_.io, parts_.zone.store(), parts_.committer, {.least_chunks = 0});
  upkeep.leave_alone([&](dns::NameView apex) { return changes_.at_work_on(apex); });
  leave_garbage();
  Gate gate;
  auto result = submit(step(large_difference(), [&](int tried) {
    if (tried == 0) gate.pass();
  }));
  gate.reached.get_future().wait();
  std::optional<shm::Transaction> others(parts_.zone.store().begin_private());
  while (!parts_.zone.store().low_space())
    ASSERT_TRUE(others->allocate(shm::kChunkBytes / 2).has_value());
  const auto began = parts_.zone.zone().data_version();
  upkeep.start();
  EXPECT_TRUE(parts_.run_until([&] { return upkeep.counters().steps > 3; }));
  upkeep.stop();
  EXPECT_TRUE(parts_.run_until([&] { return !parts_.committer.busy(); }));
  EXPECT_EQ(parts_.zone.zone().data_version(), began) << "moved, not changed";
  others.reset();
  gate.opened.set_value();
  ASSERT_TRUE(parts_.run_until([&] { return result->has_value(); }));
  EXPECT_TRUE((*result)->has_value());
  EXPECT_GT(changes_.counters().again, 0U);
  expect_sound();
}

}  // namespace change_road_test
}  // namespace pando::manager
