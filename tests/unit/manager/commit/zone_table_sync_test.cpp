#include "manager/commit/zone_table_sync.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "ipc/log.h"
#include "manager/commit/space_search.h"
#include "manager/journal/record/journal_payload.h"
#include "tests/unit/manager/checkpoint/parts_steps.h"
#include "tests/unit/manager/io/fake_disk.h"

namespace pando::manager {
namespace zone_table_sync_test {

using ::testing::AllOf;
using testing::FakeDisk;
using ::testing::HasSubstr;
using testing::name;
using ::testing::Not;
using testing::Parts;

/// A configuration in the making.
class Configuration {
 public:
  Configuration() { add("example.", options({})); }
  /// What zones may share; `rules` make it another one, and as large as there are many.
  std::uint32_t options(std::vector<int> rules) {
    config::ZoneOptions options;
    for (const int rule : rules) {
      options.allow_transfer.emplace_back().address =
          must(IpPrefix::from_text(fmt::format("10.{}.{}.0/24", rule / 256 % 256, rule % 256)));
    }
    return add_options(std::move(options));
  }
  std::uint32_t add_options(config::ZoneOptions options) {
    return settings_.zones.add_options(std::move(options));
  }
  Configuration& add(const std::string& zone, std::uint32_t options) {
    EXPECT_TRUE(settings_.zones.add(name(zone), "", options).has_value());
    return *this;
  }
  /// PREFIX0. and so on.
  Configuration& add(const std::string& prefix, int zones, std::uint32_t options) {
    for (int i = 0; i < zones; ++i) add(fmt::format("{}{}.", prefix, i), options);
    return *this;
  }
  [[nodiscard]] RuntimePtr runtime() const { return must(make_runtime(settings_)); }

 private:
  template <class T>
  static T must(Result<T>&& result) {
    return shm::test::must(std::move(result));
  }
  config::Settings settings_;
};

class TableSync : public ::testing::Test {
 protected:
  explicit TableSync(std::uint64_t size_limit = 8 << 20) : parts_(size_limit, disk_) {}

  Status sync(const Configuration& configuration) {
    std::optional<Status> ended;
    ZoneTableSync::run(parts_.zone.store(), parts_.committer, configuration.runtime(),
                       [&](const Status& status, const ZoneTableSync::Counts& counts) {
                         ended = status;
                         counts_ = counts;
                       });
    EXPECT_TRUE(parts_.run_until([&] { return ended.has_value(); }));
    return std::move(*ended);
  }
  /// The same for some zones alone, behind another sync.
  Status sync_some(const Configuration& configuration, std::vector<dns::Name> zones) {
    std::optional<Status> ended;
    ZoneTableSync::run_for(parts_.zone.store(), parts_.committer, configuration.runtime(),
                           make_zone_names(std::move(zones)), counts_.sides,
                           [&](const Status& status, const ZoneTableSync::Counts& counts) {
                             ended = status;
                             counts_ = counts;
                           });
    EXPECT_TRUE(parts_.run_until([&] { return ended.has_value(); }));
    return std::move(*ended);
  }
  [[nodiscard]] bool has(const std::string& zone) const {
    return bool(parts_.committer.current().zone_at(name(zone)));
  }
  [[nodiscard]] std::uint32_t side_of(const std::string& zone) const {
    return parts_.committer.current().zone_at(name(zone)).side_index();
  }
  /// With what it logs.
  Status sync_and_log(const Configuration& configuration) {
    ::testing::internal::CaptureStderr();
    log::start({});
    Status status = sync(configuration);
    log_ = ::testing::internal::GetCapturedStderr();
    return status;
  }
  /// Until not even one record can be added. Of what is added, `bytes` at once.
  void fill(std::size_t bytes) {
    for (; bytes > 0; bytes /= 4) fill_but_for(bytes);
  }
  /// Until there is no room for so much.
  void fill_but_for(std::size_t bytes) {
    while (add_filler(bytes)) {
    }
  }
  bool add_filler(std::size_t bytes) {
    ++fillers_;
    zone::Changeset changes{name("@"), {}, {}};
    for (std::size_t i = 0; i < (bytes + 199) / 200; ++i)
      changes.added.push_back(testing::record(fmt::format(
          "f{}-{} 60 TXT {}", fillers_, i, std::string(std::min<std::size_t>(bytes, 200), 'x'))));
    auto result = parts_.submit(std::move(changes));
    EXPECT_TRUE(parts_.run_until([&] { return result->has_value(); }));
    return (*result)->has_value();
  }
  /// What deletes may have of the reserve goes, too: to settings of PREFIX1. and so on.
  void use_up_reserve(const std::string& prefix) {
    int next = 1;
    for (const int rules : {1000, 100, 10, 1})
      for (bool taken = true; taken; ++next) {
        zone::ZoneSettings settings;
        for (int i = 0; i < rules; ++i)
          settings.allow_transfer.emplace_back().key = name(fmt::format("key{}-{}", next, i));
        const auto step = [&](zone::Draft& draft) {
          return draft.put_zone_settings(name(fmt::format("{}{}.", prefix, next)), settings,
                                         zone(fmt::format("{}{}.", prefix, next)).side_index());
        };
        std::optional<Status> done;
        parts_.committer.edit(
            step, [&](const Status& status) { done = status; }, shm::Reserve::kHalf);
        ASSERT_TRUE(parts_.run_until([&] { return done.has_value(); }));
        taken = done->has_value();
      }
    ASSERT_LT(next, 500);
  }
  [[nodiscard]] zone::ZoneView zone(const std::string& zone) const {
    return parts_.zone.view().zone_at(name(zone));
  }
  /// How many of PREFIX0. and so on are there.
  int there(const std::string& prefix, int zones) const {
    int found = 0;
    for (int i = 0; i < zones; ++i) found += zone(fmt::format("{}{}.", prefix, i)) ? 1 : 0;
    return found;
  }
  /// Each zone has a place of its own in the side table, and none of these is left empty.
  void expect_dense_places() {
    std::set<std::uint32_t> places;
    const zone::StoreView view = parts_.zone.view();
    zone::ZoneWalk walk(view);
    while (const zone::ZoneView found = walk.next())
      EXPECT_TRUE(places.insert(found.side_index()).second) << to_text(found.apex());
    ASSERT_FALSE(places.empty());
    EXPECT_EQ(*places.rbegin(), places.size() - 1);
  }
  /// What a zone of these settings has as its tag.
  std::uint64_t tag_of(const std::string& zone) const { return this->zone(zone).settings_tag(); }
  std::set<std::string> noted_as_gone() {
    std::set<std::string> gone;
    for (const JournalRecord& record : parts_.journalled())
      if (record.kind == RecordKind::kGone) gone.insert(to_text(record.zone));
    return gone;
  }

  FakeDisk disk_;
  Parts parts_;
  ZoneTableSync::Counts counts_;
  std::string log_;
  int fillers_ = 0;
};

TEST_F(TableSync, BringsZonesInLineInOneGoOfManySlices) {
  Configuration first;
  first.add("a", 700, first.options({}));
  ASSERT_TRUE(sync(first).has_value());
  EXPECT_EQ(counts_.added, 700U);
  Configuration second;
  second.add("b", 600, second.options({})).add("a", 300, second.options({1}));
  ASSERT_TRUE(sync(second).has_value());
  EXPECT_EQ(counts_.removed, 400U);
  EXPECT_EQ(counts_.added, 600U);
  EXPECT_EQ(counts_.changed, 300U);
  EXPECT_EQ(there("a", 700), 300);
  EXPECT_EQ(there("b", 600), 600);
  expect_dense_places();
}

/// Each zone has a rule of its own, as a hosting panel writes them.
void add_with_rules(Configuration& configuration, int zones, int first_rule) {
  for (int i = 0; i < zones; ++i)
    configuration.add(fmt::format("a{}.", i), configuration.options({first_rule + i}));
}

TEST_F(TableSync, NoVersionChangesMoreZonesThanAStepAndUpdatesComeBetween) {
  constexpr int kZones = 1000;
  Configuration first;
  add_with_rules(first, kZones, 0);
  ASSERT_TRUE(sync(first).has_value());
  std::vector<std::uint64_t> tags;
  for (int i = 0; i < kZones; ++i) tags.push_back(tag_of(fmt::format("a{}.", i)));
  std::vector<int> changed;         // zones with other settings, of each version
  std::vector<int> changed_before;  // zones that had them when an update was answered
  int total = 0;
  parts_.committer.on_published([&](const PublishedVersion&) {
    int now = 0;
    for (int i = 0; i < kZones; ++i) {
      const std::uint64_t tag = tag_of(fmt::format("a{}.", i));
      now += std::exchange(tags[static_cast<std::size_t>(i)], tag) == tag ? 0 : 1;
    }
    changed.push_back(now);
    total += now;
    if (now > 0 && total < kZones)
      parts_.submit_computed(
          [number = total](const zone::StoreView&) -> Result<zone::Changeset> {
            return zone::Changeset{
                name("@"), {}, {testing::record(fmt::format("u{} 60 A 192.0.2.1", number))}};
          },
          [&](const Result<zone::Applied>& applied) {
            ASSERT_TRUE(applied.has_value());
            changed_before.push_back(total);
          });
  });
  Configuration second;
  add_with_rules(second, kZones, kZones);
  ASSERT_TRUE(sync(second).has_value());
  EXPECT_EQ(total, kZones);
  EXPECT_EQ(counts_.changed, static_cast<std::uint64_t>(kZones));
  EXPECT_LE(*std::max_element(changed.begin(), changed.end()),
            static_cast<int>(ZoneTableSync::kSlice));
  ASSERT_FALSE(changed_before.empty());
  EXPECT_LT(changed_before.front(), kZones) << "the update has waited for the last step";
}

TEST_F(TableSync, NewZonesWithoutRoomHoldBackNoChangedSettings) {
  Configuration first;
  first.add("a", 600, first.options({}));
  ASSERT_TRUE(sync(first).has_value());
  const std::uint64_t before = tag_of("a0.");
  fill(40'000);
  Configuration second;
  second.add("b", 2000, second.options({})).add("a", 600, second.options({1}));
  const Status status = sync(second);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, Errc::kFull);
  EXPECT_EQ(counts_.changed, 600U);
  EXPECT_NE(tag_of("a0."), before);
  for (int i = 1; i < 600; ++i) EXPECT_EQ(tag_of(fmt::format("a{}.", i)), tag_of("a0."));
  const int added = there("b", 2000);
  EXPECT_EQ(counts_.added, static_cast<std::uint64_t>(added));
  EXPECT_THAT(status.error().text, AllOf(HasSubstr(fmt::format("{} new zones", 2000 - added)),
                                         HasSubstr(fmt::format("b{}.", added)),
                                         HasSubstr("the store has reached its size limit")));
  EXPECT_LT(status.error().text.size(), 200U) << "one line, however many zones";
  expect_dense_places();
}

TEST_F(TableSync, AStoreThatHasRoomForSomeNewZonesTakesThem) {
  fill_but_for(300'000);
  Configuration configuration;
  configuration.add("c", 5000, configuration.options({}));
  ASSERT_FALSE(sync(configuration).has_value());
  const int added = there("c", 5000);
  EXPECT_GT(added, 100);
  EXPECT_EQ(there("c", added), added) << "the first ones, to the last that fits";
  expect_dense_places();
  EXPECT_FALSE(sync(configuration).has_value());
  EXPECT_LE(there("c", 5000), added + 2) << "there was room for no more";
}

TEST_F(TableSync, ANewZoneThatIsTooLargeHoldsBackNoOther) {
  fill_but_for(300'000);
  Configuration configuration;
  const std::uint32_t small = configuration.options({});
  std::vector<int> many(30'000);
  for (int i = 0; i < 30'000; ++i) many[static_cast<std::size_t>(i)] = i;
  configuration.add("b", 40, small).add("large.", configuration.options(many)).add("c", 60, small);
  const Status status = sync(configuration);
  ASSERT_FALSE(status.has_value());
  EXPECT_THAT(status.error().text, HasSubstr("1 new zones not added (large. first)"));
  EXPECT_EQ(there("b", 40) + there("c", 60), 100);
  EXPECT_FALSE(zone("large."));
  expect_dense_places();
}

TEST_F(TableSync, SettingsThatFindNoRoomHoldBackNoOthers) {
  Configuration first;
  first.add("a", 400, first.options({}));
  ASSERT_TRUE(sync(first).has_value());
  const std::uint64_t before = tag_of("a0.");
  fill(40'000);
  Configuration second;
  const std::uint32_t small = second.options({1});
  std::vector<int> many(60'000);
  for (int i = 0; i < 60'000; ++i) many[static_cast<std::size_t>(i)] = i;
  const std::uint32_t large = second.options(many);
  for (int i = 0; i < 400; ++i) second.add(fmt::format("a{}.", i), i == 77 ? large : small);
  const Status status = sync(second);
  ASSERT_FALSE(status.has_value());
  EXPECT_TRUE(counts_.but_for_some);
  EXPECT_THAT(status.error().text, HasSubstr("1 zones not brought in line (a77. first)"));
  EXPECT_EQ(counts_.changed, 399U);
  for (int i = 0; i < 400; ++i) EXPECT_EQ(tag_of(fmt::format("a{}.", i)) == before, i == 77) << i;
}

TEST_F(TableSync, TheServersSettingsFollowWhateverFits) {
  fill(40'000);
  Configuration configuration;
  configuration.add("b", 2000, configuration.options({}));
  ASSERT_FALSE(sync(configuration).has_value());
  EXPECT_FALSE(parts_.zone.view().server_settings_bytes().empty());
}

/// Deletes that find no room are told as that, leave no update behind that the journal does not
/// forget, and hold back neither each other nor what changed.
TEST_F(TableSync, AFullStoreIsNotTakenForAnUnwritableJournal) {
  Configuration first;
  first.add("a", 6000, first.options({}));
  ASSERT_TRUE(sync(first).has_value());
  fill(40'000);
  use_up_reserve("a");
  Configuration second;
  for (int i = 0; i < 6000; i += 500) second.add(fmt::format("a{}.", i), second.options({}));
  const Status status = sync_and_log(second);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, Errc::kFull);
  const int left = there("a", 6000) - 12;
  ASSERT_GT(left, 0);
  EXPECT_THAT(status.error().text, AllOf(HasSubstr(fmt::format("{} zones not removed", left)),
                                         HasSubstr("the store has reached its size limit")));
  EXPECT_THAT(log_, Not(HasSubstr("updates_of_removed_zones_kept")));
  EXPECT_EQ(counts_.removed, static_cast<std::uint64_t>(6000 - 12 - left));
  EXPECT_EQ(noted_as_gone().size(), counts_.removed) << "the journal knows of each";
}

class TightTableSync : public TableSync {
 protected:
  TightTableSync() : TableSync(4 << 20) {}
};

/// What a whole slice of them finds no room for goes in smaller steps.
TEST_F(TightTableSync, DeletesGoInStepsThatFindRoom) {
  Configuration first;
  first.add("a", 3000, first.options({}));
  ASSERT_TRUE(sync(first).has_value());
  fill(40'000);
  Configuration second;
  for (int i = 0; i < 3000; ++i)
    if (i % 2 == 0) second.add(fmt::format("a{}.", i), second.options({}));
  const Status status = sync_and_log(second);
  EXPECT_GT(counts_.removed, 0U);
  EXPECT_EQ(noted_as_gone().size(), counts_.removed);
  EXPECT_THAT(log_, Not(HasSubstr("updates_of_removed_zones_kept")));
  const int left = there("a", 3000) - 1500;
  if (left > 0)
    EXPECT_THAT(status.error().text, HasSubstr(fmt::format("{} zones not removed", left)));
  else
    EXPECT_TRUE(status.has_value());
}

TEST_F(TableSync, TheJournalKeepsTheRecordsOfAPrimaryZoneAlone) {
  config::ZoneOptions secondary;
  secondary.primaries = {"primary"};
  Configuration first;
  first.add("own.", first.options({})).add("sent.", first.add_options(std::move(secondary)));
  ASSERT_TRUE(sync(first).has_value());
  ASSERT_TRUE(sync(Configuration()).has_value());
  std::map<std::string, bool> purged;
  for (const JournalRecord& record : parts_.journalled())
    if (record.kind == RecordKind::kGone) purged[to_text(record.zone)] = is_purge(record);
  EXPECT_EQ(purged, (std::map<std::string, bool>{{"own.", false}, {"sent.", true}}));
}

TEST_F(TableSync, AJournalWithoutRoomKeepsNoZoneServed) {
  Configuration first;
  first.add("a", 300, first.options({}));
  ASSERT_TRUE(sync(first).has_value());
  disk_.fail = [](FakeDisk::Call call, const std::string&) -> Status {
    return call == FakeDisk::Call::kWrite ? fail(Errc::kFull, "pwrite: No space left on device")
                                          : Status();
  };
  ASSERT_TRUE(sync_and_log(Configuration()).has_value());
  EXPECT_EQ(there("a", 300), 0);
  EXPECT_THAT(log_, HasSubstr("updates_of_removed_zones_kept"));
  EXPECT_THAT(log_, HasSubstr("No space left on device"));
}

TEST_F(TableSync, AnUpdateThatCannotBeJournalledTakesNoStepAlong) {
  disk_.fail = [](FakeDisk::Call call, const std::string&) -> Status {
    return call == FakeDisk::Call::kSync ? fail(Errc::kIo, "fdatasync: Input/output error")
                                         : Status();
  };
  Configuration configuration;
  configuration.add("a", 300, configuration.options({}));
  const auto update = parts_.submit(parts_.changes({}, {"www 300 A 192.0.2.99"}));
  const Status status = sync(configuration);
  EXPECT_TRUE(status.has_value()) << status.error().text;
  ASSERT_TRUE(update->has_value());
  EXPECT_FALSE((*update)->has_value());
  EXPECT_EQ(there("a", 300), 300);
}

TEST(SpaceSearch, HalvesUntilTheOneIsFoundThatDoesNotFit) {
  for (std::size_t fits = 0; fits < 300; ++fits) {
    SpaceSearch search;
    std::size_t taken = 0;
    int tries = 0;
    while (search.most() > 0) {
      ASSERT_LT(++tries, 30);
      const std::size_t step = std::min<std::size_t>(search.most(), 300 - taken);
      const bool fit = taken + step <= fits;
      fit ? search.taken(step) : search.refused(step);
      if (fit) taken += step;
    }
    EXPECT_EQ(taken, fits);
    EXPECT_FALSE(search.gives_up());
  }
}

TEST(SpaceSearch, GivesUpWhenNothingFitsForLongUntilSomethingDoes) {
  SpaceSearch search;
  int tries = 0;
  while (!search.gives_up()) {
    ASSERT_LT(++tries, 1000);
    search.next();
    EXPECT_GT(search.most(), 1000U) << "what comes next is tried";
    search.refused(1);
    EXPECT_EQ(search.most(), 0U);
  }
  search.next();
  EXPECT_GT(search.most(), 1000U) << "what comes next is tried, once";
  search.refused(256);
  EXPECT_EQ(search.most(), 0U);
  search.next();
  search.taken(1);
  EXPECT_FALSE(search.gives_up());
}

TEST_F(TableSync, OfSomeZonesDoesNotVisitTheOthers) {
  Configuration before;
  const std::uint32_t options = before.options({});
  before.add("a", 1000, options);
  ASSERT_TRUE(sync(before).has_value());
  const std::uint32_t freed = side_of("a7.");
  Configuration after;
  const std::uint32_t same = after.options({});
  const std::uint32_t other = after.options({1});
  for (int i = 0; i < 900; ++i)
    if (i != 7) after.add(fmt::format("a{}.", i), i == 8 ? other : same);
  after.add("new", 2, same);
  ASSERT_TRUE(sync_some(after, {name("new1."), name("a7."), name("new0."), name("a8."), name("a7."),
                                name("never.")})
                  .has_value());
  EXPECT_EQ(counts_.added, 2U);
  EXPECT_EQ(counts_.removed, 1U);
  EXPECT_EQ(counts_.changed, 1U);
  EXPECT_EQ(counts_.unloaded, 0U);
  EXPECT_FALSE(has("a7."));
  EXPECT_TRUE(has("a950.")) << "was not named";
  std::set<std::uint32_t> sides{side_of("new0."), side_of("new1.")};
  EXPECT_TRUE(sides.contains(freed)) << "entries of removed zones are used again";
  sides.insert(side_of("example."));
  for (int i = 0; i < 1000; ++i)
    if (i != 7) sides.insert(side_of(fmt::format("a{}.", i)));
  EXPECT_EQ(sides.size(), 1002U) << "no two zones share an entry";
}

TEST_F(TableSync, OfSomeZonesCountsTheDataThatGoes) {
  Configuration before;
  ASSERT_TRUE(sync(before).has_value());
  config::Settings none;
  std::optional<Status> ended;
  ZoneTableSync::run_for(parts_.zone.store(), parts_.committer,
                         make_runtime(std::move(none)).value(), make_zone_names({name("example.")}),
                         counts_.sides,
                         [&](const Status& status, const ZoneTableSync::Counts& counts) {
                           ended = status;
                           counts_ = counts;
                         });
  ASSERT_TRUE(parts_.run_until([&] { return ended.has_value(); }));
  EXPECT_TRUE(ended->has_value());
  EXPECT_EQ(counts_.unloaded, 1U);
  EXPECT_FALSE(has("example."));
}

}  // namespace zone_table_sync_test
}  // namespace pando::manager
