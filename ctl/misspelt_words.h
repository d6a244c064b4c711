#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace pando::ctl {

/// The first word or option of a refused command line that `app` does not have, in a sentence with
/// the one that was probably meant. Empty: all are known.
[[nodiscard]] std::string misspelt_word(const CLI::App& app, int argc, char** argv);

}  // namespace pando::ctl
