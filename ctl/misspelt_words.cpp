#include "ctl/misspelt_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "base/words.h"

namespace pando::ctl {

namespace {

std::vector<std::string> options_of(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

/// The first word that is no command where one is wanted.
std::string unknown_word(const CLI::App& app, int argc, char** argv) {
  const CLI::App* command = &app;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "-c" || word == "--config" || word == "--run-directory" || word == "--timeout")
      ++i;  // its value
    if (word.starts_with('-')) continue;
    std::vector<std::string> names;
    for (const CLI::App* one : command->get_subcommands({})) names.push_back(one->get_name());
    const auto found = std::ranges::find(names, word);
    if (found != names.end()) {
      command = command->get_subcommand(*found);
      continue;
    }
    if (names.empty()) return {};  // the words of a command
    const std::vector<std::string_view> candidates(names.begin(), names.end());
    const std::string_view meant = nearest(word, candidates);
    const std::string said =
        command == &app ? fmt::format("unknown command '{}'", word)
                        : fmt::format("unknown command '{} {}'", command->get_name(), word);
    return meant.empty() ? said : fmt::format("{}; did you mean '{}'?", said, meant);
  }
  return {};
}

/// The first option that the command does not have.
std::string unknown_option(const CLI::App& app, int argc, char** argv) {
  std::vector<std::string> names = options_of(app);
  const CLI::App* command = &app;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const auto subcommands = command->get_subcommands({});
    const auto found = std::ranges::find(subcommands, word, &CLI::App::get_name);
    if (found == subcommands.end()) continue;
    command = *found;
    for (std::string& name : options_of(*command)) names.push_back(std::move(name));
  }
  for (int i = 1; i < argc; ++i) {
    const std::string word = std::string(argv[i]).substr(0, std::string_view(argv[i]).find('='));
    if (word == "--") return {};  // the words behind it are no options
    if (!word.starts_with("--") || std::ranges::find(names, word) != names.end()) continue;
    const std::vector<std::string_view> candidates(names.begin(), names.end());
    const std::string_view meant = nearest(word, candidates);
    return meant.empty() ? fmt::format("unknown option '{}'", word)
                         : fmt::format("unknown option '{}'; did you mean '{}'?", word, meant);
  }
  return {};
}

}  // namespace

std::string misspelt_word(const CLI::App& app, int argc, char** argv) {
  std::string unknown = unknown_word(app, argc, argv);
  return unknown.empty() ? unknown_option(app, argc, argv) : unknown;
}

}  // namespace pando::ctl
