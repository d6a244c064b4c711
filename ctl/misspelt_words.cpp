#include "ctl/misspelt_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "base/words.h"
#include "ctl/foreign_verbs.h"

namespace pando::ctl {

namespace {

std::vector<std::string> options_of(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

/// The words of a command line that are no options.
std::vector<std::string> words_of(int argc, char** argv) {
  std::vector<std::string> words;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "-c" || word == "--config" || word == "--run-directory" || word == "--timeout")
      ++i;  // its value
    else if (!word.starts_with('-'))
      words.emplace_back(word);
  }
  return words;
}

const CLI::App* find_command(const CLI::App& command, std::string_view name) {
  const auto commands = command.get_subcommands({});
  const auto found = std::ranges::find(commands, name, &CLI::App::get_name);
  return found == commands.end() ? nullptr : *found;
}

/// The command that the first words name, and their number.
struct NamedCommand {
  const CLI::App* command = nullptr;
  std::size_t words = 0;
};

NamedCommand named_command(const CLI::App& app, const std::vector<std::string>& words) {
  NamedCommand named{&app, 0};
  for (const std::string& word : words) {
    const CLI::App* next = find_command(*named.command, word);
    if (next == nullptr) break;
    named = {next, named.words + 1};
  }
  return named;
}

bool has_commands(const CLI::App& command) { return !command.get_subcommands({}).empty(); }

/// The first word that is no command where one is wanted.
std::string unknown_word(const CLI::App& app, const std::vector<std::string>& words) {
  const auto [command, count] = named_command(app, words);
  if (count == words.size() || !has_commands(*command)) return {};  // the words of a command
  const std::string& word = words[count];
  const std::string said = count == 0
                               ? fmt::format("unknown command '{}'", word)
                               : fmt::format("unknown command '{} {}'", command->get_name(), word);
  if (const ForeignVerb* foreign = find_foreign_verb(words))
    return fmt::format("{}{} {}", said, foreign->ours.empty() ? ":" : ";", hint_of(*foreign));
  std::vector<std::string> names;
  for (const CLI::App* one : command->get_subcommands({})) names.push_back(one->get_name());
  const std::vector<std::string_view> candidates(names.begin(), names.end());
  const std::string_view meant = nearest(word, candidates);
  return meant.empty() ? said : fmt::format("{}; did you mean '{}'?", said, meant);
}

/// The sentence about the first of these words that is no command.
std::string no_command(const CLI::App& app, const std::vector<std::string>& words) {
  std::string unknown = unknown_word(app, words);
  return unknown.empty() ? fmt::format("no command has the words '{}'", fmt::join(words, " "))
                         : unknown;
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
  std::string unknown = unknown_word(app, words_of(argc, argv));
  return unknown.empty() ? unknown_option(app, argc, argv) : unknown;
}

std::string other_meaning(const CLI::App& app, int argc, char** argv) {
  std::vector<std::string> words = words_of(argc, argv);
  words.resize(named_command(app, words).words);
  const ForeignVerb* foreign = find_foreign_verb(words);
  if (foreign == nullptr) return {};
  const bool is_same = foreign->ours == fmt::format("{}", fmt::join(words, " "));
  return is_same ? std::string(foreign->note) : hint_of(*foreign);
}

Result<std::string> help_page(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App* command = &app;
  std::string path;
  for (const std::string& word : words) {
    path += path.empty() ? command->get_name() : ' ' + command->get_name();
    command = find_command(*command, word);
    if (command == nullptr) return tl::unexpected(Error{Errc::kInvalid, no_command(app, words)});
  }
  return help_of(*command, path);
}

const CLI::App* unfinished_command(const CLI::App& app, int argc, char** argv) {
  const std::vector<std::string> words = words_of(argc, argv);
  const auto [command, count] = named_command(app, words);
  return count == words.size() && has_commands(*command) ? command : nullptr;
}

std::string help_of(const CLI::App& command, const std::string& path) {
  // CLI11 continues to the verb that ran, which is `help` itself.
  const auto formatter = command.get_formatter();
  const std::string name = command.get_name();
  return formatter->make_help(&command, path.empty() ? name : path + ' ' + name,
                              CLI::AppFormatMode::Normal);
}

}  // namespace pando::ctl
