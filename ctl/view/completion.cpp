#include "ctl/view/completion.h"

#include <fmt/format.h>

#include <string_view>
#include <vector>

namespace pando::ctl {

namespace {

/// Words that may follow one verb, and the shell's assignment if names of zones may.
struct Continuation {
  std::string verb;
  std::string words;
  std::string_view zones{};
};

/// Arguments by whose names names of zones are known: one, or any number of them.
std::string_view zones_of(const std::string& argument) {
  if (argument == "name" || argument == "zone") return " zones=one";
  if (argument == "names" || argument == "zones") return " zones=many";
  return {};
}

void append(std::string& words, const std::string& word) {
  if (!words.empty()) words += ' ';
  words += word;
}

Continuation continuation_of(const CLI::App& app, const std::string& verb) {
  Continuation found{.verb = verb, .words = {}};
  for (const CLI::App* command : app.get_subcommands({})) append(found.words, command->get_name());
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional() && found.zones.empty()) found.zones = zones_of(option->get_name());
    if (verb.empty() || option != app.get_help_ptr())  // an option of the program goes with any verb
      for (const std::string& name : option->get_lnames()) append(found.words, "--" + name);
  }
  return found;
}

void collect(const CLI::App& app, const std::string& verb, std::vector<Continuation>& found) {
  found.push_back(continuation_of(app, verb));
  for (const CLI::App* command : app.get_subcommands({}))
    collect(*command, verb.empty() ? command->get_name() : verb + ' ' + command->get_name(), found);
}

/// Options with a value, as alternatives of a shell pattern: the word after one is no verb.
void collect_options_with_value(const CLI::App& app, std::string& pattern) {
  const auto add = [&](const std::string& name) { pattern += (pattern.empty() ? "" : "|") + name; };
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional() || option->get_items_expected_max() == 0) continue;
    for (const std::string& name : option->get_lnames()) add("--" + name);
    for (const std::string& name : option->get_snames()) add("-" + name);
  }
  for (const CLI::App* command : app.get_subcommands({})) collect_options_with_value(*command, pattern);
}

// In zsh, bashcompinit gives the same variables to the same function.
constexpr std::string_view kZshHead = "#compdef pandoctl\nautoload -Uz bashcompinit\nbashcompinit\n";

constexpr std::string_view kHead = R"sh(# Completion for pandoctl, made by `pandoctl completion`.
_pandoctl() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" verb="" rest="" skip="" word words="" zones="" i=1
  local -a server=()
  while [ "$i" -lt "$COMP_CWORD" ]; do
    word="${{COMP_WORDS[i]}}"
    i=$((i + 1))
    if [ -n "$skip" ]; then
      case "$skip" in -c|--config|--run-directory) server+=("$skip" "$word");; esac
      skip=""
      continue
    fi
    case "$word" in
      {}) skip="$word"; continue;;
      -*) continue;;
    esac
    case "${{verb:+$verb }}$word" in
      {}) verb="${{verb:+$verb }}$word";;
      *) rest=1;;
    esac
  done
  if [ -n "$skip" ]; then COMPREPLY=($(compgen -f -- "$current")); return; fi
  case "$verb" in
)sh";

constexpr std::string_view kTail = R"sh(  esac
  if [ "$zones" = many ] || [ "$zones$rest" = one ]; then
    # The last column of the table, without its title. Of the names only plain ones: the shell would
    # carry out what stands in others.
    words="$words $(timeout 2 pandoctl "${server[@]}" zone list 2>/dev/null | head -n 1001 |
      sed -n '1d; s/.* //; /^[A-Za-z0-9_.-]*$/p')"
  fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
  if [ -n "$verb" ] && [ -z "$COMPREPLY" ]; then COMPREPLY=($(compgen -f -- "$current")); fi
}
complete -F _pandoctl pandoctl
)sh";

}  // namespace

std::string completion_script(const CLI::App& app, Shell shell) {
  std::vector<Continuation> continuations;
  collect(app, "", continuations);
  const std::string global = continuations.front().words.substr(continuations.front().words.find("--"));
  std::string verbs;
  std::string cases;
  for (const Continuation& each : continuations) {
    if (!each.verb.empty()) verbs += fmt::format("{}\"{}\"", verbs.empty() ? "" : "|", each.verb);
    cases += fmt::format("    \"{}\") words=\"{}{}\"{};;\n", each.verb, each.words,
                         each.verb.empty() ? "" : ' ' + global, each.zones);
  }
  std::string script{shell == Shell::kZsh ? kZshHead : ""};
  std::string options;
  collect_options_with_value(app, options);
  script += fmt::format(kHead, options, verbs);
  return script + cases + std::string(kTail);
}

}  // namespace pando::ctl
