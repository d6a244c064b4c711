#include "ctl/command_line.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace pando::ctl {
namespace command_line_test {

/// A command line with one verb, which takes a name.
class Line : public ::testing::Test {
 protected:
  Line() {
    CLI::App* zone = line_.group("zone", "");
    line_
        .add(zone, "look", "",
             [this] {
               ++runs_;
               return 7;
             })
        ->add_option("name", line_.arguments().zone)
        ->required();
  }
  int run(std::vector<std::string> words) {
    words.insert(words.begin(), "pandoctl");
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    return line_.run(static_cast<int>(arguments.size()), arguments.data());
  }

  CommandLine line_;
  int runs_ = 0;
};

TEST_F(Line, RunsTheVerbWithItsWordsAndEndsWithItsExitCode) {
  EXPECT_EQ(run({"zone", "look", "example.com", "--json", "--timeout", "5"}), 7);
  EXPECT_EQ(runs_, 1);
  EXPECT_EQ(line_.arguments().zone, "example.com");
  EXPECT_TRUE(line_.arguments().json) << "options may come behind the verb";
  EXPECT_EQ(line_.arguments().timeout_seconds, 5U);
}

TEST_F(Line, RunsNothingWhenAWordIsWrong) {
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {}, {"zone"}, {"zone", "look"}, {"zone", "look", "a", "--no-such"}, {"zoen", "look"}}) {
    EXPECT_EQ(run(words), kUsage);
    EXPECT_EQ(runs_, 0);
  }
}

TEST_F(Line, AVerbThatNeedsAManagerSaysThatThereIsNone) {
  line_.add_session(line_.root(), "ask", "", [](Session&) { return kDone; });
  EXPECT_EQ(run({"--run-directory", "/nonexistent", "ask"}), kUnreachable);
}

}  // namespace command_line_test
}  // namespace pando::ctl
