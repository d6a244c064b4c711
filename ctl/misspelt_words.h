#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "base/result.h"

namespace pando::ctl {

/// A sentence about the first unknown word or option of a rejected command line, with the word that
/// was probably meant: one of `app`, or our verb for that of another server's tool. Empty: all
/// words are known.
[[nodiscard]] std::string misspelt_word(const CLI::App& app, int argc, char** argv);

/// The help page of the verb that the words name, of the program without words. kInvalid: no verb
/// has these words; the reason suggests the verb that was probably meant.
Result<std::string> help_page(const CLI::App& app, const std::vector<std::string>& words);

/// The meaning of a known command's words to another server's tool, for a command line with more
/// words than ours takes: `reload ZONE`. Empty: the same, or nothing.
[[nodiscard]] std::string other_meaning(const CLI::App& app, int argc, char** argv);

/// The command with which the words end, if a verb is missing after it; null otherwise.
[[nodiscard]] const CLI::App* unfinished_command(const CLI::App& app, int argc, char** argv);

/// The help page of a command. `path` are the words before its own.
[[nodiscard]] std::string help_of(const CLI::App& command, const std::string& path);

}  // namespace pando::ctl
