#include "manager/start/added_zone_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "config/added_list.h"
#include "config/load.h"
#include "dns/folded_key.h"
#include "tests/unit/manager/io/failing_files.h"
#include "tests/unit/shm/support.h"

namespace pando::manager {
namespace added_zone_list_test {

using ::testing::ElementsAre;
using testing::FailingFiles;
using testing::FakeDisk;
using ::testing::HasSubstr;

dns::Name zone_name(std::string_view text) { return dns::Name::from_text(text).value(); }

class AddedZones : public ::testing::Test {
 protected:
  AddedZones() { settings_ = configured(); }

  /// A configuration with the zone own.test and the template t.
  config::Settings configured() const {
    return config::load_text("store: {journal: " + folder_.path() +
                                 "}\ntemplates: [{name: t, serial-policy: date}]\n"
                                 "zones: [{name: own.test, file: own}]\n",
                             "/etc/p.yaml")
        .settings;
  }
  static std::string zone(const std::string& name, const std::string& more = "") {
    return R"({"name":")" + name + R"(","file":"f")" + more + "}";
  }
  Status apply(AddedZoneList& list, const RunTimeChange& change) {
    if (auto loaded = list.load(false); !loaded) return loaded;
    zones_.clear();
    return list.apply(change, settings_, zones_);
  }
  Status add(const std::string& name) { return save(list_, {.add = {zone(name)}}); }
  Status save(AddedZoneList& list, const RunTimeChange& change) {
    if (auto applied = apply(list, change); !applied) return applied;
    return list.save();
  }
  std::string text() const {
    std::ostringstream out;
    out << std::ifstream(path_).rdbuf();
    return out.str();
  }
  /// Zones besides the configuration's own, as the next start finds them.
  std::size_t zones_at_start() const {
    const config::Settings loaded = configured();
    EXPECT_TRUE(loaded.zones.find(zone_name("own.test")).has_value());
    return loaded.zones.size() - 1;
  }

  shm::test::Folder folder_;
  std::string path_ = config::added_list_path(folder_.path());
  FailingFiles files_;
  config::Settings settings_;
  std::vector<dns::Name> zones_;
  AddedZoneList list_{files_, folder_.path()};
};

TEST_F(AddedZones, AreAddedSetAndRemovedAndTheNextStartFindsThem) {
  ASSERT_TRUE(add("a.test"));
  ASSERT_TRUE(add("b.test"));
  EXPECT_EQ(zones_.size(), 1U);
  EXPECT_EQ(list_.rewritten(), 1U) << "later ones are appended";
  EXPECT_EQ(zones_at_start(), 2U);
  ASSERT_TRUE(
      save(list_, {.set = RunTimeChange::Setting{zone_name("A.test"), "template", "\"t\""}}));
  EXPECT_THAT(text(), HasSubstr("a.test. f t\n"));
  EXPECT_EQ(settings_.zones[*settings_.zones.find(zone_name("a.test"))].options->serial_policy,
            config::SerialPolicy::kDate);
  ASSERT_TRUE(save(list_, {.remove = {zone_name("a.test")}}));
  EXPECT_FALSE(settings_.zones.find(zone_name("a.test")).has_value());
  EXPECT_EQ(zones_at_start(), 1U);
  AddedZoneList again(files_, folder_.path());
  ASSERT_TRUE(again.load(false));
  EXPECT_EQ(again.size(), 1U);
}

TEST_F(AddedZones, KeepTheirTemplatesWhenUnusedSettingsAreDropped) {
  ASSERT_TRUE(add("a.test"));
  const auto set = [&](const std::string& key, const std::string& value) {
    return apply(list_, {.set = RunTimeChange::Setting{zone_name("a.test"), key, value}});
  };
  for (int i = 0; i < 1250; ++i) {
    ASSERT_TRUE(set("notify-delay", std::to_string(i + 1)));
    ASSERT_FALSE(set("template", "\"absent\""));
  }
  EXPECT_LT(settings_.zones.options().size(), 1200U) << "unused ones are dropped";
  ASSERT_TRUE(apply(list_, {.add = {zone("b.test", R"(,"template":"t")")}}));
  const auto added = settings_.zones.find(zone_name("b.test"));
  ASSERT_TRUE(added.has_value());
  EXPECT_EQ(settings_.zones[*added].options->serial_policy, config::SerialPolicy::kDate);
}

TEST_F(AddedZones, ThatAreRefusedLeaveNothing) {
  ASSERT_TRUE(add("a.test"));
  const std::string before = text();
  const auto refused = [&](const RunTimeChange& change, const std::string& reason) {
    const Status status = save(list_, change);
    ASSERT_FALSE(status.has_value()) << reason;
    EXPECT_THAT(status.error().text, HasSubstr(reason));
    EXPECT_EQ(settings_.zones.size(), 2U) << reason;
    EXPECT_TRUE(zones_.empty());
  };
  refused({.add = {zone("x.test"), zone("own.test")}}, "the configuration has zone own.test.");
  refused({.add = {zone("x.test"), zone("A.TEST")}}, "was added before");
  refused({.add = {zone("x.test"), zone("x.test")}}, "was added before");
  refused({.add = {zone("x.test"), zone("y.test", R"(,"colour":1)")}}, "colour");
  refused({.add = {zone("x.test", R"(,"template":"none")")}}, "no template is named 'none'");
  refused({.add = {zone("x.test", R"(,"template":"a b")")}}, "blanks");
  refused({.add = {R"({"name":"x.test"})"}}, "neither 'file' nor");
  refused({.add = {R"({"name":"x..test","file":"f"})"}}, "x..test");
  refused({.add = {R"(["x.test"])"}}, "an object with a 'name'");
  refused({.add = {zone("x.test", R"(,"notify":[")" + std::string(40'000, 'x') + R"("])")}},
          "bytes of settings");
  refused({.remove = {zone_name("a.test"), zone_name("own.test")}}, "is the configuration's");
  refused({.remove = {zone_name("none.test")}}, "no zone none.test.");
  refused({.set = RunTimeChange::Setting{zone_name("a.test"), "name", "\"b\""}}, "keeps its name");
  refused({.set = RunTimeChange::Setting{zone_name("a.test"), "colour", "1"}}, "colour");
  refused({.set = RunTimeChange::Setting{zone_name("a.test"), "file", ""}}, "neither 'file' nor");
  refused({.set = RunTimeChange::Setting{zone_name("own.test"), "file", "\"x\""}},
          "is the configuration's");
  EXPECT_EQ(text(), before);
  EXPECT_TRUE(settings_.zones.find(zone_name("a.test")).has_value());
}

TEST_F(AddedZones, OfTheConfigurationStayWhenTheListLosesThem) {
  ASSERT_TRUE(add("a.test"));
  std::ofstream(path_) << "own.test. other -\na.test. f -\ncommit\n";
  settings_ = configured();
  const Status set =
      save(list_, {.set = RunTimeChange::Setting{zone_name("own.test"), "file", "\"x\""}});
  ASSERT_FALSE(set);
  EXPECT_THAT(set.error().text, HasSubstr("the configuration has zone own.test., too"));
  ASSERT_TRUE(save(list_, {.remove = {zone_name("own.test")}}));
  EXPECT_EQ(settings_.zones.size(), 2U);
  EXPECT_EQ(settings_.zones[*settings_.zones.find(zone_name("own.test"))].file, "own");
}

TEST_F(AddedZones, AreOneWriteAndTheFileIsWrittenAnewWhenMostOfItIsOfNoUse) {
  std::vector<std::string> many;
  for (int i = 0; i < 100; ++i) many.push_back(zone("z" + std::to_string(i) + ".test"));
  ASSERT_TRUE(save(list_, {.add = many}));
  for (int i = 0; i < 2000; ++i)
    ASSERT_TRUE(save(list_, {.set = RunTimeChange::Setting{zone_name("z1.test"), "file",
                                                           "\"f" + std::to_string(i) + "\""}}));
  EXPECT_GE(list_.rewritten(), 2U);
  EXPECT_LE(list_.rewritten(), 4U);
  EXPECT_LT(std::filesystem::file_size(path_), 100'000U);
  EXPECT_EQ(zones_at_start(), 100U);
}

TEST_F(AddedZones, AreAsBeforeWhenTheFileCannotBeWritten) {
  ASSERT_TRUE(add("a.test"));
  for (const auto call : {FakeDisk::Call::kWrite, FakeDisk::Call::kSync, FakeDisk::Call::kOpen}) {
    settings_ = configured();
    files_.fail = [&](FakeDisk::Call one, const std::string& path) -> Status {
      if (one != call || !path.starts_with(path_)) return {};
      return fail(Errc::kIo, "broken");
    };
    ASSERT_TRUE(apply(list_, {.add = {zone("b.test")}}));
    EXPECT_FALSE(list_.save().has_value());
    EXPECT_EQ(list_.size(), 1U);
    files_.fail = [](FakeDisk::Call, const std::string&) { return Status(); };
    // A failed sync may have left the zone in the file, which the next change corrects.
    settings_ = configured();
    ASSERT_TRUE(add("c.test"));
    EXPECT_EQ(zones_at_start(), 2U);
    ASSERT_TRUE(save(list_, {.remove = {zone_name("c.test")}}));
    EXPECT_EQ(zones_at_start(), 1U);
  }
}

TEST_F(AddedZones, AreTakenBack) {
  ASSERT_TRUE(add("a.test"));
  ASSERT_TRUE(save(list_, {.add = {zone("b.test"), zone("c.test")}}));
  ASSERT_TRUE(list_.undo());
  EXPECT_EQ(list_.size(), 1U);
  EXPECT_EQ(zones_at_start(), 1U);
  ASSERT_TRUE(save(list_, {.remove = {zone_name("a.test")}}));
  ASSERT_TRUE(list_.undo());
  EXPECT_EQ(zones_at_start(), 1U);
}

TEST_F(AddedZones, AChangeThatIsNotWholeIsCutOff) {
  ASSERT_TRUE(add("a.test"));
  std::ofstream(path_, std::ios::app) << "b.test. f -\ncommit 1 0";
  AddedZoneList again(files_, folder_.path());
  settings_ = configured();
  ASSERT_TRUE(save(again, {.add = {zone("c.test")}}));
  EXPECT_EQ(again.size(), 2U);
  EXPECT_EQ(zones_at_start(), 2U);
  EXPECT_THAT(text(), ::testing::Not(HasSubstr("b.test.")));
}

TEST_F(AddedZones, AListThatIsGoneOrDamagedIsAnErrorAndIsNotReplaced) {
  ASSERT_TRUE(add("a.test"));
  const std::string before = text();
  std::filesystem::remove(path_);
  EXPECT_THAT(add("b.test").error().text, HasSubstr("is missing"));
  AddedZoneList again(files_, folder_.path());
  EXPECT_THAT(again.load(false).error().text, HasSubstr("is missing")) << "the mark tells";
  std::filesystem::remove(config::added_mark_path(folder_.path()));
  EXPECT_TRUE(again.load(false));
  EXPECT_FALSE(again.load(true)) << "the configuration in force tells";
  std::string damaged = before;
  damaged.replace(damaged.find("a.test."), 2, "b.");
  std::ofstream(path_) << damaged;
  EXPECT_THAT(add("b.test").error().text, HasSubstr("checksum"));
  EXPECT_EQ(text(), damaged);
  std::ofstream(path_) << before;
  EXPECT_TRUE(add("b.test"));
}

TEST_F(AddedZones, NamesThatWouldBeCommentsAreWrittenOtherwise) {
  ASSERT_TRUE(add("#a.test"));
  EXPECT_EQ(zones_at_start(), 1U);
  ASSERT_TRUE(save(list_, {.remove = {zone_name("\\035a.test")}}));
  EXPECT_EQ(zones_at_start(), 0U);
}

/// A list that follows the catalogs c.test and d.test.
class Members : public AddedZones {
 protected:
  Members() {
    settings_ = config::load_text("store: {journal: " + folder_.path() +
                                      "}\nremotes: [{name: up, address: [192.0.2.1]}]\n"
                                      "templates: [{name: t, serial-policy: date}]\n"
                                      "zones: [{name: own.test, file: own}]\n"
                                      "catalogs: [{zone: c.test, role: consumer, primaries: [up]}, "
                                      "{zone: d.test, role: consumer, primaries: [up]}]\n",
                                  "/etc/p.yaml")
                    .settings;
  }
  std::shared_ptr<CatalogUpdate> update(const std::string& catalog,
                                        const std::vector<std::string>& members,
                                        const std::string& template_name = "") {
    auto update = std::make_shared<CatalogUpdate>();
    update->catalog = zone_name(catalog);
    update->primaries = {"up"};
    for (const std::string& member : members)
      update->members.push_back({zone_name(member), template_name});
    return update;
  }
  std::shared_ptr<CatalogUpdate> follow(std::shared_ptr<CatalogUpdate> update) {
    const Status saved = save(list_, {.catalog = update});
    EXPECT_TRUE(saved.has_value()) << saved.error().text;
    return update;
  }
  /// "ZONE REASON" of each.
  static std::vector<std::string> reasons(const std::vector<CatalogUpdate::Refused>& members) {
    std::vector<std::string> texts;
    for (const auto& member : members) texts.push_back(to_text(member.zone) + " " + member.reason);
    return texts;
  }
  [[nodiscard]] const config::ZoneOptions* options(std::string_view zone) const {
    const auto found = settings_.zones.find(zone_name(zone));
    return found ? settings_.zones[*found].options : nullptr;
  }
};

TEST_F(Members, AreWhatTheCatalogHas) {
  const auto first = follow(update("c.test", {"a.test", "b.test"}));
  EXPECT_EQ(first->added, 2U);
  EXPECT_EQ(zones_.size(), 2U);
  ASSERT_NE(options("a.test"), nullptr);
  EXPECT_EQ(options("a.test")->primaries, std::vector<std::string>{"up"});
  EXPECT_EQ(options("a.test")->member_of, zone_name("c.test"));
  EXPECT_EQ(options("a.test"), options("b.test")) << "members share their settings";
  const std::string before = text();
  follow(update("c.test", {"b.test", "a.test"}));
  EXPECT_TRUE(zones_.empty());
  EXPECT_EQ(text(), before) << "nothing was written";
  const auto next = follow(update("c.test", {"B.test", "e.test"}, "t"));
  EXPECT_EQ(next->added, 1U);
  EXPECT_EQ(next->changed, 1U);
  EXPECT_EQ(next->removed, 1U);
  EXPECT_EQ(zones_.size(), 3U);
  EXPECT_EQ(options("a.test"), nullptr);
  EXPECT_EQ(options("b.test")->serial_policy, config::SerialPolicy::kDate);
  AddedZoneList again(files_, folder_.path());
  ASSERT_TRUE(again.load(true));
  EXPECT_EQ(again.size(), 2U);
}

TEST_F(Members, ThatAreSomebodyElsesAreRefused) {
  ASSERT_TRUE(add("a.test"));
  follow(update("d.test", {"d1.test"}));
  const auto found = follow(update("c.test", {"a.test", "own.test", "d1.test", "new.test"}));
  EXPECT_EQ(found->added, 1U);
  ASSERT_EQ(found->refused.size(), 3U);
  EXPECT_EQ(found->refused[0].reason, "a command has added it");
  EXPECT_EQ(found->refused[1].reason, "the configuration has it");
  EXPECT_EQ(found->refused[2].reason, "catalog d.test. has it");
  EXPECT_EQ(options("d1.test")->member_of, zone_name("d.test"));
}

TEST_F(Members, InsideZonesOfOthersAreRefused) {
  ASSERT_TRUE(add("added.test"));
  follow(update("d.test", {"d1.example"}));
  const auto found = follow(update("c.test", {"www.own.test", "x.ADDED.test", "a.b.d1.example",
                                              "x.d.test", "x.c.test", "example"}));
  EXPECT_EQ(found->added, 2U) << "below the catalog's own name, and above a member of another";
  EXPECT_THAT(reasons(found->refused),
              ElementsAre("www.own.test. the configuration has own.test. above it",
                          "x.ADDED.test. a command has added ADDED.test. above it",
                          "a.b.d1.example. catalog d.test. has d1.example. above it",
                          "x.d.test. the configuration has d.test. above it"));
  EXPECT_EQ(options("www.own.test"), nullptr);
  EXPECT_NE(options("x.c.test"), nullptr);
  EXPECT_EQ(follow(update("d.test", {"d1.example", "d2.example"}))->refused.size(), 1U)
      << "the names below example. are the other catalog's now";
}

TEST_F(Members, MayLieWhereTheConfigurationSaysSo) {
  const std::vector<std::string> members{"www.own.test", "own.test", "a.test", "b.example"};
  const auto follow_below = [&](const std::vector<std::string>& names) {
    auto found = update("c.test", members);
    found->may_remove_many = true;
    for (const std::string& name : names) found->members_below.push_back(zone_name(name));
    return reasons(follow(found)->refused);
  };
  EXPECT_THAT(follow_below({"OWN.test"}), ElementsAre("a.test. members-below does not have it",
                                                      "b.example. members-below does not have it",
                                                      "own.test. the configuration has it"));
  EXPECT_NE(options("www.own.test"), nullptr);
  EXPECT_THAT(follow_below({"test"}),
              ElementsAre("www.own.test. the configuration has own.test. above it",
                          "b.example. members-below does not have it",
                          "own.test. the configuration has it"))
      << "the closest name decides";
  EXPECT_EQ(options("www.own.test"), nullptr) << "it has left";
  EXPECT_THAT(follow_below({".", "www.own.test"}),
              ElementsAre("own.test. the configuration has it"));
  EXPECT_NE(options("www.own.test"), nullptr);
}

TEST_F(Members, ThatAreServedStayWhenAZoneOfOthersComesAboveThem) {
  follow(update("c.test", {"www.late.test", "other.test"}));
  ASSERT_TRUE(add("late.test"));
  const auto found = follow(update("c.test", {"www.late.test", "other.test"}));
  EXPECT_THAT(reasons(found->retained),
              ElementsAre("www.late.test. a command has added late.test. above it"));
  EXPECT_TRUE(found->refused.empty());
  EXPECT_NE(options("www.late.test"), nullptr);
  auto bounded = update("c.test", {"www.late.test", "other.test"});
  bounded->members_below.push_back(zone_name("."));
  EXPECT_EQ(follow(bounded)->removed, 1U) << "the operator has said what the catalog may have";
  EXPECT_THAT(reasons(bounded->refused),
              ElementsAre("www.late.test. a command has added late.test. above it"));
  EXPECT_EQ(options("www.late.test"), nullptr);
}

TEST_F(Members, MoveIfTheirCatalogYieldsThem) {
  follow(update("d.test", {"a.test"}));
  auto taken = update("c.test", {"a.test"});
  taken->yielded.insert(dns::folded_key(zone_name("a.test")));
  EXPECT_EQ(follow(taken)->taken_over, 1U);
  EXPECT_EQ(options("a.test")->member_of, zone_name("c.test"));
  EXPECT_EQ(follow(update("d.test", {}))->removed, 0U) << "it is not d.test's any more";
  EXPECT_NE(options("a.test"), nullptr);
}

TEST_F(Members, StayIfMostOfThemLeaveAtOnce) {
  const std::vector<std::string> all{"1.test", "2.test", "3.test", "4.test", "5.test", "6.test"};
  follow(update("c.test", all));
  const auto emptied = follow(update("c.test", {"1.test", "7.test"}));
  EXPECT_EQ(emptied->waiting, 5U);
  EXPECT_EQ(emptied->removed, 0U);
  EXPECT_EQ(emptied->added, 1U) << "new ones come all the same";
  EXPECT_NE(options("6.test"), nullptr);
  EXPECT_EQ(follow(update("c.test", {"1.test", "2.test", "3.test", "4.test"}))->removed, 3U)
      << "less than half";
  auto allowed = update("c.test", {});
  allowed->may_remove_many = true;
  EXPECT_EQ(follow(allowed)->removed, 4U);
  EXPECT_EQ(list_.size(), 0U);
}

TEST_F(Members, StayIfTheCatalogIsEmptyHoweverFewTheyAre) {
  follow(update("c.test", {"1.test", "2.test", "3.test"}));
  EXPECT_EQ(follow(update("c.test", {"3.test"}))->removed, 2U);
  const auto emptied = follow(update("c.test", {}));
  EXPECT_EQ(emptied->waiting, 1U);
  EXPECT_EQ(emptied->removed, 0U);
  EXPECT_NE(options("3.test"), nullptr);
  auto allowed = update("c.test", {});
  allowed->may_remove_many = true;
  EXPECT_EQ(follow(allowed)->removed, 1U);
  EXPECT_EQ(follow(update("c.test", {}))->waiting, 0U) << "it never had any";
}

TEST_F(Members, ChangeOnlyWithTheirCatalog) {
  follow(update("c.test", {"a.test"}));
  const auto removed = save(list_, {.remove = {zone_name("a.test")}});
  ASSERT_FALSE(removed);
  EXPECT_EQ(removed.error().text, "zone a.test. is a member of catalog c.test.: change it there");
  settings_.catalogs.clear();  // the catalog leaves the configuration
  EXPECT_TRUE(save(list_, {.remove = {zone_name("a.test")}}));
}

TEST_F(Members, OfACatalogThatHasLeftMeanwhileAreNotAdded) {
  settings_.catalogs.clear();
  EXPECT_EQ(follow(update("c.test", {"a.test"}))->added, 0U);
  EXPECT_EQ(list_.size(), 0U);
}

TEST_F(Members, ThatCannotBeConfiguredChangeNothing) {
  const Status status = save(list_, {.catalog = update("c.test", {"a.test"}, "absent")});
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().text, HasSubstr("no template is named 'absent'"));
  EXPECT_EQ(options("a.test"), nullptr);
  EXPECT_EQ(list_.size(), 0U);
}

}  // namespace added_zone_list_test
}  // namespace pando::manager
