#include "config/includes.h"

#include <sys/stat.h>

#include "load_fixture.h"

namespace pando::config::includes_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Files of one configuration, the first of them `p.yaml`.
class Includes : public ::testing::Test {
 protected:
  std::string write(const std::string& file, std::string_view text) {
    return folder_.write(file, text);
  }
  [[nodiscard]] LoadResult load_main(std::string_view text) {
    return load(folder_.write("p.yaml", text));
  }
  /// Errors and warnings without the folder's name.
  [[nodiscard]] std::vector<std::string> shortened(std::vector<std::string> lines) const {
    for (std::string& line : lines)
      for (auto at = line.find(folder_.path() + "/"); at != std::string::npos;
           at = line.find(folder_.path() + "/"))
        line.erase(at, folder_.path().size() + 1);
    return lines;
  }
  [[nodiscard]] std::vector<std::string> errors_of(std::string_view text) {
    return shortened(load_main(text).errors);
  }
  TemporaryFolder folder_;
};

TEST_F(Includes, ListsOfAllFilesAreJoinedAndSectionsMerged) {
  write("conf.d/2.yaml", "zones: [{name: two.example, file: two.zone, template: t}]\n");
  write("conf.d/1.yaml", "zones:\n- {name: one.example, file: one.zone}\ntemplates: [{name: t}]\n");
  write("log.yaml", "server:\n  log: {format: json}\n  identity: me\n");
  const LoadResult result = load_main(
      "include: [log.yaml, 'conf.d/*.yaml', 'none/*.yaml']\n"
      "server: {listen: [192.0.2.1], log: {level: debug}}\n"
      "zones: [{name: zero.example, file: zero.zone}]\n");
  ASSERT_EQ(result.error_text(), "");
  const Server& server = result.settings.server;
  EXPECT_EQ(server.identity, "me");
  EXPECT_EQ(server.listen.size(), 1U);
  EXPECT_EQ(server.log.level, LogLevel::kDebug);
  EXPECT_EQ(server.log.format, LogFormat::kJson);
  const ZoneTable& zones = result.settings.zones;
  ASSERT_EQ(zones.size(), 3U);
  EXPECT_EQ(zones[0].name, name("zero.example").view());
  EXPECT_EQ(zones[1].name, name("one.example").view()) << "files are sorted";
  EXPECT_EQ(zones.path(2), folder_.path() + "/two.zone") << "relative to the first file";
  EXPECT_THAT(shortened(result.sources.included),
              ElementsAre("log.yaml", "conf.d/1.yaml", "conf.d/2.yaml"));
}

TEST_F(Includes, StartAtTheFolderOfTheFileThatIncludes) {
  write("a/a.yaml", "include: b/b.yaml\n");
  write("a/b/b.yaml", "include: ../../c.yaml\n");
  write("c.yaml", "zones: [{name: c.example, file: c.zone}]\n");
  const LoadResult result = load_main("include: a/a.yaml\n");
  ASSERT_EQ(result.error_text(), "");
  EXPECT_EQ(result.settings.zones.size(), 1U);
}

TEST_F(Includes, AnEmptyFileOrSectionIsNothing) {
  write("empty.yaml", "# nothing yet\n");
  write("zones.yaml", "zones: [{name: a.example, file: a.zone}]\nremotes:\n");
  const LoadResult result = load_main("include: [empty.yaml, zones.yaml]\nzones:\nremotes:\n");
  ASSERT_EQ(result.error_text(), "");
  EXPECT_EQ(result.settings.zones.size(), 1U);
  EXPECT_EQ(load_main("include:\n").error_text(), "");
  EXPECT_EQ(load_main("include: []\n").error_text(), "");
}

TEST_F(Includes, AValueInTwoFilesIsAnErrorThatNamesBoth) {
  write("a.yaml", "# comment\nserver:\n  identity: b\n  log: {level: info}\n");
  write("b.yaml", "limits: []\nserver: {listen: [192.0.2.2]}\n");
  EXPECT_THAT(errors_of("include: [a.yaml, b.yaml]\n"
                        "server:\n"
                        "  listen: [192.0.2.1]\n"
                        "  identity: a\n"
                        "  log: {level: debug}\n"
                        "limits: {tcp-idle: 1s}\n"),
              ElementsAre("a.yaml:3: server.identity: given twice, first in p.yaml:4",
                          "a.yaml:4: server.log.level: given twice, first in p.yaml:5",
                          "b.yaml:1: limits: given twice, first in p.yaml:6",
                          "b.yaml:2: server.listen: given twice, first in p.yaml:3"));
}

TEST_F(Includes, AnErrorNamesTheFileAndLineWhereItIs) {
  write("a.yaml", "\nzones:\n- name: a.example\n  fil: a.zone\n");
  write("b.yaml", "zones:\n- {name: b.example, file: b, template: none}\nmore: 1\n");
  EXPECT_THAT(errors_of("include: ['?.yaml']\n"
                        "zones:\n"
                        "- {name: p.example, file: p}\n"
                        "servre: {}\n"),
              ElementsAre("p.yaml:1: include[0]: p.yaml would include itself"));
  EXPECT_THAT(errors_of("include: ['[ab].yaml']\n"
                        "zones:\n"
                        "- {name: p.example, file: p}\n"
                        "servre: {}\n"),
              ElementsAre("p.yaml:4: servre: unknown key; did you mean 'server'?",
                          "a.yaml:4: zones[1].fil: unknown key; did you mean 'file'?",
                          "b.yaml:2: zones[2].template: no template is named 'none'",
                          "b.yaml:3: more: unknown key; did you mean 'store'?"));
}

TEST_F(Includes, AFileThatCannotBeReadIsTheOnlyErrorReported) {
  write("bad.yaml", "zones:\n- {name: [}\n");
  write("list.yaml", "- a\n");
  EXPECT_THAT(errors_of("include: [none.yaml, bad.yaml, list.yaml, {a: b}, '']\n"
                        "zones: [{name: a.example, file: a, template: there}]\n"),
              ElementsAre("p.yaml:1: include[0]: there is no file none.yaml",
                          "p.yaml:1: include[3]: needs a single value",
                          "p.yaml:1: include[4]: needs the path of a file, or a pattern",
                          HasSubstr("bad.yaml:2: "),
                          "list.yaml:1: needs a mapping of keys to values"));
  EXPECT_THAT(errors_of("include: {a: b}\n"), ElementsAre("p.yaml:1: include: needs a list"));
}

TEST_F(Includes, ACycleAndASecondInclusionAreErrors) {
  write("a.yaml", "include: b.yaml\n");
  write("b.yaml", "zones:\ninclude: ./a.yaml\n");
  EXPECT_THAT(errors_of("include: a.yaml\n"),
              ElementsAre("b.yaml:2: include: a.yaml would include itself"));
  write("c.yaml", "");
  EXPECT_THAT(errors_of("include:\n- c.yaml\n- c.yaml\n"),
              ElementsAre("p.yaml:3: include[1]: c.yaml is included already, by p.yaml:2"));
  write("d.yaml", "include: p.yaml\n");
  EXPECT_THAT(errors_of("include: d.yaml\n"),
              ElementsAre("d.yaml:1: include: p.yaml would include itself"));
  std::filesystem::create_symlink("c.yaml", folder_.path() + "/link.yaml");
  EXPECT_THAT(errors_of("include: [c.yaml, link.yaml]\n"),
              ElementsAre("p.yaml:1: include[1]: link.yaml is included already, by p.yaml:1"));
}

TEST_F(Includes, NestEightDeep) {
  for (int i = 1; i < 9; ++i)
    write(std::to_string(i) + ".yaml", "include: " + std::to_string(i + 1) + ".yaml\n");
  write("9.yaml", "");
  EXPECT_THAT(errors_of("include: 1.yaml\n"),
              ElementsAre("8.yaml:1: include: 9.yaml: more than 8 files include each other"));
  write("8.yaml", "");
  EXPECT_THAT(errors_of("include: 1.yaml\n"), IsEmpty());
}

TEST_F(Includes, TheKeyTwiceIsAnErrorInEachFile) {
  write("a.yaml", "");
  write("b.yaml", "include: []\ninclude: a.yaml\n");
  EXPECT_THAT(errors_of("include: b.yaml\n"), ElementsAre("b.yaml:2: include: given twice"));
  EXPECT_THAT(errors_of("include: a.yaml\ninclude: []\n"),
              ElementsAre("p.yaml:2: include: given twice, first in line 1"));
}

TEST_F(Includes, AreOfTheFingerprint) {
  write("a.yaml", "server: {identity: a}\n");
  const std::string text = "include: '*.yml'\n";
  const std::uint64_t without = load_main(text).fingerprint;
  write("a.yml", "server: {identity: a}\n");
  const std::uint64_t first = load_main(text).fingerprint;
  EXPECT_NE(first, without);
  write("a.yml", "server: {identity: b}\n");
  EXPECT_NE(load_main(text).fingerprint, first);
  write("a.yml", "server: {identity: a}\n");
  EXPECT_EQ(load_main(text).fingerprint, first);
}

TEST_F(Includes, WithSecretsThatOthersCanReadGiveAWarning) {
  const std::string secret = write("k.yaml", "keys: [{name: k, secret: MDEyMzQ1Njc4OWFiY2RlZg==}]\n");
  const std::string main = write("p.yaml", "include: k.yaml\n");
  ASSERT_EQ(::chmod(main.c_str(), 0644), 0);
  ASSERT_EQ(::chmod(secret.c_str(), 0644), 0);
  EXPECT_THAT(shortened(load(main).warnings),
              ElementsAre("k.yaml: other users can read or write this file, which has secrets: "
                          "chmod o= k.yaml"));
  ASSERT_EQ(::chmod(secret.c_str(), 0640), 0);
  EXPECT_THAT(load(main).warnings, IsEmpty());
}

TEST_F(Includes, ListsThatAreReadLaterNameTheFileThatNamesThem) {
  write("lists.yaml", "# lists\nzone-lists: [z.list]\n");
  const std::string list = write("z.list", "a.example  -  none\n");
  LoadResult result = load(write("p.yaml", "include: lists.yaml\n"), {.lists_later = true});
  ASSERT_EQ(result.error_text(), "");
  read_lists(result);
  EXPECT_THAT(result.errors, ElementsAre(list + ":1: no template is named 'none'"));
}

TEST_F(Includes, MayComeFromMemoryAlone) {
  write("a.yaml", "zones: [{name: disk.example, file: a}]\n");
  const FileTexts texts{{"/etc/x/a.yaml", "zones: [{name: a.example, file: a}]\n"},
                        {"/etc/x/.b.yaml", "zones: [{name: b.example, file: b}]\n"},
                        {"/etc/x/d/c.yaml", "zones: [{name: c.example, file: c}]\n"}};
  const auto load_from = [&](std::string_view text) {
    return load_text(text, "/etc/x/p.yaml", {.included = &texts});
  };
  const LoadResult one = load_from("include: '*.yaml'\n");
  ASSERT_EQ(one.error_text(), "");
  EXPECT_EQ(one.settings.zones.size(), 1U) << "as glob(7): no hidden file, no other folder";
  EXPECT_EQ(load_from("include: ['*.yaml', d/c.yaml]\n").settings.zones.size(), 2U);
  EXPECT_THAT(load_from("include: " + folder_.path() + "/a.yaml\n").error_text(),
              HasSubstr("/etc/x/p.yaml:1: include: there is no file"));
}

TEST_F(Includes, AnAliasThatIsInItselfEndsTheMerge) {
  write("a.yaml", "server: &b {log: *b}\n");
  EXPECT_FALSE(errors_of("include: a.yaml\nserver: &a {log: *a}\n").empty());
}

}  // namespace pando::config::includes_test
