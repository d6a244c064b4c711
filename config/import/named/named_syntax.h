#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/import/model/import_files.h"

/// The syntax of named.conf: statements of words and blocks, ended by semicolons.
namespace pando::config {

struct NamedStatement;
using NamedBlock = std::vector<NamedStatement>;

/// `zone "example.com" { type primary; };` has two words and one block. A `!` is a word of its own.
/// Case counts nowhere but in files and names of the DNS. The first word, and the one after `!`,
/// are in lower case.
struct NamedStatement {
  SourceLine at;
  /// Before, between and after the blocks; the first one in lower case.
  std::vector<std::string> words;
  std::vector<NamedBlock> blocks;

  /// The word at `index`, or an empty one.
  [[nodiscard]] std::string_view word(std::size_t index) const noexcept;
  /// The word in lower case, for those that are no files.
  [[nodiscard]] std::string lower(std::size_t index) const;
  /// The first block; null without one.
  [[nodiscard]] const NamedBlock* block() const noexcept;
};

/// Parses a file and the files that it includes. Errors are `file:line: reason`.
Result<NamedBlock> parse_named(const ImportText& text, ImportFiles& files, ImportReport& report);

/// The last statement in the block that begins with `keyword`; null if there is none.
[[nodiscard]] const NamedStatement* find_statement(const NamedBlock* block,
                                                   std::string_view keyword) noexcept;

}  // namespace pando::config
