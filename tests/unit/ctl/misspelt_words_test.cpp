#include "ctl/misspelt_words.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace pando::ctl {
namespace misspelt_words_test {

/// A program with two commands, one of them of a group.
class Misspelt : public ::testing::Test {
 protected:
  Misspelt() {
    app_.add_option("--config,-c", text_);
    app_.add_subcommand("status", "")->add_flag("--all", flag_);
    CLI::App* zone = app_.add_subcommand("zone", "");
    zone->add_subcommand("export", "")->add_option("--to", text_);
    zone->add_subcommand("list", "");
  }
  std::string of(std::vector<std::string> words) {
    words.insert(words.begin(), "pandoctl");
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    return misspelt_word(app_, static_cast<int>(arguments.size()), arguments.data());
  }

  CLI::App app_;
  std::string text_;
  bool flag_ = false;
};

TEST_F(Misspelt, ACommandIsToldWithTheOneThatWasMeant) {
  EXPECT_EQ(of({"statsu"}), "unknown command 'statsu'; did you mean 'status'?");
  EXPECT_EQ(of({"zone", "exprot"}), "unknown command 'zone exprot'; did you mean 'export'?");
  EXPECT_EQ(of({"something-else"}), "unknown command 'something-else'");
}

TEST_F(Misspelt, AnOptionIsToldWithTheOneThatWasMeant) {
  EXPECT_EQ(of({"status", "--al"}), "unknown option '--al'; did you mean '--all'?");
  EXPECT_EQ(of({"zone", "export", "--too=x"}), "unknown option '--too'; did you mean '--to'?");
  EXPECT_EQ(of({"zone", "list", "--all"}), "unknown option '--all'") << "that of another command";
}

TEST_F(Misspelt, WordsBehindACommandAreItsOwn) {
  EXPECT_EQ(of({"zone", "export", "statsu"}), "");
  EXPECT_EQ(of({"status", "--", "--al"}), "");
}

TEST_F(Misspelt, ValuesOfOptionsAreNoCommands) {
  EXPECT_EQ(of({"-c", "zoen", "status"}), "");
  EXPECT_EQ(of({"--config", "zoen", "status", "--config", "x"}), "");
}

}  // namespace misspelt_words_test
}  // namespace pando::ctl
