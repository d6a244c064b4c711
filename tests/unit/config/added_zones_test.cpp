#include "config/added_zones.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "config/load.h"

namespace pando::config {
namespace added_zones_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class AddedList : public ::testing::Test {
 protected:
  AddedList() {
    std::string folder = ::testing::TempDir() + "pando-added-XXXXXX";
    if (::mkdtemp(folder.data()) == nullptr) std::abort();
    folder_ = folder;
  }
  ~AddedList() override { std::filesystem::remove_all(folder_); }

  LoadResult load(const std::string& list, const LoadOptions& options = {}) {
    std::ofstream(added_list_path(folder_)) << list << "commit\n";
    return load_config(options);
  }
  LoadResult load_config(const LoadOptions& options = {}) {
    return load_text(fmt::format("store: {{journal: {}}}\n"
                                 "remotes: [{{name: up, address: [192.0.2.1]}}]\n"
                                 "templates: [{{name: t, notify: [up]}}]\n"
                                 "zones: [{{name: own.test, file: own}}]\n",
                                 folder_),
                     "/etc/p.yaml", options);
  }
  static dns::Name name(std::string_view text) { return dns::Name::from_text(text).value(); }

  std::string folder_;
};

TEST_F(AddedList, ZonesHaveFileTemplateAndSettingsOfTheirOwn) {
  const LoadResult loaded =
      load("# comment\na.test. a.zone t \nb.test. - - {\"primaries\":[\"up\"]}\n");
  ASSERT_THAT(loaded.errors, IsEmpty());
  const ZoneTable& zones = loaded.settings.zones;
  ASSERT_EQ(zones.size(), 3U);
  EXPECT_THAT(zones[*zones.find(name("a.test"))].options->notify, ElementsAre("up"));
  EXPECT_EQ(zones.path(*zones.find(name("a.test"))), "/etc/a.zone");
  EXPECT_TRUE(zones[*zones.find(name("b.test"))].options->is_secondary());
}

TEST_F(AddedList, IsReadLaterLikeOtherLists) {
  LoadResult loaded = load("a.test. a.zone t \n", {.lists_later = true});
  EXPECT_EQ(loaded.settings.zones.size(), 1U);
  read_lists(loaded);
  EXPECT_THAT(loaded.errors, IsEmpty());
  EXPECT_EQ(loaded.settings.zones.size(), 2U);
}

TEST_F(AddedList, MistakesNameFileLineAndCause) {
  const std::string path = added_list_path(folder_);
  EXPECT_THAT(load("a.test. a.zone t \nb.test. b absent \n").errors,
              ElementsAre(path + ":2: zone b.test.: no template is named 'absent'; put back what it "
                                 "names, or take it from the zone before that: "
                                 "pandoctl zone configure b.test. template"));
  EXPECT_THAT(load("\n\na.test. a - {\"colour\":1}\n").errors,
              ElementsAre(AllOf(HasSubstr(path + ":3: "), HasSubstr("colour"))));
  EXPECT_THAT(load("a.test. a - {\"primaries\":[\"absent\"]}\n").errors,
              ElementsAre(AllOf(HasSubstr(path + ":1: zone a.test.: "), HasSubstr("absent"),
                                HasSubstr("pandoctl zone configure a.test. primaries"))));
  EXPECT_THAT(load("a.test. a - {\"catalog\":\"gone.test\"}\n").errors,
              ElementsAre(AllOf(HasSubstr("zone a.test.: catalog: no catalog 'gone.test.'"),
                                HasSubstr("pandoctl zone configure a.test. catalog"))));
  EXPECT_THAT(load("a.test. a - [\n").errors, ElementsAre(HasSubstr(path + ":1: ")));
  EXPECT_THAT(load("a.test.\n").errors, ElementsAre(HasSubstr("NAME FILE TEMPLATE SETTINGS")));
  EXPECT_THAT(load("a.test. - - \n").errors, ElementsAre(HasSubstr("neither 'file' nor")));
}

TEST_F(AddedList, NamesNoProgramsAndTakesNoneAway) {
  for (const char* command : {"[\"/bin/sh\"]", "[\"/bin/true\",\"-x\"]", "[]"})
    EXPECT_THAT(load(fmt::format("a.test. a t {{\"verify-command\":{}}}\n", command)).errors,
                ElementsAre(HasSubstr("verify-command: only the configuration names programs")))
        << command;
  EXPECT_THAT(load("a.test. a t {\"verify-time\":\"5s\"}\n").errors, IsEmpty());
}

TEST_F(AddedList, TheConfigurationsZoneCounts) {
  const LoadResult loaded = load("own.test. other t \n");
  EXPECT_THAT(loaded.errors, IsEmpty());
  EXPECT_THAT(loaded.warnings, ElementsAre(HasSubstr("the configuration's zone is served")));
  EXPECT_EQ(loaded.settings.zones[0].file, "own");
}

TEST_F(AddedList, ZonesJoinSettingsInForceAndEqualSettingsAreShared) {
  Settings settings = load("").settings;
  const std::size_t options = settings.zones.options().size();
  ASSERT_TRUE(add_zones(settings, {"a.test. a t {\"serial-policy\":\"date\"}",
                                   "b.test. b t {\"serial-policy\":\"date\"}", "c.test. c t "}));
  EXPECT_EQ(settings.zones.size(), 4U);
  EXPECT_EQ(settings.zones.options().size(), options + 1);
  const auto again = add_zones(settings, {"d.test. d - ", "A.test. a - "});
  ASSERT_FALSE(again.has_value());
  EXPECT_EQ(again.error().code, Errc::kExists);
  const auto wrong = add_zones(settings, {"e.test. e - ", "f.test. f - {\"colour\":1}"});
  EXPECT_THAT(wrong.error().text, AllOf(HasSubstr("zone f.test.: "), HasSubstr("colour")));
  EXPECT_EQ(settings.zones.size(), 4U) << "nothing of a refused change stays";
  // Zones that come one by one share equal settings, too.
  ASSERT_TRUE(add_zones(settings, {"g.test. g t {\"serial-policy\":\"date\"}"}));
  EXPECT_EQ(settings.zones.options().size(), options + 1);
}

TEST_F(AddedList, SettingsThatNoZoneHasAnyMoreAreDropped) {
  Settings settings = load("").settings;
  for (int i = 0; i < 1150; ++i) {
    ASSERT_TRUE(add_zones(settings, {fmt::format("a.test. a t {{\"notify-delay\":{}}}", i)}));
    settings.zones = settings.zones.filtered(
        [](const ZoneRef& zone) { return !zone.added || !(zone.name == name("a.test").view()); });
    drop_unused_options(settings);
  }
  EXPECT_LT(settings.zones.options().size(), 1100U);
  ASSERT_TRUE(add_zones(settings, {"b.test. b t "}));
  const ZoneRef added = settings.zones[*settings.zones.find(name("b.test"))];
  EXPECT_THAT(added.options->notify, ElementsAre("up")) << "still the template's";
  EXPECT_TRUE(added.added);
  EXPECT_FALSE(settings.zones[*settings.zones.find(name("own.test"))].added);
}

TEST_F(AddedList, ThatIsMissingIsAnErrorWhereThereWasOne) {
  EXPECT_TRUE(load_config().ok()) << "there never was one";
  std::ofstream(added_mark_path(folder_)) << "";
  for (const bool later : {false, true}) {
    LoadResult missing = load_config({.lists_later = later});
    read_lists(missing);
    EXPECT_TRUE(missing.added_list_failed);
    EXPECT_THAT(missing.errors, ElementsAre(HasSubstr("added-zones.list is missing")));
  }
  const LoadResult loaded = load("a.test. a t \n");
  EXPECT_TRUE(loaded.ok());
  EXPECT_TRUE(loaded.settings.has_added_list);
}

TEST_F(AddedList, ThatCannotBeReadIsAnErrorOfTheLists) {
  std::filesystem::create_directory(added_list_path(folder_));
  for (const bool later : {false, true}) {
    LoadResult unreadable = load_config({.lists_later = later});
    EXPECT_EQ(unreadable.ok(), later) << "a start goes on with the zones of the store";
    read_lists(unreadable);
    EXPECT_TRUE(unreadable.added_list_failed);
    EXPECT_THAT(unreadable.errors, ElementsAre(HasSubstr("is not a regular file")));
  }
}

TEST_F(AddedList, WithAnUnfinishedChangeIsUsedWithoutIt) {
  std::ofstream(added_list_path(folder_)) << "a.test. a t\ncommit\nb.test. b t\n";
  const LoadResult loaded = load_config();
  EXPECT_TRUE(loaded.ok());
  EXPECT_EQ(loaded.settings.zones.size(), 2U);
  EXPECT_THAT(loaded.warnings, ElementsAre(HasSubstr(":3: added zones: this last change")));
}

TEST_F(AddedList, ATableKeepsWhatIsNotFilteredOut) {
  const Settings settings = load("a.test. a t \nb.test. b - \n").settings;
  const ZoneTable rest = settings.zones.filtered(
      [](const ZoneRef& zone) { return !(zone.name == name("a.test").view()); });
  EXPECT_EQ(rest.size(), 2U);
  EXPECT_FALSE(rest.find(name("a.test")).has_value());
  EXPECT_EQ(rest.path(*rest.find(name("b.test"))), "/etc/b");
}

}  // namespace added_zones_test
}  // namespace pando::config
