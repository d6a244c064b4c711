#include "ctl/command_line.h"

#include <algorithm>
#include <iostream>
#include <string_view>
#include <utility>

#include "ctl/misspelt_words.h"

namespace pando::ctl {

CommandLine::CommandLine() {
  app_.require_subcommand(1);
  app_.set_version_flag("--version", PANDO_VERSION);
  app_.add_option("--config,-c", arguments_.config, "configuration file")->capture_default_str();
  app_.add_option("--run-directory", arguments_.run_directory,
                  "folder of the control socket, instead of asking the configuration");
  app_.add_flag("--json", arguments_.json, "JSON for programs");
  app_.add_option("--timeout", arguments_.timeout_seconds, "seconds to wait for an answer")
      ->check(CLI::Range(1, 86400))
      ->capture_default_str();
  app_.fallthrough();
}

CLI::App* CommandLine::group(const char* name, const char* help) {
  CLI::App* command = app_.add_subcommand(name, help);
  command->require_subcommand(1);
  command->fallthrough();
  return command;
}

CLI::App* CommandLine::add(CLI::App* parent, const char* name, const char* help, Action action) {
  CLI::App* command = parent->add_subcommand(name, help);
  command->fallthrough();
  command->callback([this, action = std::move(action)] { action_ = action; });
  return command;
}

CLI::App* CommandLine::add_session(CLI::App* parent, const char* name, const char* help,
                                   SessionAction action) {
  return add(parent, name, help,
             [this, action = std::move(action)] { return with_session(arguments_, action); });
}

int CommandLine::run(int argc, char** argv) {
  try {
    app_.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app_.exit(error);  // help, or the version
    refuse(argc, argv, error.what());
    return kUsage;
  }
  return action_();
}

/// The options may not have been read when a word was wrong.
void CommandLine::refuse(int argc, char** argv, const std::string& error) const {
  const auto is_json = [](std::string_view word) { return word == "--json"; };
  const bool json = std::any_of(argv + 1, argv + argc, is_json);
  const std::string unknown = misspelt_word(app_, argc, argv);
  print_error({std::cout, std::cerr, json}, unknown.empty() ? error : unknown);
  if (!json) std::cerr << "Run with --help for more information.\n";
}

}  // namespace pando::ctl
