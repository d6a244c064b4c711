#include "ctl/command_line.h"

#include <algorithm>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "ctl/misspelt_words.h"
#include "ipc/control_verbs.h"

namespace pando::ctl {

namespace {

constexpr std::size_t kColumns = 80;
constexpr std::size_t kDescriptions = 28;  ///< the column where they begin

/// The line with breaks between words, so that no part is longer than kColumns.
std::string folded(std::string line) {
  const bool has_description =
      line.size() > kDescriptions && line[kDescriptions - 1] == ' ' && line[kDescriptions] != ' ';
  const std::size_t indent = has_description ? kDescriptions : 4;
  std::string text;
  while (line.size() > kColumns) {
    const auto space = line.rfind(' ', kColumns);
    if (space == std::string::npos || space <= indent) break;  // a word that is too long itself
    text += line.substr(0, space) + '\n';
    line = std::string(indent, ' ') + line.substr(space + 1);
  }
  return text + line;
}

/// Help pages for terminals of kColumns columns.
class NarrowFormatter : public CLI::Formatter {
 public:
  NarrowFormatter() { column_width(kDescriptions); }

  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override {
    const std::string page = CLI::Formatter::make_help(app, std::move(name), mode);
    std::string text;
    for (std::string_view rest = page; !rest.empty();) {
      const auto end = std::min(rest.find('\n'), rest.size());
      text += folded(std::string(rest.substr(0, end))) + '\n';
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    return text;
  }
};

}  // namespace

CommandLine::CommandLine() {
  app_.formatter(std::make_shared<NarrowFormatter>());
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

CLI::App* CommandLine::group(CLI::App* parent, const char* name, const char* help) {
  CLI::App* command = parent->add_subcommand(name, help);
  command->require_subcommand(1);
  command->fallthrough();
  return command;
}

CLI::App* CommandLine::add(CLI::App* parent, const char* name, std::string_view help,
                           Action action) {
  CLI::App* command = parent->add_subcommand(name, std::string(help));
  command->fallthrough();
  command->callback([this, action = std::move(action)] { action_ = action; });
  return command;
}

CLI::App* CommandLine::add_session(CLI::App* parent, const char* name, std::string_view help,
                                   SessionAction action) {
  return add(parent, name, help,
             [this, action = std::move(action)] { return with_session(arguments_, action); });
}

CLI::App* CommandLine::add_session(CLI::App* parent, const char* name, SessionAction action) {
  const std::string verb =
      parent == &app_ ? std::string(name) : fmt::format("{}-{}", parent->get_name(), name);
  const ipc::ControlVerb* row = ipc::find_verb(verb);
  if (row == nullptr) throw std::logic_error("no verb of the control socket: " + verb);
  return add_session(parent, name, row->help, std::move(action));
}

int CommandLine::run(int argc, char** argv) {
  try {
    app_.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app_.exit(error);  // help, or the version
    const bool has_too_many =
        error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError);
    const std::string other = has_too_many ? other_meaning(app_, argc, argv) : std::string();
    refuse(argc, argv, other.empty() ? error.what() : std::string(error.what()) + "; " + other);
    return kUsage;
  }
  return action_();
}

/// The options may not have been read when a word was wrong.
void CommandLine::refuse(int argc, char** argv, const std::string& error) const {
  const auto is_json = [](std::string_view word) { return word == "--json"; };
  const bool json = std::any_of(argv + 1, argv + argc, is_json);
  const std::string unknown = misspelt_word(app_, argc, argv);
  const CLI::App* unfinished = unknown.empty() ? unfinished_command(app_, argc, argv) : nullptr;
  if (!json && unfinished != nullptr) {
    const bool is_program = unfinished == &app_;
    std::cerr << help_of(*unfinished, is_program ? std::string() : app_.get_name());
    return;
  }
  print_error({std::cout, std::cerr, json}, unknown.empty() ? error : unknown);
  if (!json) std::cerr << "Run with --help for more information.\n";
}

}  // namespace pando::ctl
