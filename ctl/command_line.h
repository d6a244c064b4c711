#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <string_view>

#include "ctl/arguments.h"
#include "ctl/connecting.h"

namespace pando::ctl {

/// The command line of pandoctl: the options of all verbs, the verbs that are added, and the run of
/// one of them.
class CommandLine {
 public:
  /// Runs a verb; returns the exit code.
  using Action = std::function<int()>;
  using SessionAction = std::function<int(Session&)>;

  CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  /// The parent of verbs without a group.
  [[nodiscard]] CLI::App* root() noexcept { return &app_; }
  /// Filled by run() before the verb's action.
  [[nodiscard]] Arguments& arguments() noexcept { return arguments_; }

  /// A word that verbs follow.
  CLI::App* group(const char* name, const char* help) { return group(&app_, name, help); }
  CLI::App* group(CLI::App* parent, const char* name, const char* help);
  CLI::App* add(CLI::App* parent, const char* name, std::string_view help, Action action);
  /// A verb that needs a manager.
  CLI::App* add_session(CLI::App* parent, const char* name, std::string_view help,
                        SessionAction action);
  /// The same for a verb of the control socket, which has the line of help: `zone-list` for the
  /// word `list` of the group `zone`.
  CLI::App* add_session(CLI::App* parent, const char* name, SessionAction action);

  /// Parses the words and runs the verb; returns the exit code.
  int run(int argc, char** argv);

 private:
  void refuse(int argc, char** argv, const std::string& error) const;

  CLI::App app_{"pandoctl: control of the Pando DNS server", "pandoctl"};
  Arguments arguments_;
  Action action_;
};

}  // namespace pando::ctl
