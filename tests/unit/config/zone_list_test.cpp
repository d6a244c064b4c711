#include <sys/stat.h>

#include "config/files.h"
#include "load_fixture.h"

namespace pando::config {
namespace zone_list_test {

using ::testing::HasSubstr;

TEST(ZoneLists, AddZonesWithTheirTemplates) {
  const TemporaryFolder folder;
  folder.write("lists/a.list",
               "# comment\n"
               "\n"
               "one.example  zones/one.zone\n"
               "\ttwo.example\t/abs/two.zone hidden\r\n"
               "three.example - secondary");
  folder.write("lists/b.list", "four.example zones/four.zone\n");
  folder.write("lists/b.other", "not a list\n");
  const auto path = folder.write("p.yaml",
                                 "remotes: [{name: up, address: [192.0.2.1]}]\n"
                                 "templates:\n"
                                 "- {name: default, serial-policy: date}\n"
                                 "- {name: hidden, allow-query: []}\n"
                                 "- {name: secondary, primaries: [up]}\n"
                                 "zone-lists: ['lists/*.list']\n");
  const LoadResult result = load(path);
  ASSERT_EQ(result.error_text(), "");
  const ZoneTable& zones = result.settings.zones;
  ASSERT_EQ(zones.size(), 4U);
  EXPECT_EQ(zones.path(0), folder.path() + "/zones/one.zone") << "relative to the YAML file";
  EXPECT_EQ(zones[0].options->serial_policy, SerialPolicy::kDate);
  EXPECT_EQ(zones.path(1), "/abs/two.zone");
  EXPECT_TRUE(zones[1].options->allow_query.empty());
  EXPECT_EQ(zones.path(2), "");
  EXPECT_TRUE(zones[2].options->is_secondary());
  EXPECT_EQ(zones[3].name, name("four.example").view());
}

TEST(ZoneLists, AByteOrderMarkIsSkippedInEachFileOfAConfiguration) {
  const TemporaryFolder folder;
  const std::string mark = "\xEF\xBB\xBF";
  const auto secret = folder.write("key", mark + "MDEyMzQ1Njc4OWFiY2RlZg==\n");
  ASSERT_EQ(::chmod(secret.c_str(), 0600), 0);
  folder.write("z.list", mark + "one.example f\n");
  const auto path = folder.write("p.yaml", mark +
                                               "keys: [{name: k, secret-file: key}]\n"
                                               "zones: [{name: two.example, file: f}]\n"
                                               "zone-lists: [z.list]\n");
  const LoadResult result = load(path);
  ASSERT_EQ(result.error_text(), "");
  ASSERT_EQ(result.settings.zones.size(), 2U);
  EXPECT_EQ(result.settings.keys.at(0).secret.size(), 16U);
}

TEST(ZoneLists, ErrorsNameTheListAndItsLine) {
  const TemporaryFolder folder;
  const auto list = folder.write("z.list",
                                 "one.example f\n"
                                 "two.example\n"
                                 "a..b f\n"
                                 "three.example f nothing\n"
                                 "four.example f default more\n"
                                 "five.example -\n"
                                 "ONE.example f\n");
  const auto path = folder.write("p.yaml", "zone-lists: [z.list]\n");
  EXPECT_EQ(load(path).errors,
            (std::vector<std::string>{
                list + ":2: a line is NAME FILE [TEMPLATE]",
                list + ":3: empty label in name 'a..b'",
                list + ":4: no template is named 'nothing'",
                list + ":5: a line is NAME FILE [TEMPLATE]",
                list + ":6: zone five.example. has neither 'file' nor 'primaries'",
                list + ":7: zone ONE.example. is configured twice",
            }));
}

TEST(ZoneLists, APatternMayMatchNothingButANameMayNot) {
  const TemporaryFolder folder;
  EXPECT_TRUE(load(folder.write("p.yaml", "zone-lists: ['none/*.list']\n")).ok());
  EXPECT_THAT(load(folder.write("q.yaml", "zone-lists: [none.list]\n")).error_text(),
              HasSubstr("q.yaml:1: zone-lists[0]: there is no file " + folder.path()));
}

TEST(ZoneLists, ThatAreFoldersOrFifosAreErrors) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder.path() + "/d.list");
  EXPECT_THAT(load(folder.write("p.yaml", "zone-lists: [d.list]\n")).error_text(),
              HasSubstr("is not a regular file"));
}

TEST(ZoneLists, AreNotReadWhenTheCallerDoesNotWantThem) {
  EXPECT_TRUE(load_text("zone-lists: [none.list]", "/p.yaml", {.read_zone_lists = false}).ok());
}

TEST(ZoneLists, ThatAreReadLaterGiveTheSame) {
  const TemporaryFolder folder;
  const auto one = folder.write("lists/a.list", "one.example  zones/one.zone\n");
  folder.write("lists/b.list", "two.example - secondary\n");
  const auto path = folder.write("p.yaml",
                                 "remotes: [{name: up, address: [192.0.2.1]}]\n"
                                 "templates:\n"
                                 "- {name: default, serial-policy: date}\n"
                                 "- {name: secondary, primaries: [up]}\n"
                                 "zones: [{name: zero.example, file: zero.zone}]\n"
                                 "zone-lists: ['lists/*.list']\n");
  LoadResult result = load(path, {.lists_later = true});
  ASSERT_EQ(result.error_text(), "");
  EXPECT_EQ(result.settings.zones.size(), 1U) << "those of the file itself";
  ASSERT_NE(result.lists, nullptr);
  std::filesystem::remove(one);  // it is open
  read_lists(result);
  ASSERT_EQ(result.error_text(), "");
  EXPECT_EQ(result.lists, nullptr);
  const ZoneTable& zones = result.settings.zones;
  ASSERT_EQ(zones.size(), 3U);
  EXPECT_EQ(zones.path(1), folder.path() + "/zones/one.zone");
  EXPECT_EQ(zones[1].options->serial_policy, SerialPolicy::kDate);
  EXPECT_TRUE(zones[2].options->is_secondary());
  read_lists(result);
  EXPECT_EQ(result.settings.zones.size(), 3U) << "once";
}

TEST(ZoneLists, ThatAreReadLaterHaveTheSameErrors) {
  const TemporaryFolder folder;
  EXPECT_THAT(
      load(folder.write("q.yaml", "zone-lists: [none.list]\n"), {.lists_later = true}).error_text(),
      HasSubstr("q.yaml:1: zone-lists[0]: there is no file " + folder.path()));
  const auto list = folder.write("z.list", "zero.example f\none.example f\none.example f\n");
  LoadResult result = load(folder.write("p.yaml",
                                        "zones: [{name: zero.example, file: f}]\n"
                                        "zone-lists: [z.list]\n"),
                           {.lists_later = true});
  ASSERT_TRUE(result.ok());
  read_lists(result);
  EXPECT_EQ(result.errors, (std::vector<std::string>{
                               list + ":1: zone zero.example. is configured twice",
                               list + ":3: zone one.example. is configured twice",
                           }));
}

TEST(ZoneLists, ThatAreManyNeedFewDescriptors) {
  const TemporaryFolder folder;
  for (int i = 0; i < 300; ++i)
    folder.write(fmt::format("lists/{}.list", i), fmt::format("z{}.example f\n", i));
  const auto open_files = [] {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return std::distance(begin(all), end(all));
  };
  const auto before = open_files();
  LoadResult result =
      load(folder.write("p.yaml", "zone-lists: ['lists/*.list']\n"), {.lists_later = true});
  EXPECT_EQ(open_files(), before + 256);
  read_lists(result);
  EXPECT_EQ(open_files(), before);
  EXPECT_EQ(result.error_text(), "");
  EXPECT_EQ(result.settings.zones.size(), 300U);
}

TEST(ZoneLists, AreToldFromOthersWithoutBeingRead) {
  const TemporaryFolder folder;
  const std::string list = folder.write("lists/one.list", "one.example f\n");
  const std::string text = "zone-lists: ['lists/*.list']\n";
  const std::string path = folder.write("p.yaml", text);
  const auto fingerprint = [&](bool later) {
    LoadResult result = load(path, {.lists_later = later});
    EXPECT_TRUE(result.ok());
    return result.fingerprint;
  };
  const std::uint64_t first = fingerprint(false);
  EXPECT_NE(first, 0U);
  EXPECT_EQ(fingerprint(true), first);
  LoadResult read = load(path, {.lists_later = true});
  read_lists(read);
  EXPECT_EQ(read.fingerprint, first);

  folder.write("p.yaml", text + "# more\n");
  EXPECT_NE(fingerprint(true), first);
  folder.write("p.yaml", text);
  EXPECT_EQ(fingerprint(true), first) << "the file itself goes by its text";
  const std::string another = folder.write("lists/two.list", "");
  EXPECT_NE(fingerprint(true), first);
  std::filesystem::remove(another);
  EXPECT_EQ(fingerprint(true), first);
  const auto time = std::filesystem::last_write_time(list);
  folder.write("lists/one.list", "two.example f\n");  // as long as before
  std::filesystem::last_write_time(list, time + std::chrono::seconds(1));
  EXPECT_NE(fingerprint(true), first);
}

/// As `cp -p` and rsync --times leave them.
TEST(ZoneLists, AreToldFromOthersOfTheSameSizeAndTime) {
  const TemporaryFolder folder;
  const std::string list = folder.write("lists/one.list", "one.example f\n");
  const std::string path = folder.write("p.yaml", "zone-lists: ['lists/*.list']\n");
  const auto time = std::filesystem::last_write_time(list);
  const std::uint64_t first = load(path).fingerprint;
  const auto changed = [&] {
    struct stat status{};
    EXPECT_EQ(::stat(list.c_str(), &status), 0);
    return std::pair(status.st_ctim.tv_sec, status.st_ctim.tv_nsec);
  };
  // The clock that change times are taken from has ticks.
  for (const auto before = changed(); changed() == before;) {
    folder.write("lists/one.list", "two.example f\n");
    std::filesystem::last_write_time(list, time);
  }
  EXPECT_NE(load(path).fingerprint, first);
}

TEST(ZoneLists, ThatCannotBeLookedAtAreAnError) {
  const auto folded = fold_file(7, Fd(), "one.list");
  ASSERT_FALSE(folded);
  EXPECT_THAT(folded.error().text, HasSubstr("cannot stat one.list"));
}

TEST(ZoneLists, HoldManyZones) {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 50000; ++i) text += fmt::format("zone-{}.example zones/{}.zone\n", i, i);
  folder.write("many.list", text);
  const LoadResult result = load(folder.write("p.yaml", "zone-lists: [many.list]\n"));
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result.settings.zones.size(), 50000U);
  EXPECT_EQ(result.settings.zones.find(name("zone-49999.example")), 49999U);
  EXPECT_EQ(result.settings.zones.options().size(), 1U);
}

}  // namespace zone_list_test
}  // namespace pando::config
