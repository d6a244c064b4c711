#include "ctl/foreign_verbs.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "ctl/misspelt_words.h"
#include "ctl/verbs.h"
#include "tests/support/trees.h"

namespace pando::ctl {
namespace foreign_verbs_test {

std::vector<std::string> words_in(std::string_view text) {
  std::istringstream stream{std::string(text)};
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

std::vector<std::string> verbs_of(const ForeignVerb& row) {
  std::istringstream stream{std::string(row.verbs)};
  std::vector<std::string> verbs;
  for (std::string verb; std::getline(stream, verb, '|');) verbs.push_back(verb);
  return verbs;
}

const CLI::App* command_of(const CLI::App& parent, std::string_view name) {
  for (const CLI::App* command : parent.get_subcommands({}))
    if (command->get_name() == name) return command;
  return nullptr;
}

/// The command of ours that a command line names with its first words; null: there is none.
const CLI::App* named_by(const CLI::App& root, const std::vector<std::string>& words) {
  const CLI::App* command = &root;
  for (const std::string& word : words) {
    if (command->get_subcommands({}).empty()) break;
    command = command_of(*command, word);
    if (command == nullptr) return nullptr;
  }
  return command->get_subcommands({}).empty() ? command : nullptr;
}

TEST(ForeignVerbs, EachHintNamesAVerbAndOptionsThatExist) {
  CommandLine line;
  add_verbs(line);
  for (const ForeignVerb& row : foreign_verbs()) {
    EXPECT_FALSE(row.ours.empty() && row.note.empty()) << row.verbs;
    if (row.ours.empty()) continue;
    const CLI::App* command = named_by(*line.root(), words_in(row.ours));
    ASSERT_NE(command, nullptr) << row.ours;
    for (const std::string& word : words_in(row.ours)) {
      const bool is_option = word.starts_with("--");
      EXPECT_TRUE(!is_option || command->get_option_no_throw(word) != nullptr) << row.ours;
    }
  }
}

TEST(ForeignVerbs, NotesNameVerbsThatExist) {
  CommandLine line;
  add_verbs(line);
  for (const ForeignVerb& row : foreign_verbs())
    for (std::string_view rest = row.note; !rest.empty();) {
      const auto begin = rest.find('\'');
      if (begin == std::string_view::npos) break;
      const auto end = rest.find('\'', begin + 1);
      ASSERT_NE(end, std::string_view::npos) << row.note;
      std::vector<std::string> words = words_in(rest.substr(begin + 1, end - begin - 1));
      rest.remove_prefix(end + 1);
      if (words.front() == "pandoctl") words.erase(words.begin());
      const bool is_verb = command_of(*line.root(), words.front()) != nullptr && words.size() > 1;
      EXPECT_TRUE(!is_verb || named_by(*line.root(), words) != nullptr) << row.note;
    }
}

TEST(ForeignVerbs, NoVerbStandsTwice) {
  std::set<std::string> seen;
  for (const ForeignVerb& row : foreign_verbs())
    for (const std::string& verb : verbs_of(row)) EXPECT_TRUE(seen.insert(verb).second) << verb;
}

TEST(ForeignVerbs, EachVerbOfThePeersToolsHasARow) {
  std::ifstream file(pando::tests::source_path("/tests/data/peer_verbs.txt"));
  std::size_t verbs = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line.starts_with('#')) continue;
    const std::vector<std::string> words = words_in(line.substr(line.find(' ')));
    EXPECT_NE(find_foreign_verb(words), nullptr) << line;
    ++verbs;
  }
  EXPECT_GT(verbs, 250U);
}

TEST(ForeignVerbs, KindsOfPdnsutilHaveSeveralNames) {
  EXPECT_EQ(find_foreign_verb({"record", "add"}), find_foreign_verb({"rrset", "add"}));
  EXPECT_EQ(find_foreign_verb({"tsig-key", "list"}), find_foreign_verb({"tsigkey", "list"}));
  EXPECT_EQ(find_foreign_verb({"zoen"}), nullptr);
  EXPECT_EQ(find_foreign_verb({}), nullptr);
}

/// Of one command line with all verbs.
std::string misspelt(std::vector<std::string> words) {
  CommandLine line;
  add_verbs(line);
  words.insert(words.begin(), "pandoctl");
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  const auto count = static_cast<int>(arguments.size());
  const std::string unknown = misspelt_word(*line.root(), count, arguments.data());
  return unknown.empty() ? other_meaning(*line.root(), count, arguments.data()) : unknown;
}

TEST(ForeignVerbs, AHintComesBeforeAVerbThatLooksAlike) {
  EXPECT_EQ(misspelt({"zonestatus", "a.test"}),
            "unknown command 'zonestatus'; here it is 'pandoctl zone status NAME'");
  EXPECT_EQ(misspelt({"zone", "list-all"}),
            "unknown command 'zone list-all'; here it is 'pandoctl zone list'");
  EXPECT_EQ(misspelt({"sign", "a.test"}),
            "unknown command 'sign': the server signs nothing: 'zone sign' signs a file, or another "
            "server signs, as hidden primary");
  EXPECT_EQ(misspelt({"zone", "lits"}), "unknown command 'zone lits'; did you mean 'list'?");
}

TEST(ForeignVerbs, WordsOfAnothersVerbHaveAHintToo) {
  EXPECT_EQ(misspelt({"reload", "a.test"}), "some zones alone: 'pandoctl zone reload NAME...'");
  EXPECT_EQ(misspelt({"zone", "list", "a.test"}), "here it is 'pandoctl zone read NAME'");
  EXPECT_EQ(misspelt({"ready", "a.test"}), "");
}

}  // namespace foreign_verbs_test
}  // namespace pando::ctl
