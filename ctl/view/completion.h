#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace pando::ctl {

enum class Shell { kBash, kZsh };

/// A shell script that completes the verbs and options of `app` and of all its subcommands. Names of
/// zones complete an argument `name`; they come from a running manager, at most 1,000 of them.
std::string completion_script(const CLI::App& app, Shell shell);

}  // namespace pando::ctl
