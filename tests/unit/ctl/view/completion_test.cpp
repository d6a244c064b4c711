#include "ctl/view/completion.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <memory>

namespace pando::ctl {
namespace completion_test {

class Completion : public ::testing::Test {
 protected:
  Completion() {
    app_.add_option("--config,-c", text_);
    app_.add_flag("--json", flag_);
    CLI::App* zone = app_.add_subcommand("zone");
    zone->add_subcommand("status")->add_option("name", text_);
    zone->add_subcommand("begin")->add_option("names", text_);
    app_.add_option("--run-directory", text_);
    zone->add_subcommand("export")->add_option("--to", text_);
    app_.add_subcommand("reload");
  }

  /// What a shell offers for the last of the words, sorted as the script gives it.
  std::string complete(const std::string& words, int last) {
    ::setenv("SCRIPT", completion_script(app_, Shell::kBash).c_str(), 1);
    const std::string command =
        "exec bash -c 'eval \"$SCRIPT\"\n"
        "pandoctl() { echo \"    SERIAL  KIND     ZONE\"; echo \"  1  primary  example.com.\"\n"
        "echo \"  2  primary  example.org.\"; echo \"  3  primary  x.$(echo \"$*\" | tr \" \" "
        "-)\"; }\n"
        "timeout() { shift; \"$@\"; }\n"
        "COMP_WORDS=(" +
        words + "); COMP_CWORD=" + std::to_string(last) +
        "; _pandoctl; echo -n \"${COMPREPLY[@]}\"'";
    const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
    std::string offered;
    char buffer[4096];
    while (const std::size_t size = std::fread(buffer, 1, sizeof buffer, pipe.get()))
      offered.append(buffer, size);
    return offered;
  }

  CLI::App app_{"test", "pandoctl"};
  std::string text_;
  bool flag_ = false;
};

TEST_F(Completion, OffersVerbsThatBeginWithTheWord) {
  EXPECT_EQ(complete("pandoctl re", 1), "reload");
  EXPECT_EQ(complete("pandoctl zone s", 2), "status");
}

TEST_F(Completion, OffersOptionsOfTheVerbAndOfTheProgram) {
  EXPECT_EQ(complete("pandoctl zone export --", 3), "--to --help --config --json --run-directory");
}

TEST_F(Completion, AValueOfAnOptionIsNoVerb) {
  EXPECT_EQ(complete("pandoctl -c zone re", 3), "reload");
}

TEST_F(Completion, OffersZonesWhereAZoneIsWanted) {
  EXPECT_EQ(complete("pandoctl zone status example.", 3), "example.com. example.org.");
  EXPECT_EQ(complete("pandoctl zone status example.com. example.o", 4), "");
  EXPECT_EQ(complete("pandoctl zone begin example.com. example.o", 4), "example.org.");
}

TEST_F(Completion, OffersNoNameThatAShellWouldCarryOut) {
  EXPECT_EQ(complete("pandoctl -c \\`id\\` zone status x", 5), "");
}

TEST_F(Completion, AsksTheServerOfTheCommandLine) {
  EXPECT_EQ(complete("pandoctl -c f --run-directory d zone status x", 7),
            "x.-c-f---run-directory-d-zone-list");
}

TEST_F(Completion, ZshLoadsTheSameFunction) {
  const std::string zsh = completion_script(app_, Shell::kZsh);
  EXPECT_TRUE(zsh.starts_with("#compdef pandoctl\n"));
  EXPECT_TRUE(zsh.ends_with(completion_script(app_, Shell::kBash)));
}

}  // namespace completion_test
}  // namespace pando::ctl
