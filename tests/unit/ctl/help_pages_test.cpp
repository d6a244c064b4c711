#include <gtest/gtest.h>

#include <sstream>

#include "ctl/misspelt_words.h"
#include "ctl/verbs.h"

namespace pando::ctl {
namespace help_pages_test {

using Words = std::vector<std::string>;

/// Calls `visit` with the words of each verb and of each group.
template <class Visit>
void for_each_command(const CLI::App& parent, const Words& before, const Visit& visit) {
  visit(parent, before);
  for (const CLI::App* command : parent.get_subcommands({})) {
    Words words = before;
    words.push_back(command->get_name());
    for_each_command(*command, words, visit);
  }
}

TEST(HelpPages, HaveLinesOfEightyColumns) {
  CommandLine line;
  add_verbs(line);
  std::size_t pages = 0;
  for_each_command(*line.root(), {}, [&](const CLI::App&, const Words& words) {
    const auto page = help_page(*line.root(), words);
    ASSERT_TRUE(page) << page.error().text;
    std::istringstream text(*page);
    for (std::string each; std::getline(text, each);) EXPECT_LE(each.size(), 80U) << each;
    ++pages;
  });
  EXPECT_GT(pages, 50U);
}

TEST(HelpPages, ShowEachVerbInAGroup) {
  CommandLine line;
  add_verbs(line);
  for_each_command(*line.root(), {}, [](const CLI::App& command, const Words& words) {
    if (words.empty()) return;
    EXPECT_NE(command.get_group(), "Subcommands") << command.get_name();
    const bool is_sorted = words.size() == 1 || words[0] == "zone";
    EXPECT_FALSE(is_sorted && command.get_group() == "Verbs") << command.get_name();
  });
  const auto page = help_page(*line.root(), {"zone"});
  ASSERT_TRUE(page);
  for (const char* part : {"Usage: pandoctl zone", "\nRecords:\n", "\nVersions:\n", "retransfer"})
    EXPECT_NE(page->find(part), std::string::npos) << *page;
}

TEST(HelpPages, OfWordsThatAreNoVerbNameTheOneThatWasMeant) {
  CommandLine line;
  add_verbs(line);
  const auto error = [&line](const Words& words) {
    const auto page = help_page(*line.root(), words);
    return page ? "a page" : page.error().text;
  };
  EXPECT_EQ(error({"zone", "lits"}), "unknown command 'zone lits'; did you mean 'list'?");
  EXPECT_EQ(error({"delzone"}),
            "unknown command 'delzone'; here it is 'pandoctl zone remove NAME...'");
  EXPECT_EQ(error({"zone", "list", "a"}), "no command has the words 'zone list a'");
}

/// The exit code and both outputs of a command line.
struct Ended {
  int code;
  std::string out;
  std::string err;
};

Ended run(Words words) {
  CommandLine line;
  add_verbs(line);
  words.insert(words.begin(), "pandoctl");
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  const int code = line.run(static_cast<int>(arguments.size()), arguments.data());
  return {code, ::testing::internal::GetCapturedStdout(), ::testing::internal::GetCapturedStderr()};
}

TEST(HelpPages, OfAGroupAloneAreAnErrorThatListsItsVerbs) {
  for (const char* group : {"zone", "dnssec", "store", "worker", "journal", "config", "log"}) {
    const Ended alone = run({group});
    EXPECT_EQ(alone.code, kUsage) << group;
    EXPECT_EQ(alone.out, "") << group;
    EXPECT_EQ(alone.err, run({"help", group}).out);
  }
  EXPECT_NE(run({}).err.find("Words that verbs follow:"), std::string::npos);
  EXPECT_EQ(run({"--json", "zone"}).code, kUsage);
  EXPECT_EQ(run({"--json", "zone"}).err.front(), '{');
}

TEST(HelpPages, HelpAndVersionAreVerbs) {
  const Ended zone_list = run({"help", "zone", "list"});
  EXPECT_EQ(zone_list.code, kDone);
  EXPECT_NE(zone_list.out.find("Usage: pandoctl zone list"), std::string::npos) << zone_list.out;
  EXPECT_EQ(run({"help", "zoen"}).code, kUsage);
  EXPECT_EQ(run({"version"}).out, std::string(PANDO_VERSION) + "\n");
  EXPECT_EQ(run({"--json", "version"}).out,
            "{\"version\":\"" + std::string(PANDO_VERSION) + "\"}\n");
}

TEST(HelpPages, OfWordsThatAreTooManyTellAnothersMeaning) {
  const Ended reload = run({"reload", "a.test"});
  EXPECT_EQ(reload.code, kUsage);
  EXPECT_NE(reload.err.find("some zones alone: 'pandoctl zone reload NAME...'"), std::string::npos)
      << reload.err;
}

}  // namespace help_pages_test
}  // namespace pando::ctl
